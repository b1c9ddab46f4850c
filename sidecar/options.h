/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The command line and the environment of the sidecar. One table in options.c drives the parsing
 * of both, --help and the test that the manual and the README name every option.
 *
 * A value on the command line wins over its MEMTRACK_* variable, which wins over the default.
 */
#ifndef MT_SIDECAR_OPTIONS_H
#define MT_SIDECAR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Our own failures end with this; a command that cannot be run with the others. */
#define MT_EXIT_FAILURE	   125
#define MT_EXIT_CANNOT_RUN 126
#define MT_EXIT_NOT_FOUND  127

struct mt_options {
	const char *output; /* NULL: the current directory */
	bool force;
	bool quiet;
	uint64_t buffer_bytes;
	uint64_t max_buffers_bytes;
	uint64_t max_memory_bytes;
	uint64_t max_file_bytes; /* 0: no limit */
	uint32_t on_full;	 /* enum mt_policy */
	uint64_t max_wait_ms;
	uint32_t order;	  /* enum mt_order_mode */
	uint64_t workers; /* 0: all processors but two, at least one */
	int64_t level;	  /* of zstd */
	uint32_t codec;	  /* enum mt_codec */
	uint32_t bpf;	  /* enum mt_kernel_level */
	bool no_mmap_events;
	bool no_follow_env;
	bool require_complete;
	bool as_root;
	bool help;
	bool version;

	/* Not for users: the launcher and the shim give these. */
	bool list_options;
	const char *library;	   /* path of the preloaded library */
	const char *force_process; /* sources of kernel events, for tests (sidecar/kernel.h) */
	const char *force_exec_maps;
	const char *force_later_maps;
	uint64_t attach;   /* a running process to follow; 0: run the command */
	uint64_t ready_fd; /* where the session line goes with --attach */

	char **command; /* ends with NULL; empty without a command */
};

enum mt_order_mode {
	MT_ORDER_FAST,
	MT_ORDER_STRICT,
};

/*
 * Fills ret_options from the command line, and from the environment what that did not give. Returns
 * 0, or -EINVAL after having said what is wrong.
 */
int mt_options_parse(int argc, char **argv, struct mt_options *ret_options);

/* The table as the user sees it. --help is long, so it goes where the caller says. */
void mt_options_help(FILE *out);

struct mt_meta_builder;

/* Puts all options that a user can give into the open map, defaults too. */
void mt_options_put(const struct mt_options *options, struct mt_meta_builder *builder);

/* One line an option: "--name<TAB>MEMTRACK_NAME", for the test that the manuals are complete. */
void mt_options_list(FILE *out);

/* "64K", "8M", "1G", "1000": returns 0, -EINVAL or -ERANGE. */
int mt_parse_size(const char *text, uint64_t *ret_bytes);

#endif
