/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The keys of the metadata maps that the sidecar writes (meta_builder.h) and memtrack reads
 * (meta_value.h): who writes a key and who reads it meet here. Every key may be absent; readers
 * then say "not known", never 0. Readers pass over keys that they do not know (`stat --json`
 * prints them all).
 *
 * "open", the first frame of the file:
 *
 *   version       text   of memtrack
 *   command       array of text
 *   cwd           text
 *   host, kernel, machine   text, as of uname(2)
 *   start_ns      uint   CLOCK_MONOTONIC
 *   start_unix_ns uint   CLOCK_REALTIME at the same moment
 *   root_pid      int
 *   recorder_pid  int    of the sidecar, in its own PID namespace
 *   options       map    name -> text, uint or bool
 *   clock         text   "tsc", "cntvct" or "clock_gettime"
 *   order         text   "fast" or "strict"
 *   sources       map    process, exec_maps, later_maps: text, names of struct mt_kernel_report;
 *                        missing: text, the line for the user; absent when nothing is
 *
 * "closed", the last frame of a finished file. Lists that are too long for one frame go on in
 * further "closed" frames before the last one: readers join `processes` and `untracked` of all.
 *
 *   end_ns        uint
 *   exit_status   uint   of the command; absent when a signal killed it
 *   exit_signal   uint   absent when it exited
 *   events        uint   written
 *   losses        map    cause -> uint, only causes that occurred; empty: nothing was lost
 *   order_stats   map    name -> uint: late, parked, unknown_frees, live_allocs, inherited_ends,
 *                        split_reallocs, dropped_begins, unchecked, corrupt_streams,
 *                        unread_streams, untranslated_tids
 *   tracked       uint   images that registered
 *   untracked     array of maps pid int, path text, reason text, at most 1,000; nil: not known
 *   untracked_count uint all that were untracked; absent: not known
 *   unheard       uint   programs that could not register, for want of memory or descriptors of
 *                        the recorder; absent: 0
 *   not_loaded    uint   had no time to load the library; not in the above; absent: 0
 *   alive         array of int: processes that lived on when recording ended
 *   processes     array of maps: pid, parent_pid int; images, events uint; exit_status or
 *                        exit_signal uint; losses map
 *
 * "anomalies", any number of frames:
 *
 *   counts        map    reason -> uint, all that were flagged
 *   listed        array of maps frame uint (data frames counted from 0), index uint (in the
 *                        frame), reason text; the first MT_ANOMALIES_LISTED
 *
 * "repaired", by `memtrack repair`, before the last "closed":
 *
 *   version       text   of memtrack
 *   damaged_frames uint  in place of those that could not be saved stand empty ones
 *   missing_events uint  that were in them; absent: not known
 *   cut_at        uint   offset in the old file of the frame that was cut; absent: it was not
 */
#ifndef MT_COMMON_RUN_META_H
#define MT_COMMON_RUN_META_H

#define MT_KEY_VERSION	     "version"
#define MT_KEY_COMMAND	     "command"
#define MT_KEY_CWD	     "cwd"
#define MT_KEY_HOST	     "host"
#define MT_KEY_KERNEL	     "kernel"
#define MT_KEY_MACHINE	     "machine"
#define MT_KEY_START_NS	     "start_ns"
#define MT_KEY_START_UNIX_NS "start_unix_ns"
#define MT_KEY_ROOT_PID	     "root_pid"
#define MT_KEY_RECORDER_PID  "recorder_pid"
#define MT_KEY_OPTIONS	     "options"
#define MT_KEY_CLOCK	     "clock"
#define MT_KEY_ORDER	     "order"
#define MT_KEY_SOURCES	     "sources"
#define MT_KEY_PROCESS	     "process"
#define MT_KEY_EXEC_MAPS     "exec_maps"
#define MT_KEY_LATER_MAPS    "later_maps"
#define MT_KEY_MISSING	     "missing"

#define MT_KEY_END_NS	       "end_ns"
#define MT_KEY_EXIT_STATUS     "exit_status"
#define MT_KEY_EXIT_SIGNAL     "exit_signal"
#define MT_KEY_EVENTS	       "events"
#define MT_KEY_LOSSES	       "losses"
#define MT_KEY_ORDER_STATS     "order_stats"
#define MT_KEY_CORRUPT_STREAMS "corrupt_streams"
#define MT_KEY_UNREAD_STREAMS  "unread_streams"
#define MT_KEY_TRACKED	       "tracked"
#define MT_KEY_UNTRACKED       "untracked"
#define MT_KEY_UNTRACKED_COUNT "untracked_count"
#define MT_KEY_UNHEARD	       "unheard"
#define MT_KEY_NOT_LOADED      "not_loaded"
#define MT_KEY_ALIVE	       "alive"
#define MT_KEY_PROCESSES       "processes"
#define MT_KEY_PID	       "pid"
#define MT_KEY_PARENT_PID      "parent_pid"
#define MT_KEY_PATH	       "path"
#define MT_KEY_REASON	       "reason"
#define MT_KEY_IMAGES	       "images"

#define MT_KEY_COUNTS "counts"
#define MT_KEY_LISTED "listed"
#define MT_KEY_FRAME  "frame"
#define MT_KEY_INDEX  "index"

#define MT_KEY_DAMAGED_FRAMES "damaged_frames"
#define MT_KEY_MISSING_EVENTS "missing_events"
#define MT_KEY_CUT_AT	      "cut_at"

/* Why an event was flagged: struct mt_order_anomaly's reason. */
enum mt_anomaly_reason {
	MT_ANOMALY_UNKNOWN_FREE = 0, /* free of a block that is not known */
	MT_ANOMALY_LIVE_ALLOC,	     /* allocation over a live block */
	MT_ANOMALY_REASONS
};

/* Their names in the file. */
#define MT_ANOMALY_NAMES                     \
	{                                    \
		"unknown_free", "live_alloc" \
	}

/*
 * Reasons in the list of untracked images that say of an image that it had no time to load the
 * library. None of its heap events are missing, so it counts as not loaded and not as untracked.
 */
#define MT_REASON_ENDED	   "ended-before-loading"
#define MT_REASON_STARTING "recording-ended-before-loading"

struct mt_loss_words {
	const char *name;
	const char *text;
};

/*
 * Causes of losses: their names in the artifact, and what they are to a user. First those of enum
 * mt_lost in its order, then those of the sidecar itself.
 */
#define MT_LOSS_TABLE(X)                                                                      \
	X("policy", "buffers were full (--on-full=drop)")                                     \
	X("timeout", "buffers stayed full (--max-wait), or were too few for the threads")     \
	X("no_slot", "too many processes or threads at once")                                 \
	X("sandbox", "the program's sandbox forbids what recording needs")                    \
	X("signal", "a signal handler, or a thread with another's TLS, interrupted a record") \
	X("late", "the end of their process had to be written before them")                   \
	X("write", "the file took no more (disk full, --max-file-size, ulimit -f)")           \
	X("kernel", "kernel events came faster than they were read, or found no memory")

#endif
