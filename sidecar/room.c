/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/room.h"

enum mt_room_answer mt_room_look(struct mt_room *room, bool has_room, uint64_t moved_ns,
				 uint64_t now_ns)
{
	uint64_t since_ns;

	if (has_room) {
		room->full_ns = 0;
		return MT_ROOM_TAKE;
	}
	if (!room->holds)
		return MT_ROOM_REFUSE;
	if (room->full_ns == 0) {
		room->full_ns = now_ns;
		room->held_from_ns = now_ns;
	}
	since_ns = moved_ns > room->full_ns ? moved_ns : room->full_ns;
	if (now_ns - since_ns >= room->max_wait_ns)
		return MT_ROOM_REFUSE;
	room->held_to_ns = now_ns;
	return MT_ROOM_HOLD;
}

bool mt_room_was_held(const struct mt_room *room, uint64_t time_ns)
{
	return time_ns >= room->held_from_ns && time_ns <= room->held_to_ns;
}
