/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the parts of the order engine share: images, the readers of their threads' streams, and
 * processes. order.c makes the rounds, drain.c finds what to read, process.h applies what the
 * kernel (or, without it, the shim) says of processes, pending.h orders that.
 *
 * Who points to whom:
 *
 *   order -> images -> binds (process slots in use) -> readers (thread slots in use)
 *   order -> processes (by pid) -> space, image; a bind knows its process once its gate is open
 *
 * Owner and threads: the merge thread, but for the intake of images.
 */
#ifndef MT_SIDECAR_ORDER_IMPL_H
#define MT_SIDECAR_ORDER_IMPL_H

#include <pthread.h>

#include "common/chunk_consumer.h"
#include "sidecar/merge.h"
#include "sidecar/order.h"
#include "sidecar/repair.h"

#define MT_UNATTACHED_SLOTS 1024u /* of each kind, looked at while an image waits for its Exec */
#define MT_GATE_NS	    UINT64_C(200000000) /* a stream waits for its Fork or Exec at most */
#define MT_BLOCKED_NS	    UINT64_C(500000000) /* the kernel's queue waits for streams at most */
#define MT_PROCESS_BUCKETS  4096u
#define MT_TOLD_BUCKETS	    256u

/* A round may take long (a slow disk, a busy machine): bounds count rounds as well. */
#define MT_GATE_ROUNDS 16u

struct mt_process;
struct mt_image;
struct mt_bind;

/* Which fork() made a process: its parent's slot and the number that both know. */
struct mt_birth {
	uint64_t number; /* 0: not told */
	uint32_t slot, generation;
};

/* A thread's stream. */
struct mt_reader {
	struct mt_stream stream;
	struct mt_origin origin;
	struct mt_bind *bind;
	struct mt_reader *next; /* of the bind, newest first */
	struct mt_reader *previous;
	uint64_t tcb;
	uint64_t claim_stamp;
	uint64_t gone_round; /* 0, or the round in which the thread was known to be gone */
	uint64_t lost[MT_LOST_CAUSES]; /* counted so far */
	int32_t tid;		       /* as the thread sees itself */
	uint32_t index;		       /* in the image's array */
	uint32_t proc_slot;
};

/* A process slot. */
struct mt_bind {
	struct mt_image *image;
	struct mt_process *process; /* NULL: the gate is closed */
	struct mt_bind *next;	    /* of the process, or of those that wait */
	struct mt_reader *readers;
	struct mt_proc_claim claim;
	int32_t pid, parent_pid;	/* as we see them; 0: not known, or claim.pid */
	uint64_t since_ns, since_round; /* noticed */
	uint64_t lost[MT_LOST_CAUSES];
	uint32_t reader_count;
	bool root;	 /* of the process that registered the image */
	bool fork_asked; /* a Fork from our side is in the queue */
	bool ended;	 /* its process exited or has another image */
	bool refused;	 /* it claims to be a process that is another image's: not read */
	bool foreign;	 /* what it calls itself counts in another PID namespace */
	bool nameless;	 /* refused, because nobody knows any more which process it was */
};

struct mt_image {
	struct mt_consumer consumer;
	struct mt_image *next;
	struct mt_reader **readers;
	uint32_t reader_count, reader_space;
	struct mt_bind **binds; /* by process slot */
	uint32_t bind_count;	/* in use */
	uint64_t waiting;	/* the weight of its slots whose gates are closed */
	uint32_t users;		/* processes whose memory maps the segment */
	uint32_t queued;	/* events of our side that point here */
	pid_t pid;		/* who registered */
	uint64_t hello_ns;
	uint64_t since_ns, since_round; /* taken in */
	char *path;			/* of the executable; NULL: not known */
	bool root;			/* MT_HELLO_ROOT */
	bool past_us_told;		/* options.on_past_us was called, or is not to be */
	bool attached;			/* its Exec was written: the streams may come */
	bool nested;			/* it counts processes in another PID namespace */
	bool has_foreign;		/* it has a slot whose process does so */
	bool exec_asked;		/* an Exec from our side is in the queue */
	bool refused;			/* too much of it waited */
	bool abandoned;			/* its process ended without recording */
	bool alive_held;
	bool lacks_binds;	    /* there was no memory for one of them */
	struct mt_process *process; /* who attached it: its root */
	struct mt_bind *root_bind;
	uint64_t lost[MT_LOST_CAUSES];
	uint64_t checked_ns;	    /* /proc was looked at */
	uint32_t checked_at;	    /* the reader at which the next look begins */
	bool dry;		    /* its threads wait for chunks that will not come back */
	uint64_t dry_ns, dry_round; /* since when they wait and none has come back; 0: not so */
};

struct mt_process {
	struct mt_process *next;	/* of its bucket */
	struct mt_process *next_nested; /* while slots are matched with processes */
	struct mt_process *next_told;	/* that has no slot so far */
	struct mt_process *newest_child, *older_sibling;
	struct mt_birth birth;
	struct mt_bind *binds;
	struct mt_space *space;	      /* NULL: none of its own (vfork), or nothing recorded yet */
	struct mt_image *image;	      /* whose segment its memory maps */
	size_t record;		      /* in order->records */
	uint64_t fork_stamp, exec_ns; /* the last Exec written, 0: none */
	uint64_t image_ns;	      /* hello of the image attached last */
	uint64_t exit_ns;	      /* of the Exit, once it was written */
	uint64_t over_round;	      /* 0, or the first behind its end: see process.h */
	uint64_t over_stamp;	      /* of the Exit or Exec */
	uint64_t silent_round;	      /* in which `silent` was found out */
	int32_t pid, ns_pid, parent_pid, parent_tid;
	bool vfork;
	bool unseen;	 /* the kernel tells nothing of it any more: MT_KEV_UNSEEN */
	bool fork_asked; /* its Fork came from our side */
	bool exit_asked; /* an Exit from our side is in the queue */
	bool silent;	 /* it is over, and all that it said was taken */
	bool exited;	 /* Exit was written */
	bool blind;	 /* there was no memory for what it inherited */
};

/* An event of the kernel, or one that takes its place. */
struct mt_kev_node {
	struct mt_kev_node *next;
	struct mt_kev event;
	uint64_t stamp;
	uint64_t round;		/* in which it was drained */
	struct mt_image *image; /* who asked for it; NULL: it is the kernel's own */
	struct mt_birth birth;	/* of a Fork, as the parent told it */
	char path[];
};

struct mt_order {
	struct mt_order_options options;
	struct mt_sink sink;
	struct mt_repair repair;
	struct mt_liveness_budget budget;
	struct mt_merge merge;

	pthread_mutex_t intake_lock;
	struct mt_image *intake; /* newest first */
	unsigned intake_count;
	uint64_t moved_ns; /* under intake_lock: see mt_order_has_room() */

	struct mt_image *images;
	struct mt_bind *waiting; /* gates closed */
	uint64_t waiting_weight; /* of all images */
	uint64_t granted_bytes;	 /* chunks that may be handed out, over all images */

	struct mt_kev_node *kernel_head, **kernel_tail;
	struct mt_kev_node *inbox, **inbox_tail; /* came while the queue was in use */
	size_t inbox_bytes;
	bool merging;
	uint64_t kernel_last_stamp;
	uint64_t kernel_blocked_round;
	uint64_t kernel_blocked_ns; /* 0, or since when the head waits for streams */
	bool kernel_lossy;	    /* records of the kernel were lost */

	struct mt_process *processes[MT_PROCESS_BUCKETS];
	struct mt_process *told[MT_TOLD_BUCKETS];
	struct mt_order_process *records;
	size_t record_count, record_space;

	uint64_t round;
	uint64_t now_ns;       /* of the round */
	uint64_t now_counter;  /* no honest stamp of this round is above it */
	uint64_t collected_ns; /* lost counters were */
	uint64_t checked_ns;   /* processes without events were looked up in /proc */
	uint64_t lookup_round; /* the last one in which numbers were looked up in /proc */
	uint64_t lookup_ns;    /* and since when */
	uint32_t gone;	       /* readers whose thread is gone */
	uint32_t ended_binds;
	struct mt_space *orphans; /* of processes that were ended by force */
	bool nested;		  /* some process counts in another PID namespace */
	bool lacks_numbers;	  /* the kernel's Forks do not say what a child calls itself */
	bool finishing;
	bool forcing; /* nothing waits any more */
	bool frozen;  /* nothing new is noted */
};

/* drain.c: binds, readers */
void mt_drain_note(struct mt_order *order);
void mt_drain_settle(struct mt_order *order);
void mt_drain_collect_lost(struct mt_order *order);
void mt_drain_free(struct mt_order *order);
bool mt_reader_drained(const struct mt_reader *reader);
/* The caller has taken it out of those that wait. */
void mt_bind_leave_gate(struct mt_order *order, struct mt_bind *bind);
void mt_reader_mark_gone(struct mt_order *order, struct mt_reader *reader);
bool mt_bind_drained(const struct mt_bind *bind);
/* The gate opens: the bind's records are `process`'s. It must be in no list. */
void mt_bind_open(struct mt_order *order, struct mt_bind *bind, struct mt_process *process);
/* Its process is another image's: nothing of it is read. It must be in no list. */
void mt_bind_refuse(struct mt_order *order, struct mt_bind *bind);
/* Nobody knows which process it was: what it recorded is counted as lost. It must be in no list. */
void mt_bind_lose(struct mt_order *order, struct mt_bind *bind);
/* Its process exited, or has another image. */
void mt_bind_end(struct mt_order *order, struct mt_bind *bind);

/* order.c: puts a reader with records into the merge */
void mt_order_admit(struct mt_order *order, struct mt_reader *reader);

#endif
