/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/wait.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/format.h"
#include "common/run_meta.h"
#include "tools/command.h"
#include "tools/input.h"

/* How often the file is looked at. */
#define WAIT_NS 50000000
/* A frame that is half written is whole in far less, if somebody writes it. */
#define GROW_NS	   5000000
#define GROW_LOOKS 40

/* Whether the recorder that the file names has ended without closing it, as far as one can tell. */
static bool recorder_is_gone(const struct mt_artifact_reader *reader)
{
	struct mt_meta_value open;
	int64_t pid;

	if (!mt_artifact_reader_meta(reader, MT_META_OPEN, 0, &open) ||
	    !mt_meta_get_i64(&open, MT_KEY_RECORDER_PID, &pid) || pid <= 0 || pid > INT32_MAX)
		return false;
	return kill((pid_t)pid, 0) && errno == ESRCH;
}

int mt_wait_closed(const char *command, const char *path)
{
	bool last_look = false;
	struct stat st;

	if (!strcmp(path, "-"))
		return mt_command_misused(command, "--wait needs a file, not standard input");
	/* What is read from a pipe is gone from it, and a device never ends. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return mt_command_misused(command, "--wait needs a file, which %s is not", path);
	for (;;) {
		const struct timespec pause = { .tv_nsec = WAIT_NS };
		struct mt_input input;
		bool done;
		int ret;

		if (mt_input_open_early(&input, command, path))
			return MT_EXIT_FAILED;
		ret = mt_artifact_reader_load_meta(input.reader);
		if (ret) {
			fprintf(stderr, "%s: %s: %s\n", command, input.name, strerror(-ret));
			mt_input_close(&input);
			return MT_EXIT_FAILED;
		}
		/* An empty file has been made, and its first frame is on its way. */
		done = mt_input_state(&input) != MT_INPUT_OPEN &&
		       mt_artifact_reader_totals(input.reader)->size;
		/* It may have closed the file between the two looks: look once more. */
		if (!done && last_look)
			done = true;
		else
			last_look = recorder_is_gone(input.reader);
		mt_input_close(&input);
		if (done)
			return 0;
		if (!last_look)
			nanosleep(&pause, NULL);
	}
}

bool mt_wait_grows(const struct mt_artifact_reader *reader, const char *path)
{
	const struct timespec pause = { .tv_nsec = GROW_NS };
	struct stat st;
	int i;

	for (i = 0; i < GROW_LOOKS && !recorder_is_gone(reader); i++) {
		if (stat(path, &st) || !S_ISREG(st.st_mode))
			return false;
		if ((uint64_t)st.st_size != mt_artifact_reader_totals(reader)->size)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}
