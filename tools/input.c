/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/format.h"
#include "common/run_meta.h"
#include "tools/command.h"
#include "tools/text.h"
#include "tools/wait.h"

/* Progress is for long work: first after the one, then every so often. */
#define PROGRESS_FIRST_NS 1000000000u
#define PROGRESS_EVERY_NS 200000000u

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void wipe_progress(struct mt_input *input)
{
	if (input->progress_shown)
		fputs("\r\033[K", stderr);
	input->progress_shown = false;
}

static void show_progress(struct mt_input *input, uint64_t offset)
{
	uint64_t size = mt_artifact_reader_totals(input->reader)->size, now;

	if (!input->progress || !size)
		return;
	now = now_ns();
	if (now < input->progress_ns)
		return;
	input->progress_ns = now + PROGRESS_EVERY_NS;
	input->progress_shown = true;
	fprintf(stderr, "\r%s: %3.0f %%", input->command, 100.0 * (double)offset / (double)size);
	fflush(stderr);
}

static void say_diag(struct mt_input *input, const struct mt_diag *diag)
{
	wipe_progress(input);
	switch (diag->kind) {
	case MT_DIAG_CUT:
		fprintf(stderr, "%s: %s: cut in frame %" PRIu64 " at offset %" PRIu64 ": %s\n",
			input->command, input->name, diag->frame, diag->offset, diag->why);
		break;
	case MT_DIAG_DAMAGED:
		fprintf(stderr, "%s: %s: damaged in frame %" PRIu64 " at offset %" PRIu64 ": %s\n",
			input->command, input->name, diag->frame, diag->offset, diag->why);
		break;
	default:
		fprintf(stderr, "%s: %s: %s\n", input->command, input->name, diag->why);
		break;
	}
}

/* What to do about a file that cannot be read, behind the reason. */
static const char *advice(const struct mt_diag *diag, int error)
{
	if (diag->kind == MT_DIAG_NOT_OURS)
		return "; memtrack reads what memtrack-preload wrote (*" MT_ARTIFACT_SUFFIX ")";
	if (error == -EISDIR)
		return "; name a file in it";
	if (error == -EACCES || error == -EPERM)
		return "; its owner can read it, or let others do so";
	return "";
}

int mt_input_open_early(struct mt_input *input, const char *command, const char *path)
{
	struct mt_diag diag = { 0 };
	bool standard = !strcmp(path, "-");
	int fd, ret;

	*input = (struct mt_input){ .command = command, .name = path };
	if (standard) {
		input->name = "standard input";
		fd = dup(STDIN_FILENO);
		if (fd < 0) {
			ret = -errno;
			fprintf(stderr, "%s: standard input: %s\n", command, strerror(-ret));
			return ret;
		}
		ret = mt_artifact_reader_open_fd(fd, &input->reader, &diag);
	} else {
		ret = mt_artifact_reader_open(path, &input->reader, &diag);
	}
	if (ret) {
		if (!diag.why[0])
			snprintf(diag.why, sizeof(diag.why), "%s", strerror(-ret));
		fprintf(stderr, "%s: %s: %s%s\n", command, input->name, diag.why,
			advice(&diag, ret));
		return ret;
	}
	mt_artifact_reader_use_threads(input->reader, MT_ARTIFACT_ALL_CORES);
	input->progress = isatty(STDERR_FILENO);
	input->progress_ns = now_ns() + PROGRESS_FIRST_NS;
	return 0;
}

int mt_input_open(struct mt_input *input, const char *command, const char *path)
{
	int ret = mt_input_open_early(input, command, path);

	if (ret || mt_artifact_reader_totals(input->reader)->size)
		return ret;
	fprintf(stderr,
		"%s: %s: an empty file: nothing was recorded into it, or its recorder is just "
		"starting\n",
		command, input->name);
	mt_input_close(input);
	return -ENODATA;
}

void mt_input_use(struct mt_input *input, const struct mt_input_options *options)
{
	input->options = *options;
	if (options->one_thread)
		mt_artifact_reader_use_threads(input->reader, 0);
	if (options->no_hints)
		mt_artifact_reader_use_hints(input->reader, false);
	if (input->writes_as_it_reads && isatty(STDOUT_FILENO))
		input->progress = false;
}

bool mt_input_take_option(struct mt_input_options *options, int option)
{
	options->no_hints |= option == MT_OPT_NO_HINTS;
	options->keep_going |= option == MT_OPT_KEEP_GOING;
	return option == MT_OPT_NO_HINTS || option == MT_OPT_KEEP_GOING;
}

void mt_input_close(struct mt_input *input)
{
	wipe_progress(input);
	mt_artifact_reader_close(input->reader);
	input->reader = NULL;
}

/* Notes and says a damaged frame. */
static void note_damage(struct mt_input *input, const struct mt_diag *diag)
{
	if (input->damaged < MT_INPUT_DAMAGES) {
		input->damages[input->damaged] = *diag;
		say_diag(input, diag);
	}
	/* Nothing of it was as we write it. */
	if (!input->damaged && !diag->frame && !input->given &&
	    mt_input_state(input) == MT_INPUT_UNKNOWN)
		fprintf(stderr,
			"%s: %s: is it another kind of file, compressed with zstd? memtrack reads "
			"what memtrack-preload wrote\n",
			input->command, input->name);
	input->damaged++;
	if (diag->missing == MT_DIAG_UNKNOWN)
		input->missing_unknown++;
	else
		input->missing += diag->missing;
	input->gap = true;
}

int mt_input_next(struct mt_input *input, struct mt_artifact_batch *ret_batch)
{
	const struct mt_diag *diag;
	int ret;

	if (input->stopped)
		return 0;
	for (;;) {
		ret = mt_artifact_reader_next(input->reader, ret_batch);
		diag = mt_artifact_reader_diag(input->reader);
		if (ret != -EBADMSG)
			break;
		note_damage(input, diag);
		if (!input->options.keep_going) {
			input->stopped = true;
			/* How the run ended is said behind the damage; without it that is not
			 * known. */
			(void)mt_artifact_reader_load_meta(input->reader);
			return 0;
		}
		if (!mt_artifact_reader_skip_damaged(input->reader))
			return 0;
	}
	if (ret < 0) {
		input->error = ret;
		say_diag(input, diag);
	} else if (!ret && diag->kind == MT_DIAG_CUT) {
		/* What the recorder has half written is no damage. */
		input->half = !input->copies && mt_input_state(input) == MT_INPUT_OPEN &&
			      mt_wait_grows(input->reader, input->name);
		if (!input->half)
			input->cut = *diag;
	}
	input->given |= ret > 0;
	if (ret > 0)
		show_progress(input, ret_batch->offset);
	else
		wipe_progress(input);
	return ret;
}

enum mt_input_state mt_input_state(const struct mt_input *input)
{
	struct mt_meta_value map;

	if (mt_artifact_reader_closed(input->reader))
		return MT_INPUT_CLOSED;
	if (mt_artifact_reader_meta(input->reader, MT_META_OPEN, 0, &map))
		return MT_INPUT_OPEN;
	return MT_INPUT_UNKNOWN;
}

/* What damage took away. */
static void say_missing(const struct mt_input *input)
{
	if (input->damaged > MT_INPUT_DAMAGES)
		fprintf(stderr, "%s: %s: %" PRIu64 " more damaged %s\n", input->command,
			input->name, input->damaged - MT_INPUT_DAMAGES,
			mt_plural(input->damaged - MT_INPUT_DAMAGES, "frame", "frames"));
	if (input->stopped)
		fprintf(stderr,
			"%s: %s: reading ended there; %smemtrack repair makes a file of what is "
			"whole\n",
			input->command, input->name,
			input->needs_whole ? "" : "--keep-going reads on behind damage, and ");
	else if (input->missing_unknown && !input->missing)
		fprintf(stderr, "%s: %s: an unknown number of events is missing\n", input->command,
			input->name);
	else
		fprintf(stderr, "%s: %s: %" PRIu64 " %s missing%s\n", input->command, input->name,
			input->missing, mt_plural(input->missing, "event is", "events are"),
			input->missing_unknown ? ", and an unknown number" : "");
}

int mt_input_verdict(struct mt_input *input)
{
	const struct mt_artifact_totals *totals = mt_artifact_reader_totals(input->reader);
	int verdict = MT_EXIT_DONE;

	if (input->damaged) {
		say_missing(input);
		verdict = MT_EXIT_DAMAGED;
	}
	if (input->cut.kind == MT_DIAG_CUT) {
		say_diag(input, &input->cut);
		verdict = MT_EXIT_DAMAGED;
	}
	if (totals->bad_metadata) {
		fprintf(stderr, "%s: %s: %" PRIu64 " damaged metadata %s passed over\n",
			input->command, input->name, totals->bad_metadata,
			mt_plural(totals->bad_metadata, "frame was", "frames were"));
		verdict = MT_EXIT_DAMAGED;
	}
	if (totals->bad_hints) {
		fprintf(stderr,
			"%s: %s: %" PRIu64 " damaged %s passed over: %s events cannot be checked\n",
			input->command, input->name, totals->bad_hints,
			mt_plural(totals->bad_hints, "hint was", "hints were"),
			mt_plural(totals->bad_hints, "its frame's", "their frames'"));
		verdict = MT_EXIT_DAMAGED;
	}
	if (totals->dropped_metadata)
		fprintf(stderr, "%s: %s: %" PRIu64 " metadata %s beyond what is kept\n",
			input->command, input->name, totals->dropped_metadata,
			mt_plural(totals->dropped_metadata, "frame is", "frames are"));
	if (totals->unknown)
		fprintf(stderr,
			"%s: %s: %" PRIu64 " %s (the first: '%s') passed over; a newer memtrack "
			"may know %s\n",
			input->command, input->name, totals->unknown,
			mt_plural(totals->unknown, "event of an unknown type",
				  "events of unknown types"),
			totals->unknown_name, mt_plural(totals->unknown, "it", "them"));
	if (mt_input_state(input) == MT_INPUT_OPEN)
		fprintf(stderr,
			"%s: %s: not closed: it is still being written, or its recorder was "
			"killed; this is what it holds so far\n",
			input->command, input->name);
	return input->error ? MT_EXIT_FAILED : verdict;
}

/*
 * What all `closed` say together: files may stand behind one another. Returns whether each of them
 * has one.
 */
static bool sum_written(const struct mt_input *input, uint64_t *ret_events)
{
	struct mt_artifact_reader *reader = input->reader;
	struct mt_meta_value map;
	uint64_t events;
	size_t i;

	*ret_events = 0;
	for (i = 0; mt_artifact_reader_meta(reader, MT_META_CLOSED, i, &map); i++) {
		if (!mt_meta_get_u64(&map, MT_KEY_EVENTS, &events))
			return false;
		*ret_events += events;
	}
	return i > 0 && !mt_artifact_reader_meta(reader, MT_META_OPEN, i, &map) &&
	       mt_artifact_reader_totals(reader)->dropped_metadata == 0;
}

int mt_input_count(const struct mt_input *input, uint64_t events)
{
	struct mt_meta_value map;
	uint64_t written;

	/* What damage took away has been said. */
	if (input->damaged || input->error || input->cut.kind == MT_DIAG_CUT ||
	    mt_artifact_reader_meta(input->reader, MT_META_REPAIRED, 0, &map) ||
	    !sum_written(input, &written))
		return MT_EXIT_DONE;
	events += mt_artifact_reader_totals(input->reader)->unknown;
	if (events == written)
		return MT_EXIT_DONE;
	fprintf(stderr,
		"%s: %s: it holds %" PRIu64 " %s, its recorder wrote %" PRIu64
		": frames were taken out or put in\n",
		input->command, input->name, events, mt_plural(events, "event", "events"), written);
	return MT_EXIT_DAMAGED;
}
