/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/stat.h"

#include "common/event_json.h"
#include "common/format.h"
#include "tools/json_writer.h"
#include "tools/meta_json.h"

static void put_counts(struct mt_json *json, const struct mt_replay_counts *counts)
{
	uint64_t events = 0;

	for (uint8_t type = 1; type < MT_EVENT_TYPES; type++)
		events += counts->kinds[type];
	mt_json_u64(json, "events", events);
	mt_json_begin(json, "by_kind", '{');
	for (uint8_t type = 1; type < MT_EVENT_TYPES; type++)
		mt_json_u64(json, mt_event_type_name(type), counts->kinds[type]);
	mt_json_end(json);
	mt_json_u64(json, "allocations", mt_stat_allocations(counts));
	mt_json_u64(json, "frees", mt_stat_frees(counts));
	mt_json_sum(json, "allocated_bytes", counts->allocated_bytes);
}

static void put_peak(struct mt_json *json, const struct mt_peak *peak, bool inherited)
{
	mt_json_begin(json, "peak", '{');
	mt_json_sum(json, "bytes", peak->bytes);
	if (inherited)
		mt_json_sum(json, "inherited_bytes", peak->inherited_bytes);
	mt_json_u64(json, "blocks", peak->blocks);
	mt_json_u64(json, "time_ns", peak->time_ns);
	mt_json_end(json);
}

static void put_live(struct mt_json *json, const char *key, const struct mt_live_sums *sums)
{
	mt_json_begin(json, key, '{');
	mt_json_u64(json, "blocks", sums->blocks - sums->inherited_blocks);
	mt_json_sum(json, "bytes", sums->bytes - sums->inherited_bytes);
	mt_json_u64(json, "inherited_blocks", sums->inherited_blocks);
	mt_json_sum(json, "inherited_bytes", sums->inherited_bytes);
	mt_json_end(json);
}

static void put_image(struct mt_json *json, const struct mt_replay_image *image)
{
	static const char *const starts[] = {
		[MT_IMAGE_FIRST] = "first",
		[MT_IMAGE_FORK] = "fork",
		[MT_IMAGE_EXEC] = "exec",
	};

	mt_json_begin(json, NULL, '{');
	mt_json_str(json, "start", starts[image->start]);
	if (image->path)
		mt_json_text(json, "path", image->path, image->path_len);
	else
		mt_json_null(json, "path");
	mt_json_u64(json, "first_ns", image->first_ns);
	mt_json_u64(json, "last_ns", image->last_ns);
	put_counts(json, &image->counts);
	put_peak(json, &image->peak, true);
	mt_json_u64(json, "inherited_blocks", image->inherited.blocks);
	mt_json_sum(json, "inherited_bytes", image->inherited.bytes);
	mt_json_u64(json, "inherited_ended", image->inherited_ended);
	put_live(json, "live_at_end", &image->left);
	mt_json_end(json);
}

/* The status as the recorder learned it, or null. */
static void put_exit(struct mt_json *json, const struct mt_meta_value *map)
{
	uint64_t number;

	if (map && mt_meta_get_u64(map, MT_KEY_EXIT_STATUS, &number))
		mt_json_u64(json, "exit_status", number);
	else
		mt_json_null(json, "exit_status");
	if (map && mt_meta_get_u64(map, MT_KEY_EXIT_SIGNAL, &number))
		mt_json_u64(json, "exit_signal", number);
	else
		mt_json_null(json, "exit_signal");
}

static void put_process(struct mt_json *json, struct mt_stat *stat,
			const struct mt_replay_process *process)
{
	const struct mt_replay_image *last = &process->images[process->images_count - 1];
	struct mt_replay_counts counts;
	struct mt_meta_value map;
	struct mt_peak peak;
	bool known = mt_run_info_take_process(&stat->info, process->pid, &map);

	mt_replay_process_sum(process, &counts, &peak);
	mt_json_begin(json, NULL, '{');
	mt_json_i64(json, "pid", process->pid);
	if (process->forked)
		mt_json_i64(json, "parent_pid", process->parent_pid);
	else
		mt_json_null(json, "parent_pid");
	mt_json_bool(json, "exited", process->exited);
	put_exit(json, known ? &map : NULL);
	mt_json_u64(json, "threads", process->threads);
	put_counts(json, &counts);
	put_peak(json, &peak, true);
	put_live(json, "live_at_end", &last->left);
	mt_json_begin(json, "images", '[');
	for (uint32_t i = 0; i < process->images_count; i++)
		put_image(json, &process->images[i]);
	mt_json_end(json);
	mt_json_end(json);
}

static void put_file(struct mt_json *json, const struct mt_input *input)
{
	static const char *const states[] = {
		[MT_INPUT_UNKNOWN] = "unknown",
		[MT_INPUT_CLOSED] = "closed",
		[MT_INPUT_OPEN] = "open",
	};
	const struct mt_artifact_totals *totals = mt_artifact_reader_totals(input->reader);
	uint64_t listed = input->damaged < MT_INPUT_DAMAGES ? input->damaged : MT_INPUT_DAMAGES;

	mt_json_begin(json, "file", '{');
	mt_json_str(json, "name", input->name);
	mt_json_u64(json, "bytes", totals->size);
	mt_json_u64(json, "frames", totals->frames);
	mt_json_str(json, "state", states[mt_input_state(input)]);
	mt_json_diag(json, "cut", &input->cut);
	mt_json_u64(json, "damaged_frames", input->damaged);
	mt_json_begin(json, "damages", '[');
	for (uint64_t i = 0; i < listed; i++)
		mt_json_diag(json, NULL, &input->damages[i]);
	mt_json_end(json);
	mt_json_u64(json, "damaged_metadata_frames", totals->bad_metadata);
	mt_json_u64(json, "damaged_hints", totals->bad_hints);
	mt_json_u64(json, "unknown_events", totals->unknown);
	mt_json_end(json);
}

static void put_totals(struct mt_json *json, const struct mt_stat *stat, size_t processes)
{
	const struct mt_replay_totals *totals = mt_replay_totals(stat->replay);
	struct mt_live_sums left = mt_stat_left(stat);

	mt_json_u64(json, "first_ns", totals->first_ns);
	mt_json_u64(json, "last_ns", totals->last_ns);
	mt_json_u64(json, "duration_ns", totals->last_ns - totals->first_ns);
	mt_json_u64(json, "process_count", processes);
	mt_json_u64(json, "thread_count", totals->threads);
	put_counts(json, &totals->counts);
	put_peak(json, &totals->peak, false);
	put_live(json, "live_at_end", &left);
	mt_json_u64(json, "inherited_ended", totals->inherited_ended);
	mt_json_u64(json, "stacks", totals->stacks_defined);
	mt_json_begin(json, "contradictions", '{');
	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		mt_json_u64(json, mt_finding_name(kind),
			    mt_excused_rest(&stat->excused, totals, kind));
	mt_json_end(json);
	mt_json_begin(json, "not_judged", '{');
	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		if (stat->excused.by_kind[kind])
			mt_json_u64(json, mt_finding_name(kind), stat->excused.by_kind[kind]);
	mt_json_end(json);
}

/* A value of a metadata map as it is, or null. */
static void put_meta(struct mt_json *json, const char *key, bool has,
		     const struct mt_meta_value *map, const char *meta_key)
{
	struct mt_meta_value value;

	if (has && mt_meta_get(map, meta_key, &value))
		mt_meta_json(json, key, &value);
	else
		mt_json_null(json, key);
}

static void put_untracked(struct mt_json *json, const struct mt_run_info *info)
{
	struct mt_untracked_walk walk = { 0 };
	struct mt_meta_value image;

	if (!info->untracked_known) {
		mt_json_null(json, "untracked");
		return;
	}
	mt_json_begin(json, "untracked", '[');
	while (mt_run_info_untracked(info, &walk, &image))
		mt_meta_json(json, NULL, &image);
	mt_json_end(json);
}

static void put_run(struct mt_json *json, const struct mt_run_info *info)
{
	put_meta(json, "command", info->has_open, &info->open, MT_KEY_COMMAND);
	put_exit(json, info->has_closed ? &info->closed : NULL);
	put_meta(json, "sources", info->has_open, &info->open, MT_KEY_SOURCES);
	put_meta(json, "order_stats", info->has_closed, &info->closed, MT_KEY_ORDER_STATS);
	if (info->losses_known)
		mt_json_u64(json, "lost", info->lost);
	else
		mt_json_null(json, "lost");
	put_meta(json, "losses", info->losses_known, &info->closed, MT_KEY_LOSSES);
	put_meta(json, "tracked", info->has_closed, &info->closed, MT_KEY_TRACKED);
	put_untracked(json, info);
	mt_json_u64(json, "unheard", info->unheard);
	put_meta(json, "alive", info->has_closed, &info->closed, MT_KEY_ALIVE);
	mt_json_begin(json, "anomalies", '{');
	for (int reason = 0; reason < MT_ANOMALY_REASONS; reason++)
		mt_json_u64(json, mt_anomaly_name(reason), info->anomalies[reason]);
	mt_json_end(json);
}

int mt_stat_print_json(struct mt_stat *stat)
{
	const struct mt_replay_process *const *list;
	size_t count = mt_replay_processes(stat->replay, &list);
	struct mt_json json = { 0 };
	struct mt_meta_value map;

	mt_json_begin(&json, NULL, '{');
	put_file(&json, &stat->input);
	put_run(&json, &stat->info);
	put_totals(&json, stat, count);
	mt_json_begin(&json, "processes", '[');
	for (size_t i = 0; i < count; i++)
		put_process(&json, stat, list[i]);
	mt_json_end(&json);
	mt_json_begin(&json, "metadata", '[');
	for (size_t i = 0; mt_artifact_reader_meta(stat->input.reader, NULL, i, &map); i++)
		mt_meta_json(&json, NULL, &map);
	mt_json_end(&json);
	mt_json_end(&json);
	return mt_json_print(&json);
}
