/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/mappings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sidecar/patience.h"

/* A program may have as many as it likes; what it was started with is far below this. */
#define MAPPINGS_MAX 4096

static const char deleted[] = " (deleted)";

/* The kernel writes a line break in a name as \012, and nothing else in another way. */
static uint32_t unescape(char *path)
{
	char *from = path, *to = path;

	while (*from) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to++ = '\n';
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return (uint32_t)(to - path);
}

/* As the kernel's sources: without the mark of a file that is gone. */
static uint32_t without_mark(const char *path, uint32_t len)
{
	const uint32_t mark = sizeof(deleted) - 1;

	if (len <= mark || strcmp(path + len - mark, deleted) != 0 || access(path, F_OK) == 0)
		return len;
	return len - mark;
}

bool mt_mappings_parse(char *line, struct mt_kev *ret_event)
{
	uint64_t start, end, offset, ino;
	unsigned major, minor;
	char prot[5] = "";
	int at = 0;
	char *path;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &start,
		   &end, prot, &offset, &major, &minor, &ino, &at) != 7 ||
	    at == 0 || prot[2] != 'x' || end <= start)
		return false;
	path = line + at;
	if (*path != '/')
		return false;
	*ret_event = (struct mt_kev){ .type = MT_KEV_MAPPING,
				      .addr = start,
				      .len = end - start,
				      .file_offset = offset,
				      .dev = (uint64_t)major << 20 | minor,
				      .ino = ino,
				      .path = path };
	ret_event->path_len = without_mark(path, unescape(path));
	return true;
}

static int add(struct mt_mappings *mappings, const struct mt_kev *event, pid_t pid, size_t *space)
{
	struct mt_kev *to;

	if (mappings->count == *space) {
		size_t more = *space ? 2 * *space : 16;

		to = mt_patient_realloc(mappings->events, more * sizeof(*to));
		if (!to)
			return -ENOMEM;
		mappings->events = to;
		*space = more;
	}
	to = &mappings->events[mappings->count];
	*to = *event;
	to->pid = to->tid = (int32_t)pid;
	to->path = strndup(event->path, event->path_len);
	if (!to->path)
		return -ENOMEM;
	mappings->count++;
	return 0;
}

static int read_lines(FILE *file, pid_t pid, struct mt_mappings *mappings)
{
	size_t line_space = 0, space = 0;
	struct mt_kev event;
	char *line = NULL;
	int err = 0;

	while (!err && mappings->count < MAPPINGS_MAX) {
		errno = 0;
		if (getline(&line, &line_space, file) <= 0) {
			err = -errno; /* 0 at the end of the file */
			break;
		}
		if (mt_mappings_parse(line, &event))
			err = add(mappings, &event, pid, &space);
	}
	free(line);
	return err;
}

static int read_once(pid_t pid, struct mt_mappings **ret_mappings)
{
	struct mt_mappings *mappings;
	char path[32];
	FILE *file;
	int err;

	*ret_mappings = NULL;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	mappings = mt_patient_calloc(1, sizeof(*mappings));
	err = mappings ? read_lines(file, pid, mappings) : -ENOMEM;
	fclose(file);
	if (mappings && mappings->count == 0) {
		mt_mappings_free(mappings);
		mappings = NULL;
	}
	*ret_mappings = mappings;
	return err;
}

int mt_mappings_read(pid_t pid, struct mt_mappings **ret_mappings)
{
	int err;

	for (;;) {
		err = read_once(pid, ret_mappings);
		if (err != -ENOMEM || !mt_patience(false))
			return err;
		mt_mappings_free(*ret_mappings);
	}
}

void mt_mappings_free(struct mt_mappings *mappings)
{
	size_t i;

	if (!mappings)
		return;
	for (i = 0; i < mappings->count; i++)
		free((char *)mappings->events[i].path);
	free(mappings->events);
	free(mappings);
}
