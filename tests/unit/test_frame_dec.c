/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "common/event_json.h"
#include "common/frame_dec.h"
#include "common/frame_enc.h"
#include "tests/unit/codec_support.h"

enum { GROUP = 500 };

/* Content put together by hand. */
static struct mt_buf content;
static msgpack_packer pk;
static struct mt_frame_dec *dec;
static struct mt_decoded got;

static int write_content(void *data, const char *bytes, size_t len)
{
	return mt_buf_append(data, bytes, len);
}

static void setup(void)
{
	msgpack_packer_init(&pk, &content, write_content);
	dec = mt_frame_dec_new();
	cr_assert(dec);
}

static void teardown(void)
{
	mt_frame_dec_free(dec);
	mt_buf_fini(&content);
}

TestSuite(frame_dec, .init = setup, .fini = teardown);

static void key(const char *text)
{
	msgpack_pack_str_with_body(&pk, text, strlen(text));
}

static void number(const char *name, uint64_t v)
{
	key(name);
	msgpack_pack_uint64(&pk, v);
}

/* A map of 5 + more keys with the first four and the type in it. */
static void begin(const char *type, uint32_t more)
{
	msgpack_pack_map(&pk, 5 + more);
	number("pid", 1);
	number("tid", 2);
	number("timestamp", 3);
	number("addr", 4);
	key("type");
	key(type);
}

/*
 * Runs over an exact copy, so that a sanitizer sees each byte read too far.
 * The copy is kept until the next call: paths and bytes point into it.
 */
static int run(const uint8_t *data, size_t len)
{
	static uint8_t *exact;

	free(exact);
	exact = malloc(len ? len : 1);
	cr_assert(exact);
	if (len)
		memcpy(exact, data, len);
	return mt_frame_dec_run(dec, exact, len, &got);
}

static int run_content(void)
{
	return run(content.data, content.len);
}

static void expect_damage(const char *what)
{
	cr_expect_eq(run_content(), -EBADMSG, "%s", what);
	cr_expect(got.why && got.why[0], "%s", what);
	cr_expect_eq(got.n, 0);
	content.len = 0;
}

/* All fields equal, by way of the line that is made of them. */
static void expect_same(const struct mt_event *a, const struct mt_event *b)
{
	struct mt_buf ja = { 0 }, jb = { 0 };

	cr_assert(!mt_event_json(a, &ja) && !mt_event_json(b, &jb));
	cr_assert(ja.len == jb.len && !memcmp(ja.data, jb.data, ja.len), "%.*s is not %.*s",
		  (int)ja.len, ja.data, (int)jb.len, jb.data);
	mt_buf_fini(&ja);
	mt_buf_fini(&jb);
}

Test(frame_dec, gives_back_what_the_encoder_packed)
{
	struct event_store *stores = malloc(sizeof(*stores) * GROUP);
	struct mt_event group[GROUP];
	struct mt_frame_enc *enc;
	const uint8_t *bytes;
	uint64_t seed = 11;
	size_t len;

	cr_assert(stores && !mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &enc));
	for (size_t done = 0; done < 200000; done += GROUP) {
		for (size_t i = 0; i < GROUP; i++)
			rnd_event(&seed, &stores[i], &group[i]);
		cr_assert(!mt_frame_enc_serialize(enc, group, GROUP, &bytes, &len));
		cr_assert_eq(run(bytes, len), 0);
		cr_assert_eq(got.n, GROUP);
		cr_assert_eq(got.consumed, len);
		for (size_t i = 0; i < GROUP; i++)
			expect_same(&group[i], &got.events[i]);
	}
	mt_frame_enc_free(enc);
	free(stores);
}

/* One map's pairs, in another order. */
static void shuffle(const struct mt_buf *in, struct mt_buf *out, uint64_t *seed)
{
	msgpack_unpacked u;
	msgpack_packer p;
	uint32_t order[16], n;
	size_t at = 0;

	msgpack_unpacked_init(&u);
	cr_assert_eq(msgpack_unpack_next(&u, (const char *)in->data, in->len, &at),
		     MSGPACK_UNPACK_SUCCESS);
	n = u.data.via.map.size;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = (uint32_t)(rnd(seed) % (i + 1));

		order[i] = order[j];
		order[j] = i;
	}
	msgpack_packer_init(&p, out, write_content);
	msgpack_pack_map(&p, n);
	for (uint32_t i = 0; i < n; i++) {
		msgpack_pack_object(&p, u.data.via.map.ptr[order[i]].key);
		msgpack_pack_object(&p, u.data.via.map.ptr[order[i]].val);
	}
	msgpack_unpacked_destroy(&u);
}

Test(frame_dec, takes_keys_in_any_order)
{
	struct event_store store;
	struct mt_buf in = { 0 };
	struct mt_event e;
	uint64_t seed = 12;

	for (size_t i = 0; i < 20000; i++) {
		in.len = content.len = 0;
		rnd_event(&seed, &store, &e);
		reference_pack(&e, &in);
		shuffle(&in, &content, &seed);
		cr_assert_eq(run_content(), 0);
		cr_assert_eq(got.n, 1);
		expect_same(&e, &got.events[0]);
	}
	mt_buf_fini(&in);
}

Test(frame_dec, takes_integers_in_any_form)
{
	/* size as uint 64, uint 8, int 8, int 16, int 32, int 64 of the value 5. */
	static const char *const forms[] = {
		"\xcf\0\0\0\0\0\0\0\5", "\xcc\5", "\xd0\5", "\xd1\0\5", "\xd2\0\0\0\5",
		"\xd3\0\0\0\0\0\0\0\5",
	};
	static const size_t lens[] = { 9, 2, 2, 3, 5, 9 };

	for (size_t i = 0; i < 6; i++) {
		begin("Malloc", 1);
		key("size");
		cr_assert(!mt_buf_append(&content, forms[i], lens[i]));
		cr_expect_eq(run_content(), 0);
		cr_assert_eq(got.n, 1);
		cr_expect_eq(got.events[0].size, 5);
		content.len = 0;
	}
}

Test(frame_dec, takes_long_headers)
{
	/* map 32, str 8, str 16, str 32 where fix forms would do; behind it, room for the fast
	 * path. */
	static const char text[] = "\xdf\0\0\0\5\xd9\3pid\1\xda\0\3tid\2\xdb\0\0\0\x9timestamp\3"
				   "\xa4"
				   "addr\4\xa4type\xd9\4Free";

	cr_assert(!mt_buf_append(&content, text, sizeof(text) - 1));
	for (int i = 0; i < 10; i++)
		begin("Free", 0);
	cr_expect_eq(run_content(), 0);
	cr_expect_eq(got.n, 11);
	cr_expect_eq(got.events[0].timestamp_ns, 3);
	cr_expect_eq(got.events[0].type, MT_EVENT_FREE);
}

static void pack_nested(void)
{
	msgpack_pack_map(&pk, 2);
	key("a");
	msgpack_pack_array(&pk, 2);
	msgpack_pack_double(&pk, 1.5);
	msgpack_pack_nil(&pk);
	msgpack_pack_int(&pk, -5);
	msgpack_pack_ext_with_body(&pk, "xyz", 3, 7);
}

Test(frame_dec, skips_unknown_keys)
{
	for (int i = 0; i < 5; i++) {
		begin("Malloc", 4);
		number("size", 64);
		key("later");
		pack_nested();
		msgpack_pack_int(&pk, 17);
		pack_nested();
		number("parent_pid",
		       1); /* a key of another type of event, of a wrong value for it too */
	}
	begin("Free", 1);
	key("size");
	key("large");
	cr_expect_eq(run_content(), 0);
	cr_assert_eq(got.n, 6);
	cr_expect_eq(got.events[4].size, 64);
	cr_expect_eq(got.events[5].size, 0);
}

Test(frame_dec, counts_unknown_types)
{
	begin("Free", 0);
	begin("Teleport\n\xff", 1);
	key("size");
	pack_nested();
	begin("Other", 0);
	begin("Free", 0);
	cr_expect_eq(run_content(), 0);
	cr_expect_eq(got.n, 2);
	cr_expect_eq(got.unknown, 2);
	cr_expect_str_eq(got.unknown_name, "Teleport??");
	cr_expect_eq(got.consumed, content.len);
}

Test(frame_dec, optional_keys_may_be_absent_or_nil)
{
	begin("Realloc", 3);
	number("size", 1);
	key("old_addr");
	msgpack_pack_nil(&pk);
	key("stack_hash");
	msgpack_pack_nil(&pk);
	begin("Realloc", 2);
	number("old_addr", 0);
	number("size", 1);
	cr_expect_eq(run_content(), 0);
	cr_assert_eq(got.n, 2);
	cr_expect_eq(got.events[0].flags, 0);
	cr_expect_eq(got.events[0].stack_hash, 0);
	cr_expect_eq(got.events[1].flags, MT_EVENT_HAS_OLD);
	cr_expect_eq(got.events[1].aux, 0);
}

Test(frame_dec, required_keys_that_are_missing_are_damage)
{
	begin("Malloc", 0);
	expect_damage("no size");
	begin("Fork", 0);
	expect_damage("no parent");
	begin("Rmap", 1);
	number("member", 1);
	expect_damage("no delta");
	begin("Mapping", 1);
	key("path");
	key("/x");
	expect_damage("no dev");
	begin("Stack", 1);
	number("hash", 1);
	expect_damage("no sp");
	msgpack_pack_map(&pk, 1);
	number("pid", 1);
	expect_damage("no type");
	msgpack_pack_map(&pk, 4);
	number("tid", 2);
	number("timestamp", 3);
	number("addr", 4);
	key("type");
	key("Free");
	expect_damage("no pid");
	msgpack_pack_map(&pk, 0);
	expect_damage("an empty map");
}

Test(frame_dec, values_that_do_not_fit_are_damage)
{
	begin("Malloc", 1);
	key("size");
	msgpack_pack_int(&pk, -1);
	expect_damage("negative size");
	begin("Malloc", 1);
	key("size");
	msgpack_pack_double(&pk, 1);
	expect_damage("float");
	begin("Malloc", 1);
	key("size");
	key("1");
	expect_damage("text");
	begin("Fork", 1);
	number("parent_pid", 1ull << 31);
	expect_damage("pid above 31 bits");
	begin("Fork", 1);
	key("parent_pid");
	msgpack_pack_int64(&pk, INT64_C(-2147483649));
	expect_damage("pid below 32 bits");
	begin("Rmap", 2);
	number("member", 1);
	number("delta", 1ull << 63);
	expect_damage("delta above 63 bits");
	begin("Mapping", 5);
	number("path", 1);
	number("dev", 1);
	number("ino", 1);
	number("file_offset", 1);
	number("len", 1);
	expect_damage("a path that is a number");
	begin("Malloc", 2);
	number("size", 1);
	number("size", 1);
	expect_damage("a key twice");
}

Test(frame_dec, what_is_no_event_is_damage)
{
	msgpack_pack_int(&pk, 5);
	expect_damage("a number");
	key("pid");
	expect_damage("a string");
	msgpack_pack_array(&pk, 1);
	msgpack_pack_int(&pk, 5);
	expect_damage("an array");
	cr_assert(!mt_buf_append(&content, "\xc1", 1));
	expect_damage("the byte that msgpack does not use");
	msgpack_pack_map(&pk, 1);
	cr_assert(!mt_buf_append(&content, "\xc1", 1));
	expect_damage("that byte as a key");
}

Test(frame_dec, events_before_damage_are_given)
{
	size_t good;

	begin("Free", 0);
	begin("Free", 0);
	good = content.len;
	begin("Malloc", 0);
	cr_expect_eq(run_content(), -EBADMSG);
	cr_expect_eq(got.n, 2);
	cr_expect_eq(got.consumed, good);
}

/* Each event of each type, cut at each byte: never an event, never damage, never too far. */
Test(frame_dec, every_cut_is_an_incomplete_event)
{
	struct event_store store;
	struct mt_event e;
	uint64_t seed = 13;

	for (size_t i = 0; i < 400; i++) {
		size_t whole;

		content.len = 0;
		rnd_event(&seed, &store, &e);
		begin("Free", 0);
		whole = content.len;
		reference_pack(&e, &content);
		for (size_t cut = whole + 1; cut < content.len; cut++) {
			cr_assert_eq(run(content.data, cut), -EAGAIN);
			cr_assert_eq(got.n, 1);
			cr_assert_eq(got.consumed, whole);
		}
	}
}

Test(frame_dec, huge_claims_cost_nothing)
{
	static const char *const heads[] = {
		"\xdf\xff\xff\xff\xff",	    /* map of 4 G pairs */
		"\x81\xdb\xff\xff\xff\xff", /* key of 4 GiB */
		"\x81\xa3xyz\xdd\xff\xff\xff\xff",
		"\x81\xa5"
		"bytes\xc6\xff\xff\xff\xff",
		"\x81\xa8"
		"fp_chain\xdd\xff\xff\xff\xff",
		"\x81\xa4path\xc9\xff\xff\xff\xff",
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		content.len = 0;
		cr_assert(!mt_buf_append(&content, heads[i], strlen(heads[i])));
		cr_expect_eq(run_content(), -EAGAIN);
		cr_expect_eq(got.n, 0);
	}
}

Test(frame_dec, an_event_that_is_too_large_is_damage)
{
	size_t len = 17 << 20;
	uint8_t *zeros = calloc(1, len);

	cr_assert(zeros);
	zeros[0] = 0x81;
	zeros[1] = 0xa1;
	zeros[2] = 'x';
	zeros[3] = 0xdd; /* array of 4 G zeros */
	memset(zeros + 4, 0xff, 4);
	cr_expect_eq(mt_frame_dec_run(dec, zeros, len, &got), -EBADMSG);
	free(zeros);
}

Test(frame_dec, deep_nesting_needs_no_stack)
{
	size_t depth = 8 << 20;

	begin("Free", 1);
	key("deep");
	cr_assert(!mt_buf_reserve(&content, depth + 1));
	memset(content.data + content.len, 0x91, depth);
	content.len += depth;
	content.data[content.len++] = 0xc0;
	cr_expect_eq(run_content(), 0);
	cr_expect_eq(got.n, 1);
}

Test(frame_dec, an_array_that_is_too_long_is_damage)
{
	begin("Stack", 6);
	number("hash", 1);
	number("sp", 1);
	key("bytes");
	msgpack_pack_bin_with_body(&pk, "", 0);
	key("truncated");
	msgpack_pack_true(&pk);
	key("fp_chain");
	msgpack_pack_array(&pk, 0);
	key("regs");
	msgpack_pack_array(&pk, (1 << 20) + 1);
	for (int i = 0; i <= 1 << 20; i++)
		msgpack_pack_uint64(&pk, 1);
	expect_damage("regs");
}

/* Many arrays in few bytes: a batch ends before they take much memory. */
Test(frame_dec, large_stacks_end_a_batch_early)
{
	size_t want = 60, n = 0, at = 0;

	for (size_t i = 0; i < want; i++) {
		begin("Stack", 6);
		number("hash", 1);
		number("sp", 1);
		key("bytes");
		msgpack_pack_bin_with_body(&pk, "", 0);
		key("truncated");
		msgpack_pack_true(&pk);
		key("regs");
		msgpack_pack_array(&pk, 0);
		key("fp_chain");
		msgpack_pack_array(&pk, 100000);
		for (int j = 0; j < 100000; j++)
			msgpack_pack_uint64(&pk, 1);
	}
	while (at < content.len) {
		cr_assert_eq(mt_frame_dec_run(dec, content.data + at, content.len - at, &got), 0);
		cr_assert_gt(got.n, 0);
		cr_assert_lt(got.n, 30);
		n += got.n;
		at += got.consumed;
	}
	cr_expect_eq(n, want);
}

/* Bits flipped in good content: any result, but no read outside (a sanitizer sees it). */
Test(frame_dec, flipped_bits_do_no_harm)
{
	struct event_store store;
	struct mt_event e;
	uint64_t seed = 14;
	size_t damaged = 0;

	for (size_t i = 0; i < 3000; i++) {
		content.len = 0;
		for (int j = 0; j < 4; j++) {
			rnd_event(&seed, &store, &e);
			reference_pack(&e, &content);
		}
		for (int j = 0; j < 20; j++) {
			size_t bit = rnd(&seed) % (content.len * 8);

			content.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			damaged += run_content() != 0;
			for (size_t k = 0; k < got.n; k++)
				expect_same(&got.events[k], &got.events[k]);
		}
	}
	cr_expect_gt(damaged, 1000);
}
