/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/artifact_filter.h"
#include "common/event_json.h"
#include "common/event_search.h"
#include "common/frame_dec.h"
#include "tests/unit/codec_support.h"

enum { STACK_BYTES = 4096 };

static void lines(const struct mt_decoded *d, struct mt_buf *out)
{
	out->len = 0;
	for (size_t i = 0; i < d->n; i++)
		if (1u << d->events[i].type & MT_EVENT_SEARCHED)
			cr_assert(!mt_event_json(&d->events[i], out));
}

/* Searched and walked, the same events are found. Returns whether the search walked. */
static bool expect_same(const struct mt_buf *content)
{
	struct mt_frame_dec *dec = mt_frame_dec_new();
	struct mt_buf searched = { 0 }, walked = { 0 };
	struct mt_decoded d;
	bool did_walk;

	cr_assert(dec);
	cr_assert_eq(mt_event_search(dec, content->data, content->len, NULL, &d, &did_walk), 0);
	cr_assert_eq(d.consumed, content->len);
	lines(&d, &searched);
	if (!did_walk)
		for (size_t i = 0; i < d.n; i++)
			cr_assert(1u << d.events[i].type & MT_EVENT_SEARCHED);
	cr_assert_eq(mt_frame_dec_run(dec, content->data, content->len, &d), 0);
	lines(&d, &walked);
	cr_assert(searched.len == walked.len &&
		  (!walked.len || !memcmp(searched.data, walked.data, walked.len)));
	mt_buf_fini(&searched);
	mt_buf_fini(&walked);
	mt_frame_dec_free(dec);
	return did_walk;
}

static struct mt_event plain(uint64_t *state, uint8_t type)
{
	struct mt_event e = {
		.type = type,
		.pid = (int32_t)rnd_wide(state),
		.tid = (int32_t)rnd_wide(state),
		.timestamp_ns = rnd_wide(state),
		.addr = rnd_wide(state),
		.size = rnd_wide(state),
	};

	if (type == MT_EVENT_FORK)
		e.aux = (uint64_t)(int64_t)(int32_t)rnd(state);
	if (type == MT_EVENT_MALLOC)
		e.stack_hash = rnd(state) & 1 ? rnd_wide(state) : 0;
	if (type == MT_EVENT_EXEC || type == MT_EVENT_EXIT || type == MT_EVENT_FORK ||
	    type == MT_EVENT_FREE)
		e.size = 0;
	return e;
}

static void pack_mapping(uint64_t *state, const void *path, size_t len, struct mt_buf *out)
{
	struct mt_event e = plain(state, MT_EVENT_MAPPING);
	struct mt_mapping m = { .dev = rnd_wide(state),
				.ino = rnd_wide(state),
				.len = rnd_wide(state),
				.path = path,
				.path_len = (uint32_t)len };

	e.size = 0;
	e.mapping = &m;
	reference_pack(&e, out);
}

static void pack_stack(uint64_t *state, const void *bytes, size_t len, struct mt_buf *out)
{
	struct mt_event e = plain(state, MT_EVENT_STACK);
	struct mt_stack s = { .hash = rnd(state), .bytes = bytes, .bytes_len = (uint32_t)len };

	e.size = 0;
	e.stack = &s;
	reference_pack(&e, out);
}

/* The place by either code, which must agree. */
static size_t place(const uint8_t *bytes, size_t len, size_t at)
{
	size_t found = mt_event_search_place(bytes, len, at);

	cr_assert_eq(mt_event_search_place_plain(bytes, len, at), found);
	return found;
}

/* Every place of every needle is found, wherever it stands among the vectors. */
Test(event_search, each_name_is_found_at_every_place)
{
	static const char *const names[] = { "Fork", "Exec", "Exit", "Stac", "ppin" };
	static uint8_t bytes[200];

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		for (size_t len = 4; len <= sizeof(bytes); len += 7)
			for (size_t at = 0; at + 4 <= len; at++) {
				memset(bytes, 'F', sizeof(bytes));
				memcpy(bytes + at, names[n], 4);
				cr_assert_eq(place(bytes, len, 0), at);
				cr_assert_eq(place(bytes, at + 3, 0), at + 3);
				cr_assert_eq(place(bytes, len, at + 1), len);
			}
}

Test(event_search, random_bytes_hold_what_a_plain_search_finds)
{
	static uint8_t bytes[4096];
	uint64_t state = 5;

	for (size_t round = 0; round < 300; round++) {
		size_t at = 0, want = 0;

		/* Few letters, so that names come about by chance. */
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t) "ForkExecExitStackMappin\xa4\x80"[rnd(&state) % 25];
		for (size_t k = 0; k < 10; k++)
			memcpy(bytes + rnd(&state) % 4090,
			       (const char *[]){ "Fork", "Exec", "Exit", "Stac", "ppin" }[k % 5],
			       4);
		do {
			for (; want + 4 <= sizeof(bytes); want++)
				if (!memcmp(bytes + want, "Fork", 4) ||
				    !memcmp(bytes + want, "Exec", 4) ||
				    !memcmp(bytes + want, "Exit", 4) ||
				    !memcmp(bytes + want, "Stac", 4) ||
				    !memcmp(bytes + want, "ppin", 4))
					break;
			if (want + 4 > sizeof(bytes))
				want = sizeof(bytes);
			at = place(bytes, sizeof(bytes), at);
			cr_assert_eq(at, want);
			at++;
			want++;
		} while (want < sizeof(bytes));
	}
}

/* What a Stack may hold: the begin of the content so far. Returns how much. */
static size_t copy_of(const struct mt_buf *content, uint8_t bytes[STACK_BYTES])
{
	size_t len = content->len < STACK_BYTES ? content->len : STACK_BYTES;

	if (len)
		memcpy(bytes, content->data, len);
	return len;
}

/* Of all widths, and past stacks of any bytes: found without a walk. */
Test(event_search, writers_events_are_found_without_a_walk)
{
	static const uint8_t types[] = { MT_EVENT_MALLOC, MT_EVENT_FREE, MT_EVENT_FORK,
					 MT_EVENT_EXEC, MT_EVENT_EXIT };
	static uint8_t bytes[STACK_BYTES];
	uint64_t state = 3;
	size_t walks = 0;

	for (size_t round = 0; round < 400; round++) {
		struct mt_buf content = { 0 };

		for (size_t i = 0; i < 200; i++) {
			struct mt_event e = plain(&state, types[rnd(&state) % 5]);

			if (rnd(&state) % 16 == 0)
				pack_mapping(&state, "/lib/libc.so.6", 14, &content);
			else if (rnd(&state) % 16 == 0)
				pack_stack(&state, bytes, copy_of(&content, bytes), &content);
			else
				reference_pack(&e, &content);
		}
		walks += expect_same(&content);
		mt_buf_fini(&content);
	}
	/* Only where four random bytes are a name. */
	cr_expect_leq(walks, 1);
}

/* Each number of a hint that the search can judge: right it is searched, wrong it is walked. */
Test(event_search, hints_are_held_against_what_is_found)
{
	static const uint8_t types[] = { MT_EVENT_MALLOC, MT_EVENT_FORK, MT_EVENT_EXEC,
					 MT_EVENT_EXIT, MT_EVENT_FREE };
	struct mt_frame_hint right = { 0 }, wrong[9];
	struct mt_frame_dec *dec = mt_frame_dec_new();
	struct mt_buf content = { 0 };
	struct mt_decoded d;
	uint64_t state = 7;
	bool walked;

	for (size_t i = 0; i < 100; i++) {
		struct mt_event e = plain(&state, types[i % 5]);

		reference_pack(&e, &content);
		if (i % 20 == 0)
			pack_mapping(&state, "/lib/libc.so.6", 14, &content);
		if (i % 25 == 0)
			pack_stack(&state, "Exit", 4, &content);
	}
	cr_assert(dec && !mt_frame_dec_run(dec, content.data, content.len, &d));
	mt_frame_hint_add(&right, d.events, d.n);
	cr_assert(right.exits == 20 && right.stacks == 4 && right.mappings == 5);
	cr_assert(!mt_event_search(dec, content.data, content.len, &right, &d, &walked));
	cr_expect(!walked);
	cr_expect_eq(d.n, right.forks + right.execs + right.mappings);
	for (size_t i = 0; i < 9; i++)
		wrong[i] = right;
	wrong[0].mappings--;
	wrong[1].forks++;
	wrong[2].execs = 0;
	wrong[3].exits++;
	wrong[4].stacks--;
	wrong[5].events = 1;
	wrong[6].first_ns = UINT64_MAX;
	wrong[7].last_ns = 0;
	wrong[8].exits--;
	for (size_t i = 0; i < 9; i++) {
		cr_assert(!mt_event_search(dec, content.data, content.len, &wrong[i], &d, &walked));
		cr_expect(walked, "number %zu is wrong", i);
		cr_expect_eq(d.n, right.events);
	}
	mt_frame_dec_free(dec);
	mt_buf_fini(&content);
}

Test(event_search, random_events_of_all_types_are_as_walked)
{
	uint64_t state = 11;

	for (size_t round = 0; round < 300; round++) {
		static struct event_store store;
		struct mt_buf content = { 0 };

		for (size_t i = 0; i < 50; i++) {
			struct mt_event e;

			rnd_event(&state, &store, &e);
			if (e.type != MT_EVENT_STACK || round % 2)
				reference_pack(&e, &content);
		}
		expect_same(&content);
		mt_buf_fini(&content);
	}
}

/* Paths and stacks that hold encoded events, whole and cut, and names of types. */
Test(event_search, events_inside_paths_and_stacks_are_none)
{
	/* The hexadecimal digits of an escape would go on into "F". */
	static const char type_fork[] = "\xa4type\xa4\106ork";
	static const char *const names[] = { "/opt/Fork/Exec/Mapping", "/Stack", "ppinppin",
					     type_fork };
	uint64_t state = 17;
	size_t walks = 0;

	for (size_t round = 0; round < 2000; round++) {
		struct mt_buf content = { 0 }, fake = { 0 };
		struct mt_event e = plain(&state, rnd(&state) & 1 ? MT_EVENT_FORK : MT_EVENT_EXEC);
		bool stacks = round % 4 == 3;

		reference_pack(&e, &fake);
		reference_pack(&e, &fake);
		if (rnd(&state) % 3 == 0)
			fake.len -= rnd(&state) % (fake.len / 2);
		for (size_t i = 0; i < 20; i++) {
			const char *name = names[rnd(&state) % 4];

			e = plain(&state, MT_EVENT_MALLOC);
			reference_pack(&e, &content);
			if (stacks)
				pack_stack(&state, fake.data, fake.len, &content);
			else if (rnd(&state) & 1)
				pack_mapping(&state, fake.data, fake.len, &content);
			else
				pack_mapping(&state, name, strlen(name), &content);
			if (rnd(&state) % 4 == 0) {
				e = plain(&state, MT_EVENT_FORK);
				reference_pack(&e, &content);
			}
		}
		walks += expect_same(&content);
		mt_buf_fini(&content);
		mt_buf_fini(&fake);
	}
	cr_expect_leq(walks, 1);
}

/* Other orders of keys, and strings in a longer form, as a foreign writer may have them. */
Test(event_search, foreign_forms_are_walked)
{
	static const char *const events[] = {
		"\x86\xa4type\xa4"
		"Fork\xa3pid\x01\xa3tid\x01\xa9timestamp\x05\xa4"
		"addr\x00\xaaparent_pid\x02",
		"\x85\xa3pid\x01\xa3tid\x01\xa9timestamp\x05\xa4"
		"addr\x00\xd9\x04type\xd9\x04"
		"Exec",
	};
	static const size_t lens[] = { 1 + 5 + 5 + 5 + 5 + 11 + 6 + 12,
				       1 + 5 + 5 + 11 + 6 + 6 + 6 };

	for (size_t i = 0; i < 2; i++) {
		struct mt_buf content = { 0 };
		uint64_t state = 9;
		struct mt_event e = plain(&state, MT_EVENT_FREE);

		reference_pack(&e, &content);
		cr_assert(!mt_buf_append(&content, events[i], lens[i]));
		reference_pack(&e, &content);
		cr_expect(expect_same(&content));
		mt_buf_fini(&content);
	}
}

/* A frame with a Stack that begins with `before`, in whose bytes is an Exec. Returns whether it was
 * walked. */
static bool stack_walks(const char *before, size_t len)
{
	static const char after[] = "\xa8"
				    "fp_chain\x90\xa9truncated\xc2";
	struct mt_buf content = { 0 }, fake = { 0 };
	uint64_t state = 29;
	struct mt_event exec = plain(&state, MT_EVENT_EXEC),
			malloc = plain(&state, MT_EVENT_MALLOC);
	uint8_t fake_len;
	bool walked;

	reference_pack(&malloc, &content);
	reference_pack(&exec, &fake);
	fake_len = (uint8_t)fake.len;
	cr_assert(!mt_buf_append(&content, before, len) && !mt_buf_append(&content, &fake_len, 1) &&
		  !mt_buf_append(&content, fake.data, fake.len) &&
		  !mt_buf_append(&content, after, sizeof(after) - 1));
	reference_pack(&malloc, &content);
	walked = expect_same(&content);
	mt_buf_fini(&content);
	mt_buf_fini(&fake);
	return walked;
}

/* The same for a Stack, whose bytes are then no place to search in. */
Test(event_search, foreign_stacks_are_walked)
{
	static const char type_first[] = "\x8b\xa4type\xa5Stack\xa3pid\x01\xa3tid\x01\xa9timestamp"
					 "\x05\xa4"
					 "addr\x00\xa4hash\x07\xa2sp\x00\xa4regs\x90\xa5"
					 "bytes\xc4";

	cr_expect(stack_walks(type_first, sizeof(type_first) - 1));
}

/* What a Stack has beyond the usual is stepped over with it. */
Test(event_search, stacks_of_a_later_version_are_stepped_over)
{
	static const char more[] =
		"\x8c\xa3pid\x01\xa3tid\x01\xa9timestamp\x05\xa4"
		"addr\x00\xa4type\xa5Stack\xa4hash\x07\xa2sp\x00\xa4more\x92\x01\xc0"
		"\xa4regs\x90\xa5"
		"bytes\xc4";
	static const char other[] =
		"\x8b\xa3pid\x01\xa3tid\x01\xa9timestamp\x05\xa4"
		"addr\x00\xa4type\xa5Stack\xa2sp\x00\xa4hash\x07\xa4regs\x90\xa5"
		"bytes\xc4";

	cr_expect_not(stack_walks(more, sizeof(more) - 1));
	cr_expect_not(stack_walks(other, sizeof(other) - 1));
}

/* Bytes that are no events give an error or nothing, as in a walk; never a read outside. */
Test(event_search, garbage_is_survived)
{
	struct mt_frame_dec *dec = mt_frame_dec_new();
	uint64_t state = 23;

	for (size_t round = 0; round < 3000; round++) {
		struct mt_buf content = { 0 };
		struct mt_decoded d;
		uint8_t *tight;
		bool walked;

		for (size_t i = 0; i < 5; i++) {
			struct mt_event e = plain(&state, MT_EVENT_EXEC);

			reference_pack(&e, &content);
			pack_mapping(&state, "/x", 2, &content);
			pack_stack(&state, "Forks", 5, &content);
		}
		for (size_t i = 0; i < 4; i++)
			content.data[rnd(&state) % content.len] = (uint8_t)rnd(&state);
		content.len -= rnd(&state) % content.len;
		/* Of exactly that size, for sanitizers. */
		tight = malloc(content.len ? content.len : 1);
		memcpy(tight, content.data, content.len);
		(void)mt_event_search(dec, tight, content.len, NULL, &d, &walked);
		free(tight);
		mt_buf_fini(&content);
	}
	mt_frame_dec_free(dec);
}
