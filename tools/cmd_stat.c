/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/command.h"
#include "tools/stat.h"
#include "tools/wait.h"

static const char help[] =
	"usage: memtrack stat [OPTION...] FILE\n"
	"Sums up a recorded run: events, processes, live memory and its peaks, and what\n"
	"was not recorded.\n\n"
	"  --json        print one JSON object; the man page lists its keys\n"
	"  --wait        first wait until the recording is finished\n"
	"  --all         show every process, not only the 30 with the highest peaks\n"
	"  --threads N   use so many threads (default: one for each core)\n"
	"  --no-hints    do not use or check what hints say of frames\n"
	"  --keep-going  skip damaged frames instead of ending at the first\n"
	"  -h, --help    this text\n";

struct mt_live_sums mt_stat_left(const struct mt_stat *stat)
{
	const struct mt_replay_process *const *list;
	size_t count = mt_replay_processes(stat->replay, &list);
	struct mt_live_sums left = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct mt_live_sums *one = &list[i]->images[list[i]->images_count - 1].left;

		left.blocks += one->blocks;
		left.bytes += one->bytes;
		left.inherited_blocks += one->inherited_blocks;
		left.inherited_bytes += one->inherited_bytes;
	}
	return left;
}

static int replay_all(struct mt_stat *stat)
{
	struct mt_artifact_batch batch;
	uint64_t frame = UINT64_MAX;
	int ret;

	while ((ret = mt_input_next(&stat->input, &batch)) > 0) {
		if (batch.frame != frame)
			mt_replay_frame_end(stat->replay);
		frame = batch.frame;
		ret = mt_replay_events(stat->replay, batch.events, batch.n, batch.frame,
				       batch.in_frame);
		if (ret)
			return ret;
	}
	/* What cannot be read further is said, and the rest is still worth printing. */
	mt_replay_frame_end(stat->replay);
	return 0;
}

static int run_stat(struct mt_stat *stat, bool json)
{
	const struct mt_replay_options options = { .threads = stat->threads };
	int status, verdict;
	int ret = mt_replay_new(&options, &stat->replay);

	if (!ret)
		ret = replay_all(stat);
	if (!ret)
		ret = mt_run_info_init(&stat->info, stat->input.reader);
	if (!ret)
		ret = mt_excused_init(&stat->excused, stat->replay, &stat->info);
	if (ret) {
		fprintf(stderr, "memtrack stat: %s\n", strerror(-ret));
		return MT_EXIT_FAILED;
	}
	status = json ? mt_stat_print_json(stat) : mt_stat_print_text(stat);
	verdict = mt_input_verdict(&stat->input);
	if (!verdict)
		verdict = mt_input_count(&stat->input, mt_replay_totals(stat->replay)->events);
	return status ? status : verdict;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, MT_OPT_JSON },
		{ "wait", no_argument, NULL, MT_OPT_WAIT },
		{ "all", no_argument, NULL, MT_OPT_ALL },
		{ "threads", required_argument, NULL, MT_OPT_THREADS },
		MT_INPUT_NO_HINTS_OPTION,
		MT_INPUT_KEEP_GOING_OPTION,
		{ 0 },
	};
	struct mt_input_options reading = { 0 };
	struct mt_stat stat = { .threads = mt_command_cores() };
	bool json = false, wait = false;
	const char *path;
	int option, ret;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == MT_OPT_JSON)
			json = true;
		else if (option == MT_OPT_WAIT)
			wait = true;
		else if (option == MT_OPT_ALL)
			stat.all = true;
		else if (mt_input_take_option(&reading, option))
			continue;
		else if (option != MT_OPT_THREADS)
			return mt_command_hint(argv[0]);
		else if (mt_command_threads(argv[0], optarg, &stat.threads))
			return MT_EXIT_USAGE;
	}
	path = mt_command_file(argc, argv);
	if (!path)
		return MT_EXIT_USAGE;
	ret = wait ? mt_wait_closed(argv[0], path) : 0;
	if (ret)
		return ret;
	if (mt_input_open(&stat.input, argv[0], path))
		return MT_EXIT_FAILED;
	reading.one_thread = stat.threads == 1;
	mt_input_use(&stat.input, &reading);
	ret = run_stat(&stat, json);
	mt_excused_fini(&stat.excused);
	mt_run_info_fini(&stat.info);
	mt_replay_free(stat.replay);
	mt_input_close(&stat.input);
	return ret;
}

const struct mt_command mt_cmd_stat = {
	.name = "stat",
	.summary = "sum up a run: events, processes, live memory, peaks, losses",
	.help = help,
	.run = run,
};
