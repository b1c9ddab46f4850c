/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/frame_enc.h"
#include "tests/unit/codec_support.h"

enum { GROUP = 500 };

static struct mt_frame_enc *new_encoder(int level)
{
	struct mt_frame_enc *enc = NULL;

	cr_assert(!mt_frame_enc_new(level, &enc));
	return enc;
}

/* Serializes and compares with what msgpack-c made. */
static void expect_content(struct mt_frame_enc *enc, const struct mt_event *events, size_t n,
			   const struct mt_buf *want)
{
	const uint8_t *content;
	size_t len, i = 0;

	cr_assert(!mt_frame_enc_serialize(enc, events, n, &content, &len));
	while (i < len && i < want->len && content[i] == want->data[i])
		i++;
	cr_assert(len == want->len && i == len, "differs at byte %zu (%zu and %zu bytes)", i, len,
		  want->len);
	cr_assert_eq(mt_frame_enc_content_len(enc), len);
}

/* Events of all types; from a few threads, so that cached heads are met again. */
static void random_groups(size_t events, uint64_t seed, bool few_threads)
{
	struct event_store *stores = malloc(sizeof(*stores) * GROUP);
	struct mt_event group[GROUP];
	struct mt_frame_enc *enc = new_encoder(MT_FRAME_LEVEL_DEFAULT);
	struct mt_buf want = { 0 };

	cr_assert(stores);
	for (size_t done = 0; done < events; done += GROUP) {
		want.len = 0;
		for (size_t i = 0; i < GROUP; i++) {
			rnd_event(&seed, &stores[i], &group[i]);
			if (few_threads) {
				group[i].pid = (int32_t)(rnd(&seed) % 3) - 1;
				group[i].tid = (int32_t)(rnd(&seed) % 200) - 100;
			}
			reference_pack(&group[i], &want);
		}
		expect_content(enc, group, GROUP, &want);
	}
	mt_buf_fini(&want);
	mt_frame_enc_free(enc);
	free(stores);
}

Test(frame_enc, bytes_are_those_of_msgpack_c)
{
	random_groups(500000, 1, false);
}

Test(frame_enc, bytes_are_those_of_msgpack_c_with_few_threads)
{
	random_groups(500000, 2, true);
}

Test(frame_enc, every_integer_width_at_its_edges)
{
	struct mt_frame_enc *enc = new_encoder(MT_FRAME_LEVEL_DEFAULT);
	struct mt_buf want = { 0 };

	for (unsigned int bit = 0; bit < 64; bit++) {
		for (int64_t off = -1; off <= 1; off++) {
			uint64_t v = (1ull << bit) + (uint64_t)off;
			struct mt_event e[] = {
				{ .type = MT_EVENT_REALLOC,
				  .flags = MT_EVENT_HAS_OLD,
				  .aux = v,
				  .timestamp_ns = v,
				  .addr = v,
				  .size = v,
				  .stack_hash = v,
				  .pid = (int32_t)v,
				  .tid = (int32_t)-v },
				{ .type = MT_EVENT_RMAP,
				  .delta = (int64_t)v,
				  .member = (int32_t)v },
				{ .type = MT_EVENT_RMAP,
				  .delta = (int64_t)-v,
				  .member = (int32_t)-v },
				{ .type = MT_EVENT_FORK, .aux = v },
			};

			want.len = 0;
			for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++)
				reference_pack(&e[i], &want);
			expect_content(enc, e, sizeof(e) / sizeof(e[0]), &want);
		}
	}
	mt_buf_fini(&want);
	mt_frame_enc_free(enc);
}

Test(frame_enc, large_strings_and_arrays_have_the_shortest_header)
{
	static const uint32_t lens[] = { 0, 15, 16, 31, 32, 255, 256, 65535, 65536, 70000 };
	struct mt_frame_enc *enc = new_encoder(MT_FRAME_LEVEL_DEFAULT);
	uint64_t *numbers = calloc(70000, sizeof(*numbers));
	char *path = malloc(70000);
	struct mt_buf want = { 0 };

	cr_assert(numbers && path);
	memset(path, 'a', 70000);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct mt_mapping m = { .path = path, .path_len = lens[i] };
		struct mt_stack s = { .regs = numbers,
				      .regs_len = lens[i],
				      .fp_chain = numbers,
				      .fp_chain_len = lens[i],
				      .bytes = (const uint8_t *)path,
				      .bytes_len = lens[i] };
		struct mt_event e[] = { { .type = MT_EVENT_MAPPING, .mapping = &m },
					{ .type = MT_EVENT_STACK, .stack = &s } };

		want.len = 0;
		reference_pack(&e[0], &want);
		reference_pack(&e[1], &want);
		expect_content(enc, e, 2, &want);
	}
	mt_buf_fini(&want);
	free(numbers);
	free(path);
	mt_frame_enc_free(enc);
}

Test(frame_enc, paths_become_valid_utf8)
{
	/* Each is what Unicode's chapter 3.9 and from_utf8_lossy() of Rust make of it. */
	static const struct {
		const char *path, *clean;
	} cases[] = {
		{ "/tmp/\xff"
		  "a",
		  "/tmp/\xef\xbf\xbd"
		  "a" },
		{ "\xe2\x82"
		  "a",
		  "\xef\xbf\xbd"
		  "a" },
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf0\x9f\x98", "\xef\xbf\xbd" },
		{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "ok/\xc3\xb6", "ok/\xc3\xb6" },
	};
	struct mt_frame_enc *enc = new_encoder(MT_FRAME_LEVEL_DEFAULT);
	struct mt_buf want = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mt_mapping raw = { .path = cases[i].path,
					  .path_len = (uint32_t)strlen(cases[i].path) };
		struct mt_mapping clean = { .path = cases[i].clean,
					    .path_len = (uint32_t)strlen(cases[i].clean) };
		struct mt_event e = { .type = MT_EVENT_MAPPING, .mapping = &clean };

		want.len = 0;
		reference_pack(&e, &want);
		e.mapping = &raw;
		expect_content(enc, &e, 1, &want);
	}
	mt_buf_fini(&want);
	mt_frame_enc_free(enc);
}

Test(frame_enc, frame_is_one_zstd_frame_with_its_size)
{
	static struct mt_event events[1000];
	struct mt_frame_enc *enc = new_encoder(MT_FRAME_LEVEL_DEFAULT);
	const uint8_t *frame;
	struct mt_buf content = { 0 };
	size_t len, got;

	for (size_t i = 0; i < 1000; i++)
		events[i] = (struct mt_event){
			.type = MT_EVENT_MALLOC, .size = i, .timestamp_ns = i * 1000, .addr = i << 4
		};
	cr_assert(!mt_frame_enc_frame(enc, events, 1000, &frame, &len));
	cr_expect_eq(ZSTD_findFrameCompressedSize(frame, len), len);
	cr_expect_eq(ZSTD_getFrameContentSize(frame, len), mt_frame_enc_content_len(enc));
	cr_assert(!mt_buf_reserve(&content, mt_frame_enc_content_len(enc)));
	got = ZSTD_decompress(content.data, content.cap, frame, len);
	cr_expect_eq(got, mt_frame_enc_content_len(enc));
	mt_buf_fini(&content);
	mt_frame_enc_free(enc);
}

Test(frame_enc, same_events_give_the_same_frame)
{
	static struct mt_event events[GROUP];
	static struct event_store stores[GROUP];
	struct mt_frame_enc *a = new_encoder(MT_FRAME_LEVEL_DEFAULT);
	struct mt_frame_enc *b = new_encoder(MT_FRAME_LEVEL_DEFAULT);
	const uint8_t *fa, *fb;
	uint64_t seed = 7;
	size_t na, nb;

	for (size_t i = 0; i < GROUP; i++)
		rnd_event(&seed, &stores[i], &events[i]);
	/* One of them has made other frames before. */
	for (size_t n = 0; n < GROUP; n += 50)
		cr_assert(!mt_frame_enc_frame(a, events + n, 50, &fa, &na));
	cr_assert(!mt_frame_enc_frame(a, events, GROUP, &fa, &na));
	cr_assert(!mt_frame_enc_frame(b, events, GROUP, &fb, &nb));
	cr_expect(na == nb && !memcmp(fa, fb, na));
	mt_frame_enc_free(a);
	mt_frame_enc_free(b);
}

Test(frame_enc, no_events_make_an_empty_frame)
{
	struct mt_frame_enc *enc = new_encoder(MT_FRAME_LEVEL_DEFAULT);
	const uint8_t *frame;
	size_t len;

	cr_assert(!mt_frame_enc_frame(enc, NULL, 0, &frame, &len));
	cr_expect_gt(len, 0);
	cr_expect_eq(ZSTD_getFrameContentSize(frame, len), 0);
	mt_frame_enc_free(enc);
}

Test(frame_enc, wrong_input_is_refused)
{
	struct mt_frame_enc *enc = NULL;
	struct mt_event none = { 0 }, beyond = { .type = MT_EVENT_TYPES };
	const uint8_t *out;
	size_t len;

	cr_expect_eq(mt_frame_enc_new(mt_frame_level_max() + 1, &enc), -EINVAL);
	cr_expect_eq(mt_frame_enc_new(mt_frame_level_min() - 1, &enc), -EINVAL);
	cr_expect_eq(mt_frame_enc_new(0, &enc), -EINVAL);
	enc = new_encoder(mt_frame_level_max());
	mt_frame_enc_free(enc);
	enc = new_encoder(3);
	cr_expect_eq(mt_frame_enc_serialize(enc, &none, 1, &out, &len), -EINVAL);
	cr_expect_eq(mt_frame_enc_frame(enc, &beyond, 1, &out, &len), -EINVAL);
	cr_expect_eq(mt_frame_enc_frame(enc, &none, MT_BATCH_EVENTS + 1, &out, &len), -EINVAL);
	mt_frame_enc_free(enc);
	mt_frame_enc_free(NULL);
}

Test(frame_enc, too_much_content_is_refused)
{
	static struct mt_event events[300];
	struct mt_frame_enc *enc = new_encoder(MT_FRAME_LEVEL_DEFAULT);
	struct mt_stack stack = { .bytes_len = 1 << 20 };
	const uint8_t *out;
	uint8_t *bytes = calloc(1, 1 << 20);
	size_t len;

	cr_assert(bytes);
	stack.bytes = bytes;
	for (size_t i = 0; i < 300; i++)
		events[i] = (struct mt_event){ .type = MT_EVENT_STACK, .stack = &stack };
	cr_expect_eq(mt_frame_enc_serialize(enc, events, 300, &out, &len), -EMSGSIZE);
	/* It is as good as before. */
	cr_expect_eq(mt_frame_enc_serialize(enc, events, 2, &out, &len), 0);
	free(bytes);
	mt_frame_enc_free(enc);
}
