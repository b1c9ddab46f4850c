/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Readers with threads, for TSan: batches come whole and in order with any number of threads, also
 * when the reader stops half-way, changes what it looks for, or meets damage. Plain main() since
 * criterion does not run under TSan.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/artifact_reader.h"
#include "common/frame_enc.h"
#include "common/frame_hint.h"

enum { FRAMES = 60, EVENTS = 3000 };

static int number, failed, file;
static long damaged_at;

static void check(bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
	failed += !good;
}

/* Frames of events that count up; every seventh has an Exec, every third no hint. */
static bool make_file(void)
{
	static struct mt_event events[EVENTS];
	struct mt_frame_enc *enc;
	uint64_t next = 0;
	bool good = true;

	file = memfd_create("artifact", MFD_CLOEXEC);
	if (file < 0 || mt_frame_enc_new(-1, &enc))
		return false;
	for (unsigned f = 0; f < FRAMES && good; f++) {
		struct mt_frame_hint hint = { 0 };
		uint8_t head[MT_FRAME_HINT_BYTES];
		const uint8_t *frame;
		size_t len;

		for (unsigned i = 0; i < EVENTS; i++, next++)
			events[i] = (struct mt_event){
				.type = f % 7 == 0 && i == 5 ? MT_EVENT_EXEC : MT_EVENT_FREE,
				.addr = next,
				.timestamp_ns = next,
				.pid = 1,
				.tid = 1,
			};
		good = !mt_frame_enc_frame(enc, events, EVENTS, &frame, &len);
		hint.frame_len = len;
		mt_frame_hint_add(&hint, events, EVENTS);
		mt_frame_hint_write(&hint, head);
		if (f % 3)
			good &= write(file, head, sizeof(head)) == (ssize_t)sizeof(head);
		if (f == 30)
			damaged_at = lseek(file, 0, SEEK_CUR) + 40;
		good &= write(file, frame, len) == (ssize_t)len;
	}
	mt_frame_enc_free(enc);
	return good;
}

static struct mt_artifact_reader *open_reader(unsigned threads)
{
	struct mt_artifact_reader *reader;

	if (mt_artifact_reader_open_fd(dup(file), &reader, NULL))
		exit(1);
	mt_artifact_reader_use_threads(reader, threads);
	return reader;
}

static void reads_all(unsigned threads)
{
	struct mt_artifact_reader *reader = open_reader(threads);
	struct mt_artifact_batch batch;
	uint64_t next = 0;
	bool good = true;

	while (mt_artifact_reader_next(reader, &batch) == 1)
		for (size_t i = 0; i < batch.n; i++)
			good &= batch.events[i].addr == next++;
	check(good && next == FRAMES * EVENTS, "all events in order");
	mt_artifact_reader_close(reader);
}

static void stops_half_way(unsigned threads)
{
	static const struct mt_artifact_filter execs = { .types = 1u << MT_EVENT_EXEC,
							 .to_ns = UINT64_MAX,
							 .search = true };
	bool good = true;

	for (unsigned stop = 0; stop < 20; stop++) {
		struct mt_artifact_reader *reader = open_reader(threads);
		struct mt_artifact_batch batch;
		size_t found = 0;

		for (unsigned i = 0; i < stop; i++)
			good &= mt_artifact_reader_next(reader, &batch) == 1;
		if (stop % 2) {
			mt_artifact_reader_use_hints(reader, stop % 4 == 1);
			mt_artifact_reader_filter(reader, &execs);
			while (mt_artifact_reader_next(reader, &batch) == 1)
				found += batch.n;
			good &= found == (FRAMES + 6) / 7 - (stop + 6) / 7;
		}
		mt_artifact_reader_close(reader);
	}
	check(good, "a reader that stops, or looks for something else");
}

static void meets_damage(unsigned threads)
{
	struct mt_artifact_reader *reader = open_reader(threads);
	struct mt_artifact_batch batch;
	uint64_t events = 0, damages = 0;
	int ret;

	for (;;) {
		ret = mt_artifact_reader_next(reader, &batch);
		if (ret == 1)
			events += batch.n;
		else if (ret != -EBADMSG || !mt_artifact_reader_skip_damaged(reader))
			break;
		else
			damages++;
	}
	check(!ret && damages == 1 && events == (FRAMES - 1) * EVENTS, "damage costs its frame");
	mt_artifact_reader_close(reader);
}

int main(void)
{
	static const uint8_t garbage[16] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const unsigned counts[] = { 1, 2, 5 };

	if (!make_file())
		return 1;
	for (unsigned i = 0; i < 3; i++) {
		reads_all(counts[i]);
		stops_half_way(counts[i]);
	}
	if (pwrite(file, garbage, sizeof(garbage), damaged_at) != (ssize_t)sizeof(garbage))
		return 1;
	for (unsigned i = 0; i < 3; i++)
		meets_damage(counts[i]);
	printf("1..%d\n", number);
	return failed != 0;
}
