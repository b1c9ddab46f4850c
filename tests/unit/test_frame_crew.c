/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A reader with threads gives what one without gives: events, places, diagnoses, totals. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

#include "common/event_json.h"
#include "common/frame_enc.h"
#include "common/frame_hint.h"
#include "common/meta_builder.h"
#include "tests/unit/codec_support.h"

/* Everything that a reader says of a file, as text. */
static void tell(const void *bytes, size_t len, unsigned int threads,
		 const struct mt_artifact_filter *filter, bool hints, struct mt_buf *out)
{
	struct mt_artifact_reader *r = NULL;
	struct mt_artifact_batch batch;
	char line[400];
	int fd = memfd_create("artifact", MFD_CLOEXEC), ret;

	out->len = 0;
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	if (mt_artifact_reader_open_fd(fd, &r, NULL))
		return;
	mt_artifact_reader_use_threads(r, threads);
	mt_artifact_reader_use_hints(r, hints);
	if (filter)
		mt_artifact_reader_filter(r, filter);
	do {
		const struct mt_artifact_totals *t = mt_artifact_reader_totals(r);
		const struct mt_diag *diag = mt_artifact_reader_diag(r);

		ret = mt_artifact_reader_next(r, &batch);
		for (size_t i = 0; ret == 1 && i < batch.n; i++)
			cr_assert(!mt_event_json(&batch.events[i], out));
		snprintf(line, sizeof(line),
			 "%d frame %llu in %llu at %llu; diag %d %llu %llu %llu %s; %llu %llu %llu "
			 "%llu %llu %llu\n",
			 ret, (unsigned long long)batch.frame, (unsigned long long)batch.in_frame,
			 (unsigned long long)batch.offset, diag->kind,
			 (unsigned long long)diag->frame, (unsigned long long)diag->offset,
			 (unsigned long long)diag->missing, diag->why,
			 (unsigned long long)t->frames,
			 filter && filter->search ? 0ull : (unsigned long long)t->events,
			 (unsigned long long)t->unknown, (unsigned long long)t->skippable,
			 (unsigned long long)t->hints, (unsigned long long)t->passed_frames);
		cr_assert(!mt_buf_append(out, line, strlen(line)));
	} while (ret == 1 || (ret == -EBADMSG && mt_artifact_reader_skip_damaged(r)));
	mt_artifact_reader_close(r);
}

static void expect_same(const void *bytes, size_t len, const struct mt_artifact_filter *filter,
			bool hints, const char *what, size_t which)
{
	struct mt_buf serial = { 0 }, parallel = { 0 };

	tell(bytes, len, 0, filter, hints, &serial);
	for (unsigned int threads = 1; threads <= 3; threads += 2) {
		tell(bytes, len, threads, filter, hints, &parallel);
		cr_assert(serial.len == parallel.len &&
				  (!serial.len || !memcmp(serial.data, parallel.data, serial.len)),
			  "%s %zu, %u threads: serial %.*s parallel %.*s", what, which, threads,
			  serial.len > 2000 ? 0 : (int)serial.len, serial.data,
			  parallel.len > 2000 ? 0 : (int)parallel.len, parallel.data);
	}
	mt_buf_fini(&serial);
	mt_buf_fini(&parallel);
}

static void append_frame_of(struct mt_buf *file, struct mt_frame_enc *enc,
			    const struct mt_event *events, size_t n, bool hinted)
{
	struct mt_frame_hint hint = { 0 };
	uint8_t head[MT_FRAME_HINT_BYTES];
	const uint8_t *frame;
	size_t len;

	cr_assert(!mt_frame_enc_frame(enc, events, n, &frame, &len));
	hint.frame_len = len;
	mt_frame_hint_add(&hint, events, n);
	mt_frame_hint_write(&hint, head);
	if (hinted)
		cr_assert(!mt_buf_append(file, head, sizeof(head)));
	cr_assert(!mt_buf_append(file, frame, len));
}

/* Random events of all types; some frames with hints, metadata at both ends. */
static struct mt_buf make_file(size_t frames, size_t events, uint64_t seed)
{
	struct event_store *stores = calloc(events, sizeof(*stores));
	struct mt_event *group = calloc(events, sizeof(*group));
	struct mt_meta_builder b;
	struct mt_frame_enc *enc;
	struct mt_buf file = { 0 };
	const uint8_t *meta;
	size_t len;

	cr_assert(stores && group && !mt_frame_enc_new(1, &enc));
	mt_meta_init(&b, MT_META_OPEN);
	cr_assert(!mt_meta_finish(&b, &meta, &len));
	cr_assert(!mt_buf_append(&file, meta, len));
	mt_meta_fini(&b);
	for (size_t f = 0; f < frames; f++) {
		for (size_t i = 0; i < events; i++)
			rnd_event(&seed, &stores[i], &group[i]);
		append_frame_of(&file, enc, group, events, rnd(&seed) % 4 != 0);
	}
	mt_frame_enc_free(enc);
	free(stores);
	free(group);
	return file;
}

static const struct mt_artifact_filter modules = { .types = MT_EVENT_SEARCHED,
						   .to_ns = UINT64_MAX,
						   .search = true };

Test(frame_crew, golden_files_read_the_same)
{
	static const char *const names[] = { "corrupt_middle", "empty",		"every_kind",
					     "frames",	       "skippable",	"stacks",
					     "streamed_frame", "truncated_tail" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char name[64];
		struct mt_buf file;

		snprintf(name, sizeof(name), "%s.msgpack", names[i]);
		file = golden_load(name);
		expect_same(file.data, file.len, NULL, true, name, 0);
		expect_same(file.data, file.len, &modules, true, name, 1);
		mt_buf_fini(&file);
	}
}

Test(frame_crew, random_files_read_the_same)
{
	static const int32_t pids[] = { 1, 0, INT32_MAX };
	static const struct mt_artifact_filter filters[] = {
		{ .types = UINT32_MAX, .from_ns = 100, .to_ns = UINT32_MAX },
		{ .types = 1u << MT_EVENT_STACK, .to_ns = UINT64_MAX },
		{ .types = UINT32_MAX, .to_ns = UINT64_MAX, .pids = pids, .pids_n = 3 },
	};

	for (uint64_t seed = 0; seed < 6; seed++) {
		struct mt_buf file = make_file(12, 60, seed);

		expect_same(file.data, file.len, NULL, true, "all", seed);
		expect_same(file.data, file.len, NULL, false, "no hints", seed);
		expect_same(file.data, file.len, &modules, true, "modules", seed);
		expect_same(file.data, file.len, &modules, false, "modules, no hints", seed);
		for (size_t i = 0; i < 3; i++)
			expect_same(file.data, file.len, &filters[i], true, "filter", i);
		mt_buf_fini(&file);
	}
}

Test(frame_crew, cut_files_read_the_same)
{
	struct mt_buf file = make_file(4, 12, 77);

	for (size_t cut = 0; cut < file.len; cut += 97) {
		expect_same(file.data, cut, NULL, true, "cut", cut);
		expect_same(file.data, cut, &modules, true, "cut, modules", cut);
	}
	mt_buf_fini(&file);
}

Test(frame_crew, damaged_files_read_the_same)
{
	struct mt_buf file = make_file(5, 12, 78), copy = { 0 };
	uint64_t state = 4;

	for (size_t round = 0; round < 300; round++) {
		copy.len = 0;
		cr_assert(!mt_buf_append(&copy, file.data, file.len));
		for (size_t i = 0; i <= round % 3; i++)
			copy.data[rnd(&state) % copy.len] = (uint8_t)rnd(&state);
		expect_same(copy.data, copy.len, NULL, true, "damage", round);
	}
	mt_buf_fini(&file);
	mt_buf_fini(&copy);
}

/* Two frames of an Exec and two Frees; the hint of the first is the caller's to change. */
static struct mt_buf file_with_hint(struct mt_frame_hint *ret_hint)
{
	struct mt_event events[3] = {
		{ .type = MT_EVENT_EXEC, .pid = 1, .tid = 1, .timestamp_ns = 5 },
		{ .type = MT_EVENT_FREE, .pid = 1, .tid = 1, .timestamp_ns = 6 },
		{ .type = MT_EVENT_FREE, .pid = 1, .tid = 1, .timestamp_ns = 7 },
	};
	struct mt_frame_enc *enc;
	struct mt_buf file = { 0 };

	cr_assert(!mt_frame_enc_new(1, &enc));
	append_frame_of(&file, enc, events, 3, true);
	append_frame_of(&file, enc, events, 3, false);
	cr_assert(!mt_frame_hint_parse(file.data + MT_SKIPPABLE_HEAD,
				       MT_FRAME_HINT_BYTES - MT_SKIPPABLE_HEAD, ret_hint));
	mt_frame_enc_free(enc);
	return file;
}

/* The first frame is given and then found damaged, the second read. */
static void expect_damage(const struct mt_buf *file, unsigned int threads,
			  const struct mt_artifact_filter *filter)
{
	struct mt_artifact_reader *r = reader_of(file->data, file->len);
	size_t n = filter ? 1 : 3;
	struct mt_artifact_batch batch;

	mt_artifact_reader_use_threads(r, threads);
	if (filter)
		mt_artifact_reader_filter(r, filter);
	cr_assert_eq(mt_artifact_reader_next(r, &batch), 1);
	cr_assert_eq(mt_artifact_reader_next(r, &batch), -EBADMSG);
	cr_expect_eq(mt_artifact_reader_diag(r)->frame, 0);
	cr_expect_eq(mt_artifact_reader_diag(r)->missing, 0);
	cr_assert(mt_artifact_reader_skip_damaged(r));
	cr_assert_eq(mt_artifact_reader_next(r, &batch), 1);
	cr_expect_eq(batch.n, n);
	cr_assert_eq(mt_artifact_reader_next(r, &batch), 0);
	mt_artifact_reader_close(r);
}

/* A lie about a frame that the crew decodes is damage of that frame. */
Test(frame_crew, a_lie_is_damage)
{
	struct mt_frame_hint hint;
	struct mt_buf file = file_with_hint(&hint);

	hint.events = 4;
	mt_frame_hint_write(&hint, file.data);
	for (unsigned int threads = 0; threads < 2; threads++)
		expect_damage(&file, threads, NULL);
	mt_buf_fini(&file);
}

/* Also for who looks for modules, if it is about what he meets. */
Test(frame_crew, a_lie_is_damage_for_who_searches)
{
	struct mt_frame_hint hint, lies[4];
	struct mt_buf file = file_with_hint(&hint);

	lies[0] = lies[1] = lies[2] = lies[3] = hint;
	lies[0].execs = 2;
	lies[1].mappings = 1;
	lies[2].exits = 1;
	lies[3].last_ns = 4;
	for (size_t i = 0; i < 4; i++) {
		mt_frame_hint_write(&lies[i], file.data);
		for (unsigned int threads = 0; threads < 2; threads++)
			expect_damage(&file, threads, &modules);
	}
	mt_buf_fini(&file);
}

/* A frame that holds module events by its hint is searched, as one without a hint is. */
Test(frame_crew, hinted_frames_are_searched)
{
	struct mt_frame_hint hint;
	struct mt_buf file = file_with_hint(&hint);
	struct mt_artifact_reader *r = reader_of(file.data, file.len);

	mt_artifact_reader_use_threads(r, 1);
	mt_artifact_reader_filter(r, &modules);
	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->searched_frames, 2);
	cr_expect_eq(mt_artifact_reader_totals(r)->passed_frames, 0);
	mt_artifact_reader_close(r);
	mt_buf_fini(&file);
}

/* Of a damaged frame the hint says how much is missing. */
Test(frame_crew, missing_events_are_known_from_the_hint)
{
	struct mt_event events[500];
	struct mt_frame_enc *enc;
	struct mt_buf file = { 0 };

	for (size_t i = 0; i < 500; i++)
		events[i] = (struct mt_event){
			.type = MT_EVENT_FREE, .pid = 1, .tid = 1, .addr = i * 64, .timestamp_ns = i
		};
	cr_assert(!mt_frame_enc_new(1, &enc));
	for (size_t f = 0; f < 3; f++)
		append_frame_of(&file, enc, events, 500, true);
	memset(file.data + MT_FRAME_HINT_BYTES + 30, 0xff, 20);
	for (unsigned int threads = 0; threads < 3; threads++) {
		struct mt_artifact_reader *r = reader_of(file.data, file.len);

		mt_artifact_reader_use_threads(r, threads);
		cr_expect_eq(read_all(r, NULL), -EBADMSG);
		cr_expect_eq(mt_artifact_reader_diag(r)->missing, 500);
		cr_assert(mt_artifact_reader_skip_damaged(r));
		cr_expect_eq(read_all(r, NULL), 0);
		cr_expect_eq(mt_artifact_reader_totals(r)->events, 1000);
		mt_artifact_reader_close(r);
	}
	mt_frame_enc_free(enc);
	mt_buf_fini(&file);
}

/* A file that loses its end while it is read is a cut file, and no signal. */
Test(frame_crew, a_file_may_shrink)
{
	struct mt_buf file = make_file(40, 40, 5);
	int fd = memfd_create("artifact", MFD_CLOEXEC);
	struct mt_artifact_reader *r;
	struct mt_artifact_batch batch;
	int ret;

	cr_assert_eq(write(fd, file.data, file.len), (ssize_t)file.len);
	cr_assert(!mt_artifact_reader_open_fd(dup(fd), &r, NULL));
	mt_artifact_reader_use_threads(r, 2);
	cr_assert_eq(mt_artifact_reader_next(r, &batch), 1);
	cr_assert(!ftruncate(fd, (off_t)(file.len / 3)));
	do {
		ret = mt_artifact_reader_next(r, &batch);
	} while (ret == 1);
	cr_expect(ret == 0 || ret == -EBADMSG);
	mt_artifact_reader_close(r);
	close(fd);
	mt_buf_fini(&file);
}

/* 1,000 frames of a few bytes, each of which is 7 MiB of nothing but one event. */
Test(frame_crew, memory_is_bounded)
{
	static uint8_t event[7 << 20];
	static const char head[] = "\x86\xa3pid\x01\xa3tid\x01\xa9timestamp\x05\xa4"
				   "addr\x00\xa4type\xa4"
				   "Exec\xa1x\xc6";
	struct mt_buf file = { 0 };
	struct mt_artifact_reader *r;
	struct rusage before, after;
	size_t n = sizeof(head) - 1 + 4, one;

	memcpy(event, head, sizeof(head) - 1);
	event[n - 4] = (uint8_t)((sizeof(event) - n) >> 24);
	event[n - 3] = (uint8_t)((sizeof(event) - n) >> 16);
	event[n - 2] = (uint8_t)((sizeof(event) - n) >> 8);
	event[n - 1] = (uint8_t)(sizeof(event) - n);
	append_frame(&file, event, sizeof(event));
	one = file.len;
	for (size_t i = 1; i < 200; i++) {
		cr_assert(!mt_buf_reserve(&file, one));
		memcpy(file.data + file.len, file.data, one);
		file.len += one;
	}
	getrusage(RUSAGE_SELF, &before);
	r = reader_of(file.data, file.len);
	mt_artifact_reader_use_threads(r, 2);
	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->events, 200);
	getrusage(RUSAGE_SELF, &after);
	mt_artifact_reader_close(r);
	/* 4 frames under way: 4 * (8 + 8 + 20) MiB at most. */
	cr_expect_lt(after.ru_maxrss - before.ru_maxrss, 144 << 10);
	mt_buf_fini(&file);
}
