/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/format.h"
#include "tools/command.h"

static void say_diag(const struct mt_input *input, const struct mt_diag *diag)
{
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

int mt_input_open(struct mt_input *input, const char *command, const char *path)
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
		say_diag(input, &diag);
	}
	return ret;
}

void mt_input_close(struct mt_input *input)
{
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
	input->damaged++;
	input->gap = true;
}

int mt_input_next(struct mt_input *input, struct mt_artifact_batch *ret_batch)
{
	const struct mt_diag *diag;
	int ret;

	for (;;) {
		ret = mt_artifact_reader_next(input->reader, ret_batch);
		diag = mt_artifact_reader_diag(input->reader);
		if (ret != -EBADMSG)
			break;
		note_damage(input, diag);
		if (!mt_artifact_reader_skip_damaged(input->reader))
			return 0;
	}
	if (ret < 0) {
		input->error = ret;
		say_diag(input, diag);
	} else if (!ret && diag->kind == MT_DIAG_CUT) {
		input->cut = *diag;
	}
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

int mt_input_verdict(const struct mt_input *input)
{
	const struct mt_artifact_totals *totals = mt_artifact_reader_totals(input->reader);
	int verdict = MT_EXIT_DONE;

	if (input->damaged > MT_INPUT_DAMAGES)
		fprintf(stderr, "%s: %s: %" PRIu64 " more damaged frames\n", input->command,
			input->name, input->damaged - MT_INPUT_DAMAGES);
	if (input->damaged)
		verdict = MT_EXIT_DAMAGED;
	if (input->cut.kind == MT_DIAG_CUT) {
		say_diag(input, &input->cut);
		verdict = MT_EXIT_DAMAGED;
	}
	if (totals->bad_metadata) {
		fprintf(stderr, "%s: %s: %" PRIu64 " damaged metadata frames were passed over\n",
			input->command, input->name, totals->bad_metadata);
		verdict = MT_EXIT_DAMAGED;
	}
	if (totals->dropped_metadata)
		fprintf(stderr, "%s: %s: %" PRIu64 " metadata frames are beyond what is kept\n",
			input->command, input->name, totals->dropped_metadata);
	if (totals->unknown)
		fprintf(stderr,
			"%s: %s: %" PRIu64 " events of unknown types (the first: '%s') were "
			"passed over; a newer memtrack may know them\n",
			input->command, input->name, totals->unknown, totals->unknown_name);
	if (mt_input_state(input) == MT_INPUT_OPEN)
		fprintf(stderr,
			"%s: %s: not closed: it is still being written, or its recorder was "
			"killed; this is what it holds so far\n",
			input->command, input->name);
	return input->error ? MT_EXIT_FAILED : verdict;
}
