/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the artifact says of its run: the frames "open", "anomalies" and "closed" of
 * common/run_meta.h.
 *
 * Threads: whoever has the writer: before the encoder starts, and after it has stopped.
 */
#ifndef MT_SIDECAR_RUNMETA_H
#define MT_SIDECAR_RUNMETA_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/artifact_writer.h"
#include "sidecar/coverage.h"
#include "sidecar/kernel.h"
#include "sidecar/loss.h"
#include "sidecar/options.h"
#include "sidecar/order.h"

struct mt_runmeta_open {
	const struct mt_options *options;
	char *const *command; /* ends with NULL; empty in manual use: the root's is looked up */
	pid_t root;
	enum mt_counter counter;
	const struct mt_kernel_report *kernel;
};

/* Returns 0 or a negative errno. */
int mt_runmeta_write_open(struct mt_artifact_writer *writer, const struct mt_runmeta_open *run);

struct mt_runmeta_closed {
	pid_t root;
	bool status_known;
	int status; /* of the command, as of wait(2) */
	const struct mt_order *order;
	struct mt_coverage *coverage; /* finished */
	const struct mt_encoder_stats *encoder;
	const struct mt_loss *loss;
	uint64_t unheard;   /* programs that could not register */
	const pid_t *alive; /* processes that live on */
	size_t alive_count;
};

/* Writes "anomalies" if there are any, then "closed". Returns 0 or a negative errno. */
int mt_runmeta_write_closed(struct mt_artifact_writer *writer,
			    const struct mt_runmeta_closed *closed);

#endif
