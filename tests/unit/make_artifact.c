/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * make_artifact FILE LINES EVENTS: writes an artifact of random events of all
 * types by way of our writer, and beside it the lines that a reader has to
 * find in it. For tests that read it with other people's tools.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/artifact_writer.h"
#include "common/event_json.h"
#include "common/frame_enc.h"
#include "common/meta_builder.h"
#include "tests/unit/codec_support.h"

enum { GROUP = 1000 };

static struct event_store stores[GROUP];
static struct mt_event group[GROUP];

static int write_meta(struct mt_artifact_writer *w, const char *name)
{
	struct mt_meta_builder b;
	const uint8_t *frame;
	size_t len;
	int ret;

	mt_meta_init(&b, name);
	mt_meta_put_str(&b, "state", name);
	mt_meta_put_u64(&b, "events", 7);
	mt_meta_begin_array(&b, "command");
	mt_meta_put_str(&b, NULL, "./bench");
	mt_meta_put_text(&b, NULL, "\xff", 1);
	mt_meta_end(&b);
	ret = mt_meta_finish(&b, &frame, &len);
	if (!ret)
		ret = mt_artifact_writer_append(w, frame, len);
	mt_meta_fini(&b);
	return ret;
}

static int write_events(struct mt_artifact_writer *w, size_t events, FILE *lines)
{
	struct mt_buf json = { 0 };
	struct mt_frame_enc *enc;
	uint64_t seed = 31;
	int ret;

	ret = mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &enc);
	for (size_t done = 0; done < events && !ret; done += GROUP) {
		const uint8_t *frame;
		size_t len;

		json.len = 0;
		for (size_t i = 0; i < GROUP && !ret; i++) {
			rnd_event(&seed, &stores[i], &group[i]);
			ret = mt_event_json(&group[i], &json);
		}
		if (!ret)
			ret = mt_frame_enc_frame(enc, group, GROUP, &frame, &len);
		if (!ret)
			ret = mt_artifact_writer_append(w, frame, len);
		if (!ret && fwrite(json.data, 1, json.len, lines) != json.len)
			ret = -1;
	}
	mt_frame_enc_free(enc);
	mt_buf_fini(&json);
	return ret;
}

int main(int argc, char **argv)
{
	struct mt_artifact_writer w;
	FILE *lines;
	int fd, ret;

	if (argc != 4)
		return 2;
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	lines = fopen(argv[2], "we");
	if (fd < 0 || !lines)
		return 1;
	ret = mt_artifact_writer_init(&w, fd, 0);
	if (!ret)
		ret = write_meta(&w, MT_META_OPEN);
	if (!ret)
		ret = write_events(&w, strtoul(argv[3], NULL, 10), lines);
	if (!ret)
		ret = write_meta(&w, MT_META_CLOSED);
	return ret || fclose(lines) || close(fd);
}
