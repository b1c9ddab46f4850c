/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes an artifact from a script on standard input to the file that is named, through the
 * encoder and the metadata builder. One command a line, words separated by spaces; empty lines and
 * lines that begin with # are passed over. Numbers as in C.
 *
 *   malloc|calloc|aligned PID TID TIME ADDR SIZE [STACK]
 *   realloc PID TID TIME OLD ADDR SIZE       OLD is - when it is absent
 *   free PID TID TIME ADDR
 *   fork CHILD TID TIME PARENT
 *   exec|exit PID TID TIME
 *   mapping PID TID TIME ADDR LEN PATH
 *   stack PID TID TIME HASH
 *   rss PID TID TIME MEMBER SIZE
 *   mmap|munmap|brk PID TID TIME ADDR SIZE
 *   frame                                    ends the data frame
 *   raw HEX                                  a data frame of these bytes
 *   meta NAME ... done                       a metadata frame; in it:
 *     u64 KEY VALUE, text KEY WORD, nil KEY, map KEY, array KEY, end
 *                                            KEY is - inside an array
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "common/artifact_writer.h"
#include "common/event.h"
#include "common/frame_enc.h"
#include "common/meta_builder.h"

#define WORDS 8

struct maker {
	struct mt_artifact_writer writer;
	struct mt_frame_enc *encoder;
	struct mt_event events[MT_BATCH_EVENTS];
	size_t count;
	/* What events point to; lives as long as the frame. */
	struct mt_mapping mappings[256];
	struct mt_stack stacks[256];
	size_t pointed;
	struct mt_meta_builder meta;
	bool in_meta;
	unsigned line;
};

static void fail(const struct maker *maker, const char *why)
{
	fprintf(stderr, "mkartifact: line %u: %s\n", maker->line, why);
	exit(1);
}

static void append(struct maker *maker, const void *bytes, size_t len)
{
	int ret = mt_artifact_writer_append(&maker->writer, bytes, len);

	if (ret)
		fail(maker, strerror(-ret));
}

static void end_frame(struct maker *maker)
{
	const uint8_t *frame;
	size_t len;

	if (!maker->count)
		return;
	if (mt_frame_enc_frame(maker->encoder, maker->events, maker->count, &frame, &len))
		fail(maker, "cannot encode");
	append(maker, frame, len);
	for (size_t i = 0; i < maker->pointed; i++)
		free((char *)maker->mappings[i].path);
	memset(maker->mappings, 0, sizeof(maker->mappings));
	maker->count = 0;
	maker->pointed = 0;
}

static uint64_t number(const struct maker *maker, const char *word)
{
	char *end;
	uint64_t value;

	if (!word)
		fail(maker, "a word is missing");
	errno = 0;
	value = strtoull(word, &end, 0);
	if (errno || *end)
		fail(maker, "not a number");
	return value;
}

static uint8_t type_of(const char *name)
{
	static const struct {
		const char *name;
		uint8_t type;
	} types[] = {
		{ "malloc", MT_EVENT_MALLOC },
		{ "calloc", MT_EVENT_CALLOC },
		{ "aligned", MT_EVENT_ALIGNED_ALLOC },
		{ "realloc", MT_EVENT_REALLOC },
		{ "free", MT_EVENT_FREE },
		{ "fork", MT_EVENT_FORK },
		{ "exec", MT_EVENT_EXEC },
		{ "exit", MT_EVENT_EXIT },
		{ "mapping", MT_EVENT_MAPPING },
		{ "stack", MT_EVENT_STACK },
		{ "rss", MT_EVENT_RSS },
		{ "mmap", MT_EVENT_MMAP },
		{ "munmap", MT_EVENT_MUNMAP },
		{ "brk", MT_EVENT_BRK },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].name, name))
			return types[i].type;
	return MT_EVENT_NONE;
}

/* The words behind those that every event has. */
static void fill(struct maker *maker, struct mt_event *event, char **word)
{
	struct mt_mapping *mapping = &maker->mappings[maker->pointed];
	struct mt_stack *stack = &maker->stacks[maker->pointed];

	switch (event->type) {
	case MT_EVENT_REALLOC:
		if (word[0] && strcmp(word[0], "-")) {
			event->flags = MT_EVENT_HAS_OLD;
			event->aux = number(maker, word[0]);
		}
		event->addr = number(maker, word[1]);
		event->size = number(maker, word[2]);
		break;
	case MT_EVENT_FREE:
		event->addr = number(maker, word[0]);
		break;
	case MT_EVENT_FORK:
		event->aux = number(maker, word[0]);
		break;
	case MT_EVENT_EXEC:
	case MT_EVENT_EXIT:
		break;
	case MT_EVENT_MAPPING:
		event->addr = number(maker, word[0]);
		mapping->len = number(maker, word[1]);
		mapping->path = strdup(word[2] ? word[2] : "");
		mapping->path_len = (uint32_t)strlen(mapping->path);
		event->mapping = mapping;
		maker->pointed++;
		break;
	case MT_EVENT_STACK:
		*stack = (struct mt_stack){ .hash = number(maker, word[0]) };
		event->stack = stack;
		maker->pointed++;
		break;
	case MT_EVENT_RSS:
		event->member = (int32_t)number(maker, word[0]);
		event->size = number(maker, word[1]);
		break;
	default:
		event->addr = number(maker, word[0]);
		event->size = number(maker, word[1]);
		if (word[2])
			event->stack_hash = number(maker, word[2]);
		break;
	}
}

static void add_event(struct maker *maker, uint8_t type, char **word)
{
	struct mt_event *event = &maker->events[maker->count];

	if (maker->pointed == 256 || maker->count == MT_BATCH_EVENTS)
		fail(maker, "too many events in one frame");
	*event = (struct mt_event){ .type = type };
	event->pid = (int32_t)number(maker, word[1]);
	event->tid = (int32_t)number(maker, word[2]);
	event->timestamp_ns = number(maker, word[3]);
	fill(maker, event, word + 4);
	maker->count++;
}

static void add_raw(struct maker *maker, const char *hex)
{
	uint8_t content[4096];
	uint8_t frame[8192];
	size_t len = 0, size;

	for (; hex && hex[0] && hex[1] && len < sizeof(content); hex += 2) {
		unsigned byte;

		if (sscanf(hex, "%2x", &byte) != 1)
			fail(maker, "not hexadecimal");
		content[len++] = (uint8_t)byte;
	}
	end_frame(maker);
	size = ZSTD_compress(frame, sizeof(frame), content, len, 1);
	if (ZSTD_isError(size))
		fail(maker, "cannot compress");
	append(maker, frame, size);
}

static void add_meta(struct maker *maker, char **word)
{
	const char *key = word[1] && strcmp(word[1], "-") ? word[1] : NULL;
	const uint8_t *frame;
	size_t len;

	if (!strcmp(word[0], "u64")) {
		mt_meta_put_u64(&maker->meta, key, number(maker, word[2]));
	} else if (!strcmp(word[0], "text")) {
		mt_meta_put_str(&maker->meta, key, word[2] ? word[2] : "");
	} else if (!strcmp(word[0], "nil")) {
		mt_meta_put_nil(&maker->meta, key);
	} else if (!strcmp(word[0], "map")) {
		mt_meta_begin_map(&maker->meta, key);
	} else if (!strcmp(word[0], "array")) {
		mt_meta_begin_array(&maker->meta, key);
	} else if (!strcmp(word[0], "end")) {
		mt_meta_end(&maker->meta);
	} else if (!strcmp(word[0], "done")) {
		if (mt_meta_finish(&maker->meta, &frame, &len))
			fail(maker, "the metadata is not well formed");
		append(maker, frame, len);
		mt_meta_fini(&maker->meta);
		maker->in_meta = false;
	} else {
		fail(maker, "not a command inside meta");
	}
}

static void take_line(struct maker *maker, char *line)
{
	char *word[WORDS + 4] = { 0 };
	size_t count = 0;

	for (char *at = strtok(line, " \t\n"); at && count < WORDS; at = strtok(NULL, " \t\n"))
		word[count++] = at;
	if (!count || word[0][0] == '#')
		return;
	if (maker->in_meta) {
		add_meta(maker, word);
	} else if (!strcmp(word[0], "frame")) {
		end_frame(maker);
	} else if (!strcmp(word[0], "raw")) {
		add_raw(maker, word[1]);
	} else if (!strcmp(word[0], "meta")) {
		end_frame(maker);
		mt_meta_init(&maker->meta, word[1] ? word[1] : "");
		maker->in_meta = true;
	} else if (type_of(word[0]) != MT_EVENT_NONE) {
		add_event(maker, type_of(word[0]), word);
	} else {
		fail(maker, "not a command");
	}
}

int main(int argc, char **argv)
{
	static struct maker maker;
	char line[8192];
	int fd;

	if (argc != 2) {
		fprintf(stderr, "usage: mkartifact FILE < script\n");
		return 2;
	}
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || mt_artifact_writer_init(&maker.writer, fd, 0) ||
	    mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &maker.encoder)) {
		perror(argv[1]);
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		maker.line++;
		take_line(&maker, line);
	}
	end_frame(&maker);
	mt_frame_enc_free(maker.encoder);
	if (close(fd)) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
