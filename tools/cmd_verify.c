/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/event_json.h"
#include "common/format.h"
#include "tools/command.h"
#include "tools/input.h"
#include "tools/json_writer.h"
#include "tools/output.h"
#include "tools/replay.h"
#include "tools/run_info.h"
#include "tools/text.h"

#define LIMIT_DEFAULT 20u
#define LIMIT_MAX     1000000u

static const char help[] =
	"usage: memtrack verify [OPTION...] FILE\n"
	"Replays every process and says where the events contradict each other: blocks\n"
	"allocated while live or freed while dead, timestamps going back, Fork, Exec and Exit\n"
	"out of place, stacks without a definition; and what was lost.\n\n"
	"  --json      print one JSON object; the man page lists its keys\n"
	"  --limit N   show the first N places (default 20); all are counted\n"
	"  -h, --help  this text\n\n"
	"Exit status: 0 clean, 1 contradictions or losses, 2 wrong usage, 3 the file is cut or\n"
	"damaged: what is whole before the first damage was verified.\n";

/* A finding, kept until the anomalies that the recorder listed have been read. */
struct place {
	struct mt_finding finding;
	struct mt_event event;
};

struct verify {
	struct mt_input input;
	struct mt_replay *replay;
	struct mt_run_info info;
	struct place *places;
	size_t limit;
	size_t places_count;
	uint64_t unread_events; /* behind the first damage */
};

static void on_finding(void *context, const struct mt_finding *finding)
{
	struct verify *verify = context;
	struct place *place;

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
static int replay_all(struct verify *verify)
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
	if (verify->input.cut.kind == MT_DIAG_NONE && !verify->input.gap && !ret)
		mt_replay_frame_end(verify->replay);
	return 0;
}

static uint64_t contradictions(const struct verify *verify)
{
	const struct mt_replay_totals *totals = mt_replay_totals(verify->replay);
	uint64_t sum = 0;

	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		sum += totals->findings[kind];
	return sum;
}

static const char *flag_of(const struct verify *verify, const struct mt_finding *finding)
{
	int reason = mt_run_info_flagged(&verify->info, finding->frame, finding->index);

	return reason < 0 ? NULL : mt_anomaly_name(reason);
}

static void print_place(const struct verify *verify, const struct place *place)
{
	const struct mt_finding *finding = &place->finding;
	const struct mt_event *event = &place->event;
	const char *flag = flag_of(verify, finding);

	printf("frame %" PRIu64 ", event %" PRIu64 ": %s: pid %" PRId32 " tid %" PRId32
	       " at %" PRIu64 " %s",
	       finding->frame, finding->index, mt_finding_text(finding->kind), event->pid,
	       event->tid, event->timestamp_ns, mt_event_type_name(event->type));
	switch (finding->kind) {
	case MT_FIND_ALLOC_OVER_LIVE:
		printf(" 0x%" PRIx64 " size %" PRIu64 ", where %" PRIu64 " bytes are live",
		       finding->addr, event->size, finding->before_size);
		break;
	case MT_FIND_DOUBLE_FREE:
		printf(" 0x%" PRIx64 ", freed before by frame %" PRIu64 ", event %" PRIu64,
		       finding->addr, finding->before_frame, finding->before_index);
		break;
	case MT_FIND_UNKNOWN_FREE:
		printf(" 0x%" PRIx64, finding->addr);
		break;
	case MT_FIND_TIME_BACK:
		printf(", %" PRIu64 " ns before an earlier event",
		       finding->before_ns - event->timestamp_ns);
		break;
	case MT_FIND_STACK_UNDEFINED:
		printf(" hash 0x%" PRIx64, finding->addr);
		break;
	default:
		break;
	}
	printf("%s%s%s\n", flag ? " [flagged by the recorder: " : "", flag ? flag : "",
	       flag ? "]" : "");
}

static void print_losses(const struct verify *verify)
{
	const struct mt_run_info *info = &verify->info;
	char number[MT_SUM_CHARS], cause[64];

	if (!info->losses_known) {
		puts("losses: not known");
		return;
	}
	printf("losses: %s", info->lost ? mt_sum_text(info->lost, true, number) : "none");
	for (size_t i = 0; i < info->losses_count; i++)
		printf("%s%s %" PRIu64, i ? ", " : " records: ",
		       mt_clean_text(info->losses[i].cause, strlen(info->losses[i].cause), cause,
				     sizeof(cause)),
		       info->losses[i].count);
	putchar('\n');
}

static int print_text(const struct verify *verify, const char *verdict)
{
	const struct mt_replay_totals *totals = mt_replay_totals(verify->replay);
	const struct mt_replay_process *const *list;
	size_t processes = mt_replay_processes(verify->replay, &list);
	uint64_t sum = contradictions(verify);
	char number[MT_SUM_CHARS];

	for (size_t i = 0; i < verify->places_count; i++)
		print_place(verify, &verify->places[i]);
	if (sum > verify->places_count)
		printf("... and %s more places\n",
		       mt_sum_text(sum - verify->places_count, true, number));
	printf("events: %s replayed, of ", mt_sum_text(totals->events, true, number));
	printf("%s processes", mt_sum_text(processes, true, number));
	if (verify->unread_events)
		printf("; %s behind the damage not judged",
		       mt_sum_text(verify->unread_events, true, number));
	printf("\ncontradictions: %s\n", sum ? mt_sum_text(sum, true, number) : "none");
	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		if (totals->findings[kind])
			printf("  %-12s %s\n", mt_sum_text(totals->findings[kind], true, number),
			       mt_finding_text(kind));
	for (int reason = 0; reason < MT_ANOMALY_REASONS; reason++)
		if (verify->info.anomalies[reason])
			printf("flagged by the recorder: %s %s\n",
			       mt_sum_text(verify->info.anomalies[reason], true, number),
			       mt_anomaly_name(reason));
	if (totals->inherited_ended)
		printf("inherited copies ended by an allocation over them: %s (no contradiction)\n",
		       mt_sum_text(totals->inherited_ended, true, number));
	print_losses(verify);
	printf("verdict: %s\n", verdict);
	return mt_output_end(stdout);
}

static void put_place(struct mt_json *json, const struct verify *verify, const struct place *place)
{
	const struct mt_finding *finding = &place->finding;
	const char *flag = flag_of(verify, finding);

	mt_json_begin(json, NULL, '{');
	mt_json_str(json, "kind", mt_finding_name(finding->kind));
	mt_json_u64(json, "frame", finding->frame);
	mt_json_u64(json, "index", finding->index);
	mt_json_str(json, "type", mt_event_type_name(place->event.type));
	mt_json_i64(json, "pid", place->event.pid);
	mt_json_i64(json, "tid", place->event.tid);
	mt_json_u64(json, "timestamp", place->event.timestamp_ns);
	mt_json_u64(json, "addr", finding->addr);
	if (finding->has_before) {
		mt_json_u64(json, "before_frame", finding->before_frame);
		mt_json_u64(json, "before_index", finding->before_index);
	}
	if (flag)
		mt_json_str(json, "flagged", flag);
	else
		mt_json_null(json, "flagged");
	mt_json_end(json);
}

static void put_summary(struct mt_json *json, const struct verify *verify)
{
	const struct mt_replay_totals *totals = mt_replay_totals(verify->replay);
	const struct mt_run_info *info = &verify->info;

	mt_json_u64(json, "events", totals->events);
	mt_json_u64(json, "events_not_judged", verify->unread_events);
	mt_json_u64(json, "contradictions", contradictions(verify));
	mt_json_begin(json, "by_kind", '{');
	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		mt_json_u64(json, mt_finding_name(kind), totals->findings[kind]);
	mt_json_end(json);
	mt_json_begin(json, "flagged", '{');
	for (int reason = 0; reason < MT_ANOMALY_REASONS; reason++)
		mt_json_u64(json, mt_anomaly_name(reason), info->anomalies[reason]);
	mt_json_end(json);
	mt_json_u64(json, "inherited_ended", totals->inherited_ended);
	if (info->losses_known)
		mt_json_u64(json, "lost", info->lost);
	else
		mt_json_null(json, "lost");
	mt_json_begin(json, "losses", '{');
	for (size_t i = 0; i < info->losses_count; i++)
		mt_json_u64(json, info->losses[i].cause, info->losses[i].count);
	mt_json_end(json);
}

static int print_json(const struct verify *verify, const char *verdict)
{
	struct mt_json json = { 0 };

	mt_json_begin(&json, NULL, '{');
	mt_json_str(&json, "verdict", verdict);
	put_summary(&json, verify);
	mt_json_diag(&json, "cut", &verify->input.cut);
	mt_json_u64(&json, "damaged_frames", verify->input.damaged);
	mt_json_begin(&json, "places", '[');
	for (size_t i = 0; i < verify->places_count; i++)
		put_place(&json, verify, &verify->places[i]);
	mt_json_end(&json);
	mt_json_end(&json);
	return mt_json_print(&json);
}

static int run_verify(struct verify *verify, bool json)
{
	const struct mt_replay_options options = { on_finding, verify };
	bool clean;
	int status, damage;
	int ret;

	verify->places = calloc(verify->limit + 1, sizeof(*verify->places));
	ret = verify->places ? mt_replay_new(&options, &verify->replay) : -ENOMEM;
	if (!ret)
		ret = replay_all(verify);
	if (!ret)
		ret = mt_run_info_init(&verify->info, verify->input.reader);
	if (ret) {
		fprintf(stderr, "memtrack verify: %s\n", strerror(-ret));
		return MT_EXIT_FAILED;
	}
	damage = mt_input_verdict(&verify->input);
	clean = !contradictions(verify) && !verify->info.lost;
	status = json ? print_json(verify, damage  ? "damaged"
					   : clean ? "clean"
						   : "not clean")
		      : print_text(verify, damage  ? "damaged"
					   : clean ? "clean"
						   : "not clean");
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

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, MT_OPT_JSON },
		{ "limit", required_argument, NULL, MT_OPT_LIMIT },
		{ 0 },
	};
	struct verify verify = { .limit = LIMIT_DEFAULT };
	bool json = false;
	const char *path;
	int option, ret;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == MT_OPT_JSON)
			json = true;
		else if (option != MT_OPT_LIMIT)
			return mt_command_misused(argv[0], "wrong option");
		else if (parse_limit(optarg, &verify.limit))
			return mt_command_misused(argv[0], "'%s' is not a number up to %u", optarg,
						  LIMIT_MAX);
	}
	path = mt_command_file(argc, argv);
	if (!path)
		return MT_EXIT_USAGE;
	if (mt_input_open(&verify.input, argv[0], path))
		return MT_EXIT_FAILED;
	ret = run_verify(&verify, json);
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
