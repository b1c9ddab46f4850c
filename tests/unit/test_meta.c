/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/crc32.h"
#include "common/meta_builder.h"
#include "common/meta_value.h"

static const size_t heads = MT_SKIPPABLE_HEAD + MT_META_HEAD;

/* Builds a frame like those of a run. */
static void build(struct mt_meta_builder *b, const uint8_t **ret_frame, size_t *ret_len)
{
	mt_meta_init(b, MT_META_OPEN);
	mt_meta_put_u64(b, "big", UINT64_MAX);
	mt_meta_put_i64(b, "small", -5);
	mt_meta_put_bool(b, "yes", true);
	mt_meta_put_nil(b, "unknown");
	mt_meta_put_f64(b, "ratio", 0.5);
	mt_meta_put_text(b, "raw", "a\xff", 2);
	mt_meta_put_str(b, "none", NULL);
	mt_meta_begin_array(b, "command");
	mt_meta_put_str(b, NULL, "ls");
	mt_meta_begin_map(b, NULL);
	mt_meta_put_u64(b, "pid", 7);
	mt_meta_end(b);
	mt_meta_end(b);
	mt_meta_put_str(b, "last", "x");
	cr_assert_eq(mt_meta_finish(b, ret_frame, ret_len), 0);
}

Test(meta, what_was_put_is_found)
{
	struct mt_meta_value map, value, list;
	struct mt_mp_object key;
	struct mt_meta_builder b;
	struct mt_meta_iter it;
	const uint8_t *frame;
	const char *text;
	size_t len, n;
	uint64_t u;
	int64_t i;
	bool yes;

	build(&b, &frame, &len);
	cr_assert_eq(mt_meta_parse(frame + MT_SKIPPABLE_HEAD, len - MT_SKIPPABLE_HEAD, &map), 0);
	cr_expect(mt_meta_get_text(&map, "frame", &text, &n) && n == 4 && !memcmp(text, "open", 4));
	cr_expect(mt_meta_get_u64(&map, "big", &u) && u == UINT64_MAX);
	cr_expect(mt_meta_get_i64(&map, "small", &i) && i == -5);
	cr_expect(mt_meta_get_bool(&map, "yes", &yes) && yes);
	cr_expect(mt_meta_get(&map, "unknown", &value) && value.object.type == MT_MP_NIL);
	cr_expect(mt_meta_get(&map, "none", &value) && value.object.type == MT_MP_NIL);
	cr_expect(mt_meta_get(&map, "ratio", &value) && value.object.f == 0.5);
	cr_expect(mt_meta_get(&map, "raw", &value) && value.object.type == MT_MP_BIN);
	cr_expect(mt_meta_get_text(&map, "last", &text, &n) && n == 1 && *text == 'x');
	/* Of another type, or not there: nothing is set. */
	cr_expect_not(mt_meta_get_u64(&map, "small", &u));
	cr_expect_not(mt_meta_get_i64(&map, "big", &i));
	cr_expect_not(mt_meta_get_u64(&map, "absent", &u));
	cr_expect_not(mt_meta_get(&value, "frame", &value));
	cr_expect_eq(u, UINT64_MAX);

	cr_assert(mt_meta_get(&map, "command", &list));
	it = mt_meta_iter(&list);
	cr_assert(mt_meta_next(&it, &key, &value));
	cr_expect(key.u == 0 && mt_mp_str_is(&value.object, "ls", 2));
	cr_assert(mt_meta_next(&it, &key, &value));
	cr_expect(key.u == 1 && mt_meta_get_u64(&value, "pid", &u) && u == 7);
	cr_expect_not(mt_meta_next(&it, &key, &value));
	mt_meta_fini(&b);
}

Test(meta, frame_is_laid_out_as_described)
{
	struct mt_meta_builder b;
	const uint8_t *frame;
	size_t len;

	mt_meta_init(&b, "x");
	cr_assert_eq(mt_meta_finish(&b, &frame, &len), 0);
	/* Head, then {"frame":"x"} with a map 32 header. */
	cr_assert_eq(len, heads + 5 + 6 + 2);
	cr_expect(!memcmp(frame, "\x5d\x2a\x4d\x18\x19\0\0\0MTRK\1\1\0\0", 16));
	cr_expect(!memcmp(frame + heads,
			  "\xdf\0\0\0\1\xa5"
			  "frame\xa1x",
			  13));
	cr_expect_eq(mt_crc32("123456789", 9), 0xcbf43926u); /* the check value of this CRC */
	mt_meta_fini(&b);
}

Test(meta, every_flipped_bit_is_seen)
{
	struct mt_meta_value map;
	struct mt_meta_builder b;
	const uint8_t *frame;
	uint8_t *copy;
	size_t len;

	build(&b, &frame, &len);
	copy = malloc(len);
	cr_assert(copy);
	for (size_t bit = 0; bit < (len - MT_SKIPPABLE_HEAD) * 8; bit++) {
		memcpy(copy, frame, len);
		copy[MT_SKIPPABLE_HEAD + bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (bit / 8 == 6 || bit / 8 == 7)
			continue; /* reserved, ignored */
		cr_expect(mt_meta_parse(copy + MT_SKIPPABLE_HEAD, len - MT_SKIPPABLE_HEAD, &map),
			  "bit %zu", bit);
	}
	for (size_t cut = 0; cut < len - MT_SKIPPABLE_HEAD; cut++)
		cr_expect(mt_meta_parse(frame + MT_SKIPPABLE_HEAD, cut, &map));
	free(copy);
	mt_meta_fini(&b);
}

/* A payload with a true checksum: what is wrong in it is found all the same. */
static int parse_payload(const void *payload, size_t len)
{
	uint8_t *inside = calloc(1, MT_META_HEAD + len);
	struct mt_meta_value map;
	uint32_t crc = mt_crc32(payload, len);
	int ret;

	cr_assert(inside);
	memcpy(inside, MT_META_TAG, 4);
	inside[4] = MT_META_VERSION;
	inside[5] = MT_META_MAP;
	for (int i = 0; i < 4; i++)
		inside[8 + i] = (uint8_t)(crc >> 8 * i);
	memcpy(inside + MT_META_HEAD, payload, len);
	ret = mt_meta_parse(inside, MT_META_HEAD + len, &map);
	free(inside);
	return ret;
}

Test(meta, payloads_that_are_no_map_are_damage)
{
	char deep[40];

	cr_expect_eq(parse_payload("\x80", 1), 0);
	cr_expect_eq(parse_payload("\x80\x80", 2), -EBADMSG);
	cr_expect_eq(parse_payload("\x90", 1), -EBADMSG);
	cr_expect_eq(parse_payload("\x81\x01", 2), -EBADMSG);
	cr_expect_eq(parse_payload("\xc1", 1), -EBADMSG);
	cr_expect_eq(parse_payload("", 0), -EBADMSG);
	cr_expect_eq(parse_payload("\x81\x01\xdd\xff\xff\xff\xff", 7), -EBADMSG);
	memset(deep, 0x91, sizeof(deep));
	deep[0] = (char)0x81;
	deep[1] = 1;
	deep[16] = (char)0xc0; /* the map and 14 arrays in it */
	cr_expect_eq(parse_payload(deep, 17), 0);
	deep[16] = (char)0x91;
	deep[38] = (char)0xc0;
	cr_expect_eq(parse_payload(deep, 39), -EBADMSG);
}

Test(meta, other_tags_versions_and_kinds_are_not_ours)
{
	struct mt_meta_value map;
	uint8_t inside[MT_META_HEAD + 1] = "MTRK\1\1";

	inside[4] = 2;
	cr_expect_eq(mt_meta_parse(inside, sizeof(inside), &map), -ENOENT);
	inside[4] = 1;
	inside[5] = 9;
	cr_expect_eq(mt_meta_parse(inside, sizeof(inside), &map), -ENOENT);
	inside[0] = 'X';
	cr_expect_eq(mt_meta_parse(inside, sizeof(inside), &map), -ENOENT);
	cr_expect_eq(mt_meta_parse(inside, 3, &map), -ENOENT);
}

Test(meta, misuse_is_an_error_at_the_end)
{
	struct mt_meta_builder b;
	const uint8_t *frame;
	size_t len;

	mt_meta_init(&b, "x");
	mt_meta_put_u64(&b, NULL, 1);
	cr_expect_eq(mt_meta_finish(&b, &frame, &len), -EINVAL);
	mt_meta_fini(&b);
	mt_meta_init(&b, "x");
	mt_meta_begin_array(&b, "list");
	mt_meta_put_u64(&b, "key", 1);
	cr_expect_eq(mt_meta_finish(&b, &frame, &len), -EINVAL);
	mt_meta_fini(&b);
	mt_meta_init(&b, "x");
	mt_meta_end(&b);
	mt_meta_end(&b);
	cr_expect_eq(mt_meta_finish(&b, &frame, &len), -EINVAL);
	mt_meta_fini(&b);
	mt_meta_init(&b, "x");
	for (unsigned int i = 0; i < MT_META_DEPTH_MAX; i++)
		mt_meta_begin_map(&b, "deeper");
	cr_expect_eq(mt_meta_finish(&b, &frame, &len), -EINVAL);
	mt_meta_fini(&b);
}

Test(meta, too_large_a_frame_is_refused)
{
	struct mt_meta_builder b;
	char *text = malloc(1 << 20);
	const uint8_t *frame;
	size_t len;

	cr_assert(text);
	memset(text, 'a', 1 << 20);
	mt_meta_init(&b, "x");
	for (int i = 0; i < 17; i++)
		mt_meta_put_text(&b, "text", text, 1 << 20);
	cr_expect_eq(mt_meta_finish(&b, &frame, &len), -EMSGSIZE);
	cr_expect_lt(mt_meta_len(&b), 18u << 20);
	mt_meta_fini(&b);
	free(text);
}
