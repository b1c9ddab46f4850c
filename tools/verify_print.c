/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/event_json.h"
#include "tools/json_writer.h"
#include "tools/output.h"
#include "tools/text.h"

uint64_t mt_verify_contradictions(const struct mt_verify *verify)
{
	const struct mt_replay_totals *totals = mt_replay_totals(verify->replay);
	uint64_t sum = 0;

	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		sum += mt_excused_rest(&verify->excused, totals, kind);
	return sum;
}

static const char *flag_of(const struct mt_verify *verify, const struct mt_finding *finding)
{
	int reason = mt_run_info_flagged(&verify->info, finding->frame, finding->index);

	return reason < 0 ? NULL : mt_anomaly_name(reason);
}

static void print_place(const struct mt_verify *verify, const struct mt_verify_place *place)
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
		printf(" 0x%" PRIx64 " size %" PRIu64 ", where %" PRIu64 " %s live", finding->addr,
		       event->size, finding->before_size,
		       mt_plural(finding->before_size, "byte is", "bytes are"));
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
	printf("%s%s%s%s\n", flag ? " [flagged by the recorder: " : "", flag ? flag : "",
	       flag ? "]" : "",
	       mt_excused_may_be(&verify->excused, finding) ? " [its process lost records]" : "");
}

static void print_losses(const struct mt_verify *verify)
{
	const struct mt_run_info *info = &verify->info;
	char number[MT_SUM_CHARS], cause[64];

	if (!info->losses_known) {
		puts("losses: not known");
		return;
	}
	printf("losses: %s", info->lost ? mt_sum_text(info->lost, true, number) : "none");
	for (size_t i = 0; i < info->losses_count; i++)
		printf("%s%s %" PRIu64, i ? ", " : mt_plural(info->lost, " record: ", " records: "),
		       mt_clean_text(info->losses[i].cause, strlen(info->losses[i].cause), cause,
				     sizeof(cause)),
		       info->losses[i].count);
	putchar('\n');
	for (size_t i = 0; i < info->losses_count; i++) {
		const char *text = mt_run_loss_text(&info->losses[i]);

		if (text)
			printf("  %s: %s\n", info->losses[i].cause, text);
	}
	if (info->spoiled)
		printf("damaged buffers: of %s %s; what was left in them is not known\n",
		       mt_sum_text(info->spoiled, true, number),
		       mt_plural(info->spoiled, "thread", "threads"));
	if (info->unread)
		printf("unread: %s %s, for want of memory; what was recorded there is not known\n",
		       mt_sum_text(info->unread, true, number),
		       mt_plural(info->unread, "thread", "threads"));
	if (verify->require_complete)
		printf("complete: %s\n", mt_run_info_complete(info) ? "yes" : "no");
}

/* What may follow from the losses. */
static void print_excused(const struct mt_excused *excused)
{
	char number[MT_SUM_CHARS];

	if (excused->frees)
		printf("not judged: %s %s dropped (or unknown)\n",
		       mt_sum_text(excused->frees, true, number),
		       mt_plural(excused->frees, "free of a block whose records were",
				 "frees of blocks whose records were"));
	if (excused->allocs)
		printf("not judged: %s %s dropped (or unknown)\n",
		       mt_sum_text(excused->allocs, true, number),
		       mt_plural(excused->allocs, "allocation over a block whose records were",
				 "allocations over blocks whose records were"));
}

int mt_verify_print_text(const struct mt_verify *verify, const char *verdict)
{
	const struct mt_replay_totals *totals = mt_replay_totals(verify->replay);
	const struct mt_replay_process *const *list;
	size_t processes = mt_replay_processes(verify->replay, &list);
	uint64_t sum = mt_verify_contradictions(verify);
	uint64_t all = sum + verify->excused.frees + verify->excused.allocs;
	char number[MT_SUM_CHARS];

	for (size_t i = 0; i < verify->places_count; i++)
		print_place(verify, &verify->places[i]);
	if (all > verify->places_count)
		printf("... and %s more %s\n",
		       mt_sum_text(all - verify->places_count, true, number),
		       mt_plural(all - verify->places_count, "place", "places"));
	printf("events: %s replayed, of ", mt_sum_text(totals->events, true, number));
	printf("%s %s", mt_sum_text(processes, true, number),
	       mt_plural(processes, "process", "processes"));
	if (verify->unread_events)
		printf("; %s behind the damage not judged",
		       mt_sum_text(verify->unread_events, true, number));
	printf("\ncontradictions: %s\n", sum ? mt_sum_text(sum, true, number) : "none");
	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		if (mt_excused_rest(&verify->excused, totals, kind))
			printf("  %-12s %s\n",
			       mt_sum_text(mt_excused_rest(&verify->excused, totals, kind), true,
					   number),
			       mt_finding_text(kind));
	print_excused(&verify->excused);
	for (int reason = 0; reason < MT_ANOMALY_REASONS; reason++)
		if (verify->info.anomalies[reason])
			printf("flagged by the recorder: %s %s\n",
			       mt_sum_text(verify->info.anomalies[reason], true, number),
			       mt_anomaly_name(reason));
	if (totals->inherited_ended)
		printf("inherited copies ended by an allocation over them: %s (no contradiction)\n",
		       mt_sum_text(totals->inherited_ended, true, number));
	print_losses(verify);
	if (verify->info.repaired)
		puts("repaired: what was cut, damaged or never written is missing");
	printf("verdict: %s\n", verdict);
	return mt_output_end(stdout);
}

static void put_place(struct mt_json *json, const struct mt_verify *verify,
		      const struct mt_verify_place *place)
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

static void put_summary(struct mt_json *json, const struct mt_verify *verify)
{
	const struct mt_replay_totals *totals = mt_replay_totals(verify->replay);
	const struct mt_run_info *info = &verify->info;

	mt_json_u64(json, "events", totals->events);
	mt_json_u64(json, "events_not_judged", verify->unread_events);
	mt_json_u64(json, "contradictions", mt_verify_contradictions(verify));
	mt_json_begin(json, "by_kind", '{');
	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		mt_json_u64(json, mt_finding_name(kind),
			    mt_excused_rest(&verify->excused, totals, kind));
	mt_json_end(json);
	mt_json_begin(json, "not_judged", '{');
	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		if (verify->excused.by_kind[kind])
			mt_json_u64(json, mt_finding_name(kind), verify->excused.by_kind[kind]);
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
	mt_json_u64(json, "damaged_buffers", info->spoiled);
	mt_json_u64(json, "unread_buffers", info->unread);
	mt_json_bool(json, "repaired", info->repaired);
	mt_json_bool(json, "complete", mt_run_info_complete(info));
	mt_json_begin(json, "losses", '{');
	for (size_t i = 0; i < info->losses_count; i++)
		mt_json_u64(json, info->losses[i].cause, info->losses[i].count);
	mt_json_end(json);
}

int mt_verify_print_json(const struct mt_verify *verify, const char *verdict)
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
