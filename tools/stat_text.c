/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/stat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/event_json.h"
#include "common/format.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/text.h"

/* Without --all: so many processes, those with the highest peaks. */
#define PROCESSES_SHOWN 30u
/* Untracked images listed; the rest is counted. */
#define UNTRACKED_SHOWN 20u

static void label(const char *name)
{
	printf("%-16s", name);
}

static const char *number(mt_sum value)
{
	/* Enough of them for the arguments of one printf. */
	static char buffers[8][MT_SUM_CHARS];
	static unsigned next;

	return mt_sum_text(value, true, buffers[next++ % 8]);
}

static void print_bytes(mt_sum bytes)
{
	char size[MT_SUM_CHARS];

	printf("%s %s", number(bytes), mt_plural(bytes, "byte", "bytes"));
	if (bytes >= 1024)
		printf(" (%s)", mt_size_text(bytes, size));
}

static void print_file(const struct mt_input *input, bool repaired)
{
	static const char *const states[] = {
		[MT_INPUT_UNKNOWN] = "without metadata of ours",
		[MT_INPUT_CLOSED] = "closed",
		[MT_INPUT_OPEN] = "NOT closed",
	};
	const struct mt_artifact_totals *totals = mt_artifact_reader_totals(input->reader);
	char name[256];

	label("File");
	printf("%s, ", mt_clean_text(input->name, strlen(input->name), name, sizeof(name)));
	print_bytes(totals->size);
	printf(", %s %s, %s\n", number(totals->frames),
	       mt_plural(totals->frames, "frame", "frames"), states[mt_input_state(input)]);
	if (input->cut.kind == MT_DIAG_CUT || input->damaged) {
		label("");
		printf("%s: these figures are those of what could be read\n",
		       input->damaged ? "DAMAGED" : "CUT");
	}
	if (repaired) {
		label("");
		puts("REPAIRED: what was cut, damaged or never written is missing in these "
		     "figures");
	}
	if (totals->unknown) {
		label("");
		printf("%s %s that this memtrack does not know\n", number(totals->unknown),
		       mt_plural(totals->unknown, "event of a type", "events of types"));
	}
}

static void print_exit(const struct mt_meta_value *closed)
{
	uint64_t status;

	if (mt_meta_get_u64(closed, MT_KEY_EXIT_STATUS, &status)) {
		label("Exit status");
		printf("%" PRIu64 "\n", status);
	} else if (mt_meta_get_u64(closed, MT_KEY_EXIT_SIGNAL, &status)) {
		label("Exit status");
		printf("killed by signal %" PRIu64 "\n", status);
	}
}

static void print_command(const struct mt_run_info *info)
{
	struct mt_meta_value list, word;
	struct mt_mp_object key;
	struct mt_meta_iter it;

	if (!info->has_open || !mt_meta_get(&info->open, MT_KEY_COMMAND, &list))
		return;
	label("Command");
	it = mt_meta_iter(&list);
	for (bool first = true; mt_meta_next(&it, &key, &word); first = false) {
		if (word.object.type != MT_MP_STR && word.object.type != MT_MP_BIN)
			continue;
		if (!first)
			putchar(' ');
		mt_print_shell_word(stdout, (const char *)word.object.bytes, word.object.len);
	}
	putchar('\n');
}

static void print_sources(const struct mt_run_info *info)
{
	static const struct {
		const char *key;
		const char *text;
		const char *none; /* who stands in for the kernel */
	} sources[] = {
		{ MT_KEY_PROCESS, "processes", "(told by the programs)" },
		{ MT_KEY_EXEC_MAPS, "mappings at exec", "(told by the programs)" },
		{ MT_KEY_LATER_MAPS, "later mappings", "not recorded" },
	};
	struct mt_meta_value map;
	const char *name;
	char text[320];
	size_t len;

	label("Kernel events");
	if (!info->has_open || !mt_meta_get(&info->open, MT_KEY_SOURCES, &map)) {
		puts("not known");
		return;
	}
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		bool known = mt_meta_get_text(&map, sources[i].key, &name, &len);

		if (known && len == 4 && memcmp(name, "none", 4) == 0) {
			name = sources[i].none;
			len = strlen(name);
		}
		printf("%s%s %s", i ? ", " : "", sources[i].text,
		       known ? mt_clean_text(name, len, text, sizeof(text)) : "not known");
	}
	putchar('\n');
	if (!mt_meta_get_text(&map, MT_KEY_MISSING, &name, &len) || !len)
		return;
	label("");
	puts(mt_clean_text(name, len, text, sizeof(text)));
}

static void print_losses(const struct mt_run_info *info)
{
	char cause[64];

	label("Losses");
	if (!info->losses_known) {
		puts("not known");
		return;
	}
	if (!info->lost) {
		puts("none");
		return;
	}
	printf("%s %s:", number(info->lost), mt_plural(info->lost, "record", "records"));
	for (size_t i = 0; i < info->losses_count; i++)
		printf("%s %s %s", i ? "," : "",
		       mt_clean_text(info->losses[i].cause, strlen(info->losses[i].cause), cause,
				     sizeof(cause)),
		       number(info->losses[i].count));
	putchar('\n');
	for (size_t i = 0; i < info->losses_count; i++) {
		const char *text = mt_run_loss_text(&info->losses[i]);

		if (!text)
			continue;
		label("");
		printf("%s: %s\n", info->losses[i].cause, text);
	}
}

static bool is_not_loaded(const char *reason, size_t len)
{
	return (len == strlen(MT_REASON_ENDED) && !memcmp(reason, MT_REASON_ENDED, len)) ||
	       (len == strlen(MT_REASON_STARTING) && !memcmp(reason, MT_REASON_STARTING, len));
}

static void print_untracked(const struct mt_run_info *info)
{
	struct mt_untracked_walk walk = { 0 };
	struct mt_meta_value image;
	unsigned shown = 0;

	while (shown < UNTRACKED_SHOWN && mt_run_info_untracked(info, &walk, &image)) {
		char path_text[256], reason_text[64];
		const char *path = "?", *reason = "unknown";
		size_t path_len = 1, reason_len = 7;
		int64_t pid = 0;

		/* What is absent stays as it is set above. */
		(void)mt_meta_get_i64(&image, MT_KEY_PID, &pid);
		(void)mt_meta_get_text(&image, MT_KEY_PATH, &path, &path_len);
		(void)mt_meta_get_text(&image, MT_KEY_REASON, &reason, &reason_len);
		label("");
		printf("%s: pid %" PRId64 " %s (%s)\n",
		       is_not_loaded(reason, reason_len) ? "not loaded" : "untracked", pid,
		       mt_clean_text(path, path_len, path_text, sizeof(path_text)),
		       mt_clean_text(reason, reason_len, reason_text, sizeof(reason_text)));
		shown++;
	}
	if (info->untracked > shown) {
		label("");
		printf("and %s more\n", number(info->untracked - shown));
	}
}

static void print_unheard(const struct mt_run_info *info)
{
	if (!info->unheard)
		return;
	label("");
	printf("untracked: %s that could not register: the recorder had no memory or descriptor\n",
	       number(info->unheard));
}

/* Processes that outlived the recording: what they did later is in no count. */
static void print_alive(const struct mt_run_info *info)
{
	struct mt_meta_value list, pid;
	struct mt_mp_object key;
	struct mt_meta_iter it;
	uint64_t count = 0;

	if (!info->has_closed || !mt_meta_get(&info->closed, MT_KEY_ALIVE, &list))
		return;
	it = mt_meta_iter(&list);
	while (mt_meta_next(&it, &key, &pid))
		count++;
	if (!count)
		return;
	label("");
	printf("still running when recording ended: %s %s\n", number(count),
	       mt_plural(count, "process", "processes"));
}

static void print_coverage(const struct mt_run_info *info)
{
	uint64_t tracked, untracked = info->untracked, not_loaded;

	label("Images");
	if (info->has_closed && mt_meta_get_u64(&info->closed, MT_KEY_TRACKED, &tracked))
		printf("%s tracked, ", number(tracked));
	else
		printf("tracked: not known, ");
	if (!info->untracked_known) {
		puts("untracked: not known");
		print_unheard(info);
		return;
	}
	/* The list holds images that had no time to load the library too; the count does not. */
	(void)mt_meta_get_u64(&info->closed, MT_KEY_UNTRACKED_COUNT, &untracked);
	printf("%s untracked", number(untracked));
	if (mt_meta_get_u64(&info->closed, MT_KEY_NOT_LOADED, &not_loaded))
		printf(", %s with no time to load the library", number(not_loaded));
	putchar('\n');
	print_untracked(info);
	print_unheard(info);
}

/* What a count of order_stats says to a user; a name from another version stays as it is. */
static const char *order_words(const char *name, uint64_t count)
{
	static const struct {
		const char *name;
		const char *one;
		const char *more;
	} known[] = {
		{ "late", "time raised to keep the order", "times raised to keep the order" },
		{ "parked", "event held until the one before it came",
		  "events held until the one before them came" },
		{ "unknown_frees", "free of an unknown block", "frees of unknown blocks" },
		{ "live_allocs", "allocation over a live block", "allocations over live blocks" },
		{ "inherited_ends", "inherited block replaced during a fork",
		  "inherited blocks replaced during a fork" },
		{ "split_reallocs", "realloc written as free and realloc",
		  "reallocs written as free and realloc" },
		{ "dropped_begins", "realloc that never returned", "reallocs that never returned" },
		{ "unchecked", "event unchecked for want of memory",
		  "events unchecked for want of memory" },
		{ "corrupt_streams", "thread with damaged buffers",
		  "threads with damaged buffers" },
		{ "unread_streams", "thread unread for want of memory",
		  "threads unread for want of memory" },
		{ "untranslated_tids", "thread under its own namespace's number",
		  "threads under their own namespace's number" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i].name) == 0)
			return mt_plural(count, known[i].one, known[i].more);
	return name;
}

static void print_order(const struct mt_run_info *info)
{
	struct mt_meta_value map, value;
	struct mt_mp_object key;
	struct mt_meta_iter it;
	char text[64];
	bool first = true;

	if (!info->has_closed || !mt_meta_get(&info->closed, MT_KEY_ORDER_STATS, &map))
		return;
	label("Order");
	it = mt_meta_iter(&map);
	while (mt_meta_next(&it, &key, &value)) {
		const char *name;

		if (key.type != MT_MP_STR || value.object.type != MT_MP_UINT || !value.object.u)
			continue;
		name = mt_clean_text((const char *)key.bytes, key.len, text, sizeof(text));
		printf("%s%s %s", first ? "" : ", ", number(value.object.u),
		       order_words(name, value.object.u));
		first = false;
	}
	puts(first ? "exact, nothing to note" : "");
}

static void print_blocks(uint64_t blocks)
{
	printf("%s %s", number(blocks), mt_plural(blocks, "block", "blocks"));
}

static void print_live(const struct mt_stat *stat)
{
	const struct mt_replay_totals *totals = mt_replay_totals(stat->replay);
	struct mt_live_sums left = mt_stat_left(stat);
	char time[MT_SUM_CHARS];

	label("Allocations");
	printf("%s, ", number(mt_stat_allocations(&totals->counts)));
	print_bytes(totals->counts.allocated_bytes);
	printf(" in all\n");
	label("Frees");
	printf("%s\n", number(mt_stat_frees(&totals->counts)));
	label("Peak");
	print_bytes(totals->peak.bytes);
	printf(" in ");
	print_blocks(totals->peak.blocks);
	printf(", %s after the start\n",
	       mt_time_text(totals->peak.bytes ? totals->peak.time_ns - totals->first_ns : 0,
			    time));
	label("Live at the end");
	print_bytes(left.bytes - left.inherited_bytes);
	printf(" in ");
	print_blocks(left.blocks - left.inherited_blocks);
	if (left.inherited_blocks) {
		printf(", besides inherited: %s %s in ", number(left.inherited_bytes),
		       mt_plural(left.inherited_bytes, "byte", "bytes"));
		print_blocks(left.inherited_blocks);
	}
	putchar('\n');
}

static void print_events(const struct mt_stat *stat, size_t processes)
{
	const struct mt_replay_totals *totals = mt_replay_totals(stat->replay);
	char time[MT_SUM_CHARS];

	label("Duration");
	printf("%s\n", mt_time_text(totals->last_ns - totals->first_ns, time));
	label("Processes");
	printf("%s, %s %s\n", number(processes), number(totals->threads),
	       mt_plural(totals->threads, "thread", "threads"));
	label("Events");
	printf("%s\n", number(totals->events));
	for (uint8_t type = 1; type < MT_EVENT_TYPES; type++)
		if (totals->counts.kinds[type])
			printf("  %-14s%s\n", mt_event_type_name(type),
			       number(totals->counts.kinds[type]));
}

static void print_contradictions(const struct mt_stat *stat)
{
	const struct mt_replay_totals *totals = mt_replay_totals(stat->replay);
	const struct mt_excused *excused = &stat->excused;
	uint64_t sum = 0;

	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		sum += mt_excused_rest(excused, totals, kind);
	label("Contradictions");
	puts(sum ? number(sum) : "none");
	for (int kind = 0; kind < MT_FIND_KINDS; kind++)
		if (mt_excused_rest(excused, totals, kind))
			printf("  %-14s%s\n", number(mt_excused_rest(excused, totals, kind)),
			       mt_finding_text(kind));
	if (excused->frees || excused->allocs) {
		label("Not judged");
		printf("%s %s, %s %s over live ones: their records were dropped (or are unknown)\n",
		       number(excused->frees),
		       mt_plural(excused->frees, "free of a block", "frees of blocks"),
		       number(excused->allocs),
		       mt_plural(excused->allocs, "allocation", "allocations"));
	}
	if ((sum || excused->frees || excused->allocs) && !stat->input.damaged)
		puts("  'memtrack verify' shows where they are");
}

/* A process of the table, and its highest peak. */
struct row {
	const struct mt_replay_process *process;
	struct mt_peak peak;
	size_t place;
};

static int by_peak(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->peak.bytes != other->peak.bytes)
		return one->peak.bytes < other->peak.bytes ? 1 : -1;
	return one->place < other->place ? -1 : one->place > other->place;
}

static int by_place(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return one->place < other->place ? -1 : one->place > other->place;
}

static void print_row(const struct mt_stat *stat, const struct row *row)
{
	const struct mt_replay_process *process = row->process;
	const struct mt_replay_image *last = &process->images[process->images_count - 1];
	const struct mt_replay_totals *totals = mt_replay_totals(stat->replay);
	struct mt_replay_counts counts;
	struct mt_peak peak;
	char size[MT_SUM_CHARS], left[MT_SUM_CHARS], inherited[MT_SUM_CHARS], time[MT_SUM_CHARS];
	char parent[16] = "-", path[256];

	mt_replay_process_sum(process, &counts, &peak);
	if (process->forked)
		snprintf(parent, sizeof(parent), "%" PRId32, process->parent_pid);
	printf("%8" PRId32 " %8s %6" PRIu32 " %7" PRIu64 " %12s %11s %13s %11s %11s  %s%s\n",
	       process->pid, parent, process->images_count, process->threads,
	       number(mt_stat_allocations(&counts)), mt_size_text(peak.bytes, size),
	       mt_time_text(peak.time_ns - totals->first_ns, time),
	       mt_size_text(last->left.bytes - last->left.inherited_bytes, left),
	       mt_size_text(last->left.inherited_bytes, inherited),
	       last->path ? mt_clean_text(last->path, last->path_len, path, sizeof(path)) : "?",
	       process->exited ? "" : " (no Exit)");
}

static int print_processes(const struct mt_stat *stat, const struct mt_replay_process *const *list,
			   size_t count)
{
	size_t shown = !stat->all && count > PROCESSES_SHOWN ? PROCESSES_SHOWN : count;
	struct row *rows = calloc(count + 1, sizeof(*rows));
	struct mt_replay_counts counts;

	if (!rows) {
		fprintf(stderr, "memtrack stat: out of memory\n");
		return MT_EXIT_FAILED;
	}
	for (size_t i = 0; i < count; i++) {
		rows[i].process = list[i];
		rows[i].place = i;
		mt_replay_process_sum(list[i], &counts, &rows[i].peak);
	}
	if (shown < count) {
		qsort(rows, count, sizeof(*rows), by_peak);
		qsort(rows, shown, sizeof(*rows), by_place);
	}
	if (count)
		printf("\n%8s %8s %6s %7s %12s %11s %13s %11s %11s  %s\n", "PID", "PARENT",
		       "IMAGES", "THREADS", "ALLOCATIONS", "PEAK", "AT", "LEFT", "INHERITED",
		       "PROGRAM");
	for (size_t i = 0; i < shown; i++)
		print_row(stat, &rows[i]);
	if (shown < count)
		printf("%s more %s: --all shows %s\n", number(count - shown),
		       mt_plural(count - shown, "process with a lower peak",
				 "processes with lower peaks"),
		       mt_plural(count - shown, "it", "them"));
	free(rows);
	return MT_EXIT_DONE;
}

int mt_stat_print_text(struct mt_stat *stat)
{
	const struct mt_replay_process *const *list;
	size_t count = mt_replay_processes(stat->replay, &list);
	int failed, status;

	print_file(&stat->input, stat->info.repaired);
	print_command(&stat->info);
	if (stat->info.has_closed)
		print_exit(&stat->info.closed);
	print_events(stat, count);
	print_live(stat);
	print_losses(&stat->info);
	print_coverage(&stat->info);
	print_alive(&stat->info);
	print_sources(&stat->info);
	print_order(&stat->info);
	print_contradictions(stat);
	failed = print_processes(stat, list, count);
	status = mt_output_end(stdout);
	return failed ? failed : status;
}
