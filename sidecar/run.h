/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One run: all the parts of the sidecar, put together and taken apart in order.
 *
 * Threads: the main one; the hello callback runs there too.
 */
#ifndef MT_SIDECAR_RUN_H
#define MT_SIDECAR_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/artifact_writer.h"
#include "sidecar/allocator.h"
#include "sidecar/child.h"
#include "sidecar/command.h"
#include "sidecar/control.h"
#include "sidecar/coverage.h"
#include "sidecar/encoder.h"
#include "sidecar/identity.h"
#include "sidecar/inherited.h"
#include "sidecar/kernel.h"
#include "sidecar/loss.h"
#include "sidecar/recorder.h"
#include "sidecar/options.h"
#include "sidecar/output.h"
#include "sidecar/pulse.h"
#include "sidecar/room.h"
#include "sidecar/session.h"

#define MT_ALIVE_LISTED 1000

struct mt_run {
	const struct mt_options *options;
	const struct mt_inherited *inherited;
	struct mt_identity identity;
	struct mt_command command;
	struct mt_session session;
	struct mt_pulse_writer pulse;
	char **env; /* of the command */
	struct mt_child child;
	bool has_child; /* false in manual use */
	pid_t root;
	enum mt_counter counter;

	struct mt_kernel *kernel;
	struct mt_kernel_report kernel_report;
	struct mt_output output;
	struct mt_artifact_writer writer;
	struct mt_encoder *encoder;
	struct mt_coverage *coverage;
	struct mt_allocator *allocator;
	struct mt_recorder *recorder;
	struct mt_control *control;
	struct mt_room room;
	bool recorder_started;
	bool root_mapped;    /* manual use: the root's mappings were read */
	bool told_forbidden; /* that memory for records cannot be made */
	bool ending;	     /* no image is taken in any more */

	/* Results, after mt_run_finish(). */
	struct mt_encoder_stats encoder_stats;
	struct mt_loss loss;
	int write_error;	    /* the first: of events, or of the closing metadata */
	const char *output_trouble; /* what others did to the file, or NULL */
	uint64_t unheard;	    /* programs that could not register for want of ours */
	size_t process_count;
	size_t alive_count;
	pid_t alive[MT_ALIVE_LISTED];
};

/*
 * Before the command is forked: who runs it, whether it can be tracked, session, library. Returns 0
 * or a negative errno, having said why.
 */
int mt_run_prepare(struct mt_run *run);

/*
 * When the root process exists: kernel sources, privileges, output file, threads, socket. Returns 0
 * or a negative errno, having said why.
 */
int mt_run_start(struct mt_run *run);

/* After the loop: the rest of the file, and the results. */
void mt_run_finish(struct mt_run *run);

/* Lets go of everything; the process ends after it. The file is removed again with `discard`. */
void mt_run_close(struct mt_run *run, bool discard);

#endif
