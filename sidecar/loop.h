/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The main thread while the command runs: signals, the command's stops and its end, hellos.
 *
 * Signals. What the terminal sends goes to the whole process group, so the command has it already:
 * only what a process sent to the sidecar is passed on, once, and never back to a process of the
 * command's own tree that sent it. When the command stops, the sidecar stops too, so that the
 * shell's job control works as without it, and both go on together.
 *
 * Threads: the main one.
 */
#ifndef MT_SIDECAR_LOOP_H
#define MT_SIDECAR_LOOP_H

#include "sidecar/child.h"
#include "sidecar/control.h"
#include "sidecar/pulse.h"
#include "sidecar/recorder.h"

struct mt_loop;

struct mt_loop_options {
	struct mt_child *child; /* NULL: manual use, the tree's end is the merge's to tell */
	struct mt_control *control;
	struct mt_pulse_writer *pulse;
	struct mt_recorder *recorder;
	/* Called once, when recording ends and the merge has been asked to finish. */
	void (*on_end)(void *context);
	void *context;
};

/* Returns 0 or a negative errno. */
int mt_loop_new(const struct mt_loop_options *options, struct mt_loop **ret_loop);

/* Returns when the command, or the tree, has ended and the merge thread is done. */
void mt_loop_run(struct mt_loop *loop);

/* NULL is accepted. */
void mt_loop_free(struct mt_loop *loop);

#endif
