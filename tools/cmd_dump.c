/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/event_json.h"
#include "tools/command.h"
#include "tools/dump_filter.h"
#include "tools/input.h"
#include "tools/output.h"

/* Written to standard output when so many bytes have come together. */
#define FLUSH_BYTES (256u << 10)

static const char help[] =
	"usage: memtrack dump [OPTION...] FILE\n"
	"Prints every event as one JSON object a line, in the file's order.\n\n"
	"  --pid LIST    only events of these processes\n"
	"  --tid LIST    only events of these threads\n"
	"  --type LIST   only events of these types: Malloc, Calloc, AlignedAlloc,\n"
	"                Realloc, Free, Fork, Exec, Exit, Mapping, Stack, Rss, Rmap,\n"
	"                Mmap, Munmap, Brk\n"
	"  --from TIME   only events at this time or later\n"
	"  --to TIME     only events at this time or earlier\n"
	"  --no-hints    do not use or check what hints say of frames\n"
	"  --keep-going  skip damaged frames instead of ending at the first\n"
	"  -h, --help    this text\n\n"
	"Lists are separated by commas; an option may be given more than once. TIME is\n"
	"nanoseconds of CLOCK_MONOTONIC as in the events, or, with one of the units s,\n"
	"ms, us, ns (1.5s, 20ms), the time since the first event of the file.\n";

struct dump {
	struct mt_input input;
	struct mt_input_options reading;
	struct mt_dump_filter filter;
	struct mt_buf out;
	int output_error;
};

static void flush(struct dump *dump)
{
	if (!dump->output_error && dump->out.len)
		dump->output_error = mt_output_write(STDOUT_FILENO, dump->out.data, dump->out.len);
	dump->out.len = 0;
}

/* Returns 0 or a negative errno (memory). */
static int dump_batch(struct dump *dump, const struct mt_artifact_batch *batch, bool filtered)
{
	for (size_t i = 0; i < batch->n && !dump->output_error; i++) {
		const struct mt_event *event = &batch->events[i];
		int ret;

		if (filtered && !mt_dump_filter_matches(&dump->filter, event))
			continue;
		ret = mt_event_json(event, &dump->out);
		if (ret)
			return ret;
		if (dump->out.len >= FLUSH_BYTES)
			flush(dump);
	}
	return 0;
}

/* Has the reader pass by what cannot match, as far as it can tell: tids it does not know. */
static void filter_reader(struct dump *dump)
{
	const struct mt_dump_filter *filter = &dump->filter;
	const struct mt_artifact_filter wanted = {
		.types = filter->types ? filter->types : UINT32_MAX,
		.from_ns = filter->from.given ? filter->from.ns : 0,
		.to_ns = filter->to.given ? filter->to.ns : UINT64_MAX,
		.pids = filter->pids.count ? filter->pids.numbers : NULL,
		.pids_n = filter->pids.count,
	};

	/* Times after the first event: it has to be seen. */
	if (!filter->from.relative && !filter->to.relative)
		mt_artifact_reader_filter(dump->input.reader, &wanted);
}

static int dump_events(struct dump *dump)
{
	bool filtered = !mt_dump_filter_is_empty(&dump->filter);
	struct mt_artifact_batch batch;
	bool first = true;
	int ret;

	if (filtered)
		filter_reader(dump);
	while (!dump->output_error && (ret = mt_input_next(&dump->input, &batch)) > 0) {
		if (first)
			mt_dump_filter_start(&dump->filter, batch.events[0].timestamp_ns);
		first = false;
		ret = dump_batch(dump, &batch, filtered);
		if (ret) {
			fprintf(stderr, "memtrack dump: %s\n", strerror(-ret));
			return MT_EXIT_FAILED;
		}
	}
	flush(dump);
	if (dump->output_error)
		return mt_output_failed(dump->output_error);
	return mt_input_verdict(&dump->input);
}

/* Takes one option. Returns 0, MT_EXIT_USAGE or MT_EXIT_FAILED, said. */
static int take_option(struct mt_dump_filter *filter, int option, const char *value,
		       const char *command)
{
	const char *bad = value;
	int ret;

	switch (option) {
	case MT_OPT_PID:
		ret = mt_dump_filter_numbers(&filter->pids, value, &bad);
		break;
	case MT_OPT_TID:
		ret = mt_dump_filter_numbers(&filter->tids, value, &bad);
		break;
	case MT_OPT_TYPE:
		ret = mt_dump_filter_types(filter, value, &bad);
		break;
	case MT_OPT_FROM:
		ret = mt_time_bound_parse(&filter->from, value);
		break;
	case MT_OPT_TO:
		ret = mt_time_bound_parse(&filter->to, value);
		break;
	default:
		return mt_command_hint(command);
	}
	if (ret == -ENOMEM) {
		fprintf(stderr, "%s: out of memory\n", command);
		return MT_EXIT_FAILED;
	}
	if (ret)
		return mt_command_misused(command, "'%.*s' is not a %s", (int)strcspn(bad, ","),
					  bad,
					  option == MT_OPT_TYPE ? "type of event"
					  : option == MT_OPT_PID || option == MT_OPT_TID ? "number"
											 : "time");
	return 0;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "pid", required_argument, NULL, MT_OPT_PID },
		{ "tid", required_argument, NULL, MT_OPT_TID },
		{ "type", required_argument, NULL, MT_OPT_TYPE },
		{ "from", required_argument, NULL, MT_OPT_FROM },
		{ "to", required_argument, NULL, MT_OPT_TO },
		MT_INPUT_NO_HINTS_OPTION,
		MT_INPUT_KEEP_GOING_OPTION,
		{ 0 },
	};
	struct dump dump = { 0 };
	const char *path;
	int option;
	int ret = 0;

	while (!ret && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!mt_input_take_option(&dump.reading, option))
			ret = take_option(&dump.filter, option, optarg, argv[0]);
	if (ret)
		goto out;
	ret = MT_EXIT_USAGE;
	path = mt_command_file(argc, argv);
	if (!path)
		goto out;
	ret = MT_EXIT_FAILED;
	if (mt_input_open(&dump.input, argv[0], path))
		goto out;
	dump.input.writes_as_it_reads = true;
	mt_input_use(&dump.input, &dump.reading);
	ret = dump_events(&dump);
	mt_input_close(&dump.input);
out:
	mt_buf_fini(&dump.out);
	mt_dump_filter_fini(&dump.filter);
	return ret;
}

const struct mt_command mt_cmd_dump = {
	.name = "dump",
	.summary = "print every event as a line of JSON",
	.help = help,
	.run = run,
};
