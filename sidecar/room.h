/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What becomes of programs that start while there is no room for another image: the output stands
 * still, or is so slow that the merge does not come to take images in. They are held where they
 * say hello, for as long as the output moves, and --max-wait without that, once for all of them.
 * Then they run untracked, until there is room again. With --on-full=drop nobody is held.
 *
 * Owner and threads: the main one. Pure: the caller reads the clock.
 */
#ifndef MT_SIDECAR_ROOM_H
#define MT_SIDECAR_ROOM_H

#include <stdbool.h>
#include <stdint.h>

enum mt_room_answer {
	MT_ROOM_TAKE,
	MT_ROOM_HOLD,
	MT_ROOM_REFUSE,
};

struct mt_room {
	bool holds; /* --on-full=block */
	uint64_t max_wait_ns;
	uint64_t full_ns;		   /* since when there is none; 0: there is */
	uint64_t held_from_ns, held_to_ns; /* programs were held, the last time */
};

/* `moved_ns`: when the output moved last; 0: never, or not known. */
enum mt_room_answer mt_room_look(struct mt_room *room, bool has_room, uint64_t moved_ns,
				 uint64_t now_ns);

/* Was a program that said hello at `time_ns` held? */
bool mt_room_was_held(const struct mt_room *room, uint64_t time_ns);

#endif
