/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What becomes of programs that start while there is no room for them. */
#include <criterion/criterion.h>

#include "sidecar/room.h"

#define MS UINT64_C(1000000)

static struct mt_room room;

static void setup(void)
{
	room = (struct mt_room){ .holds = true, .max_wait_ns = 1000 * MS };
}

TestSuite(room, .init = setup);

Test(room, programs_wait_once_for_an_output_that_does_not_move)
{
	cr_assert_eq(mt_room_look(&room, true, 0, 5 * MS), MT_ROOM_TAKE);
	cr_assert_eq(mt_room_look(&room, false, 0, 10 * MS), MT_ROOM_HOLD);
	cr_assert_eq(mt_room_look(&room, false, 0, 1009 * MS), MT_ROOM_HOLD);
	cr_assert_eq(mt_room_look(&room, false, 0, 1010 * MS), MT_ROOM_REFUSE);
	cr_assert_eq(mt_room_look(&room, false, 0, 9000 * MS), MT_ROOM_REFUSE);
	cr_assert_eq(mt_room_look(&room, true, 0, 9001 * MS), MT_ROOM_TAKE);
	cr_assert_eq(mt_room_look(&room, false, 0, 9002 * MS), MT_ROOM_HOLD);
}

Test(room, programs_wait_for_one_that_moves)
{
	cr_assert_eq(mt_room_look(&room, false, 0, 10 * MS), MT_ROOM_HOLD);
	cr_assert_eq(mt_room_look(&room, false, 4500 * MS, 5000 * MS), MT_ROOM_HOLD);
	cr_assert_eq(mt_room_look(&room, false, 4500 * MS, 5500 * MS), MT_ROOM_REFUSE);
	cr_assert_eq(mt_room_look(&room, false, 5600 * MS, 5700 * MS), MT_ROOM_HOLD);
}

Test(room, who_gave_up_was_held)
{
	cr_assert_not(mt_room_was_held(&room, 5 * MS));
	mt_room_look(&room, false, 0, 10 * MS);
	mt_room_look(&room, false, 0, 900 * MS);
	mt_room_look(&room, true, 0, 950 * MS);
	cr_assert(mt_room_was_held(&room, 10 * MS));
	cr_assert(mt_room_was_held(&room, 900 * MS));
	cr_assert_not(mt_room_was_held(&room, 9 * MS));
	cr_assert_not(mt_room_was_held(&room, 951 * MS));
}

Test(room, with_drop_nobody_waits)
{
	room.holds = false;
	cr_assert_eq(mt_room_look(&room, false, 0, 10 * MS), MT_ROOM_REFUSE);
	cr_assert_not(mt_room_was_held(&room, 10 * MS));
}
