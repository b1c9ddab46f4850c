/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the process image knows of its session. Set by attach, inherited by forked children, who
 * change only what names their own process slot.
 */
#ifndef MT_PRELOAD_IMAGE_H
#define MT_PRELOAD_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/chunk_producer.h"

#if defined(__x86_64__)
#define MT_PAGE_BYTES 4096
#else
#define MT_PAGE_BYTES 65536
#endif

/*
 * A page that the kernel wipes in the child of a fork, raw clone included. `epoch` names the
 * process slot that this process records under: slot + 1 and its generation. 0: none; the slow path
 * finds out why. It lies in the middle of its page: the heads of the chunks lie at the start of
 * theirs, and lines at one offset in their pages share a cache set.
 */
struct mt_wiped {
	char front[MT_PAGE_BYTES / 2];
	uint64_t epoch;
	uint32_t claiming;    /* 1: a thread is claiming the process slot */
	uint32_t own;	      /* 1: the slots that threads hold are this process's */
	uint64_t fork_number; /* of the fork() that made this process; 0: something else did */
	char rest[MT_PAGE_BYTES / 2 - 24];
};

enum mt_recording {
	MT_RECORDING_NEW = 0, /* not yet attached */
	MT_RECORDING_ON,
	MT_RECORDING_OFF,     /* untracked, or the session has ended */
	MT_RECORDING_SANDBOX, /* the program forbade it: count only */
};

struct mt_image {
	uint32_t recording;   /* enum mt_recording; atomic */
	uint32_t attaching;   /* 0 nobody has, 1 somebody is, 2 done; atomic */
	uint32_t stamp_mode;  /* enum mt_stamp_mode */
	uint32_t mmap_events; /* 0 or 1 */
	uint32_t proc;	      /* our process slot + 1 */
	uint32_t proc_generation;
	uint32_t past_us;    /* enum mt_past, from the start; atomic */
	int32_t tid_offset;  /* of the tid behind pthread_self(); 0: not known */
	bool wipes_itself;   /* the kernel does not (qemu-user): our fork() wipes, others cannot */
	uint64_t fork_count; /* the last number given to a fork; atomic */
	uint64_t segment_bytes; /* mapped at producer.header; 0: none */
	struct mt_producer producer;
};

extern struct mt_wiped mt_wiped;
extern struct mt_image mt_image;

/*
 * Says in the segment what is in past_us; nothing while there is none, nor once the image is
 * untracked. Called after `recording` became what it stays, and after a change of past_us. One that
 * adds a bit while another attaches: seq_cst, so that one of the two sees what the other stored.
 */
static inline void mt_image_tell_past_us(void)
{
	uint32_t recording = __atomic_load_n(&mt_image.recording, __ATOMIC_SEQ_CST);
	uint32_t past_us = __atomic_load_n(&mt_image.past_us, __ATOMIC_SEQ_CST);

	if (past_us != 0 && (recording == MT_RECORDING_ON || recording == MT_RECORDING_SANDBOX))
		(void)mt_or_relaxed(&mt_image.producer.header->past_us, past_us);
}

#endif
