/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/command.h"
#include "tools/verify.h"
#include "tools/wait.h"

#define LIMIT_DEFAULT 20u
#define LIMIT_MAX     1000000u

static const char help[] =
	"usage: memtrack verify [OPTION...] FILE\n"
	"Replays every process and says where the events contradict each other: blocks\n"
	"allocated while live or freed while dead, timestamps going back, Fork, Exec and\n"
	"Exit out of place, stacks without a definition; and what was lost.\n\n"
	"  --json        print one JSON object; the man page lists its keys\n"
	"  --wait        first wait until the recording is finished\n"
	"  --require-complete\n"
	"                a run with untracked programs, or of which the kernel could not\n"
	"                tell whether it had some, is not clean either\n"
	"  --limit N     show the first N places (default 20); all are counted\n"
	"  --threads N   use so many threads (default: one for each core)\n"
	"  --no-hints    do not use or check what hints say of frames\n"
	"  -h, --help    this text\n\n"
	"Exit status: 0 clean, 1 contradictions, losses, or a recording that was not\n"
	"closed (then nobody knows the losses) or that memtrack repair made out of a\n"
	"broken one, 2 wrong usage, 3 the file is cut or damaged: what is whole before\n"
	"the first damage was verified.\n";

static void on_finding(void *context, const struct mt_finding *finding)
{
	struct mt_verify *verify = context;
	struct mt_verify_place *place;

	if (verify->places_count == verify->limit)
		return;
	place = &verify->places[verify->places_count++];
	place->finding = *finding;
	place->event = *finding->event;
	place->finding.event = &place->event;
}

/*
 * Events behind a damaged frame cannot be judged, since what they rest on may have been in it:
 * they are read, for further damage, and counted.
 */
static int replay_all(struct mt_verify *verify)
{
	struct mt_artifact_batch batch;
	uint64_t frame = UINT64_MAX;
	int ret;

	while ((ret = mt_input_next(&verify->input, &batch)) > 0) {
		if (verify->input.gap) {
			verify->unread_events += batch.n;
			continue;
		}
		if (batch.frame != frame)
			mt_replay_frame_end(verify->replay);
		frame = batch.frame;
		ret = mt_replay_events(verify->replay, batch.events, batch.n, batch.frame,
				       batch.in_frame);
		if (ret)
			return ret;
	}
	/* In a cut frame the definition may have been in what is missing. */
	if (verify->input.cut.kind == MT_DIAG_NONE && !verify->input.half && !verify->input.gap &&
	    !ret)
		mt_replay_frame_end(verify->replay);
	return 0;
}

static int run_verify(struct mt_verify *verify, bool json)
{
	const struct mt_replay_options options = { on_finding, verify, verify->threads };
	const char *verdict;
	bool clean, open, whole;
	int status, damage;
	int ret;

	verify->places = calloc(verify->limit + 1, sizeof(*verify->places));
	ret = verify->places ? mt_replay_new(&options, &verify->replay) : -ENOMEM;
	if (!ret)
		ret = replay_all(verify);
	if (!ret)
		ret = mt_run_info_init(&verify->info, verify->input.reader);
	if (!ret)
		ret = mt_excused_init(&verify->excused, verify->replay, &verify->info);
	if (ret) {
		fprintf(stderr, "memtrack verify: %s\n", strerror(-ret));
		return MT_EXIT_FAILED;
	}
	damage = mt_input_verdict(&verify->input);
	if (!damage)
		damage = mt_input_count(&verify->input, mt_replay_totals(verify->replay)->events);
	/* Without its end nobody knows what was lost. */
	open = mt_input_state(&verify->input) == MT_INPUT_OPEN;
	/* Nor what stood in the part that repair could not save. */
	whole = !verify->info.repaired && !verify->info.lost && !verify->info.spoiled &&
		!verify->info.unread &&
		(!verify->require_complete || mt_run_info_complete(&verify->info));
	clean = !mt_verify_contradictions(verify) && whole && !open;
	verdict = damage ? "damaged" : clean ? "clean" : open ? "not closed" : "not clean";
	status = json ? mt_verify_print_json(verify, verdict)
		      : mt_verify_print_text(verify, verdict);
	if (status)
		return status;
	if (damage)
		return damage;
	return clean ? MT_EXIT_DONE : MT_EXIT_FAILED;
}

static int parse_limit(const char *text, size_t *ret_limit)
{
	char *end;
	unsigned long value;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value > LIMIT_MAX)
		return -EINVAL;
	*ret_limit = value;
	return 0;
}

struct choice {
	struct mt_input_options reading;
	bool json;
	bool wait;
};

/* Returns 0, or MT_EXIT_USAGE having said why. */
static int take_options(int argc, char **argv, struct mt_verify *verify, struct choice *choice)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, MT_OPT_JSON },
		{ "wait", no_argument, NULL, MT_OPT_WAIT },
		{ "require-complete", no_argument, NULL, MT_OPT_REQUIRE_COMPLETE },
		{ "limit", required_argument, NULL, MT_OPT_LIMIT },
		{ "threads", required_argument, NULL, MT_OPT_THREADS },
		MT_INPUT_NO_HINTS_OPTION,
		{ 0 },
	};
	int option, status = 0;

	while (!status && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == MT_OPT_JSON)
			choice->json = true;
		else if (option == MT_OPT_WAIT)
			choice->wait = true;
		else if (option == MT_OPT_REQUIRE_COMPLETE)
			verify->require_complete = true;
		else if (option == MT_OPT_THREADS)
			status = mt_command_threads(argv[0], optarg, &verify->threads);
		else if (mt_input_take_option(&choice->reading, option))
			continue;
		else if (option != MT_OPT_LIMIT)
			status = mt_command_hint(argv[0]);
		else if (parse_limit(optarg, &verify->limit))
			status = mt_command_misused(argv[0], "'%s' is not a number up to %u",
						    optarg, LIMIT_MAX);
	}
	return status;
}

static int run(int argc, char **argv)
{
	/* What stands behind damage is not judged, but it is counted, and searched for more. */
	struct choice choice = { .reading.keep_going = true };
	struct mt_verify verify = { .limit = LIMIT_DEFAULT, .threads = mt_command_cores() };
	int ret = take_options(argc, argv, &verify, &choice);
	const char *path;

	if (ret)
		return ret;
	path = mt_command_file(argc, argv);
	if (!path)
		return MT_EXIT_USAGE;
	ret = choice.wait ? mt_wait_closed(argv[0], path) : 0;
	if (ret)
		return ret;
	if (mt_input_open(&verify.input, argv[0], path))
		return MT_EXIT_FAILED;
	choice.reading.one_thread = verify.threads == 1;
	mt_input_use(&verify.input, &choice.reading);
	ret = run_verify(&verify, choice.json);
	mt_excused_fini(&verify.excused);
	mt_run_info_fini(&verify.info);
	mt_replay_free(verify.replay);
	free(verify.places);
	mt_input_close(&verify.input);
	return ret;
}

const struct mt_command mt_cmd_verify = {
	.name = "verify",
	.summary = "replay a run and say what contradicts itself or was lost",
	.help = help,
	.run = run,
};
