/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sidecar/say.h"

#define UNTRACKED_LINES 10
#define ALIVE_SHOWN	8

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void report_file(const struct mt_run *run)
{
	uint64_t lost = run->encoder_stats.events_lost;

	/* Also when quiet: the file is what was asked for. */
	if (run->output_trouble)
		mt_say_error("%s %s", run->output.path, run->output_trouble);
	if (!run->write_error)
		return;
	if (run->write_error == EFBIG)
		mt_say_error("%s is incomplete: %s was reached, %" PRIu64 " event%s lost (%s)",
			     run->output.path,
			     run->options->max_file_bytes ? "--max-file-size"
							  : "the limit on file sizes (ulimit -f)",
			     lost, plural(lost), mt_loss_name(MT_LOSS_AT_WRITE));
	else
		mt_say_error("%s is incomplete: %s, %" PRIu64 " event%s lost (%s)",
			     run->output.path, strerror(run->write_error), lost, plural(lost),
			     mt_loss_name(MT_LOSS_AT_WRITE));
}

static void report_losses(const struct mt_run *run)
{
	unsigned i;

	for (i = 0; i < MT_LOSS_CAUSES; i++) {
		uint64_t count = run->loss.by_cause[i];

		if (count && i != MT_LOSS_AT_WRITE)
			mt_say_note("lost %" PRIu64 " record%s: %s: %s", count, plural(count),
				    mt_loss_name(i), mt_loss_text(i));
	}
	if (run->loss.corrupt_streams)
		mt_say_note("%" PRIu64 " thread%s overwrote the recording memory: what followed "
			    "there is lost",
			    run->loss.corrupt_streams, plural(run->loss.corrupt_streams));
	if (run->loss.unread_streams)
		mt_say_note("%" PRIu64 " thread%s could not be read, for want of memory here: what "
			    "they recorded is lost",
			    run->loss.unread_streams, plural(run->loss.unread_streams));
}

static void report_untracked(struct mt_run *run)
{
	const struct mt_untracked *list;
	size_t count = mt_coverage_untracked(run->coverage, &list), shown = 0, i;
	struct mt_coverage_totals totals;

	mt_coverage_totals(run->coverage, &totals);
	for (i = 0; i < count && shown < UNTRACKED_LINES; i++) {
		if (mt_untracked_is_not_loaded(list[i].reason))
			continue;
		shown++;
		mt_say_note("untracked: pid %d %s: %s", (int)list[i].pid,
			    list[i].path ? list[i].path : "(path not known)",
			    mt_untracked_reason_text(list[i].reason));
	}
	if (totals.untracked > UNTRACKED_LINES)
		mt_say_note("untracked: %" PRIu64 " more (memtrack stat lists them)",
			    totals.untracked - UNTRACKED_LINES);
	if (run->unheard)
		mt_say_note("untracked: %" PRIu64 " program%s could not be heard: no memory or "
			    "descriptor was left",
			    run->unheard, plural(run->unheard));
}

static void report_alive(const struct mt_run *run)
{
	char text[ALIVE_SHOWN * 12 + 1];
	size_t i, len = 0;

	if (!run->alive_count)
		return;
	for (i = 0; i < run->alive_count && i < ALIVE_SHOWN; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %d", (int)run->alive[i]);
	mt_say_note("still running when recording ended: %zu process%s (pid%s%s)", run->alive_count,
		    run->alive_count == 1 ? "" : "es", text,
		    run->alive_count > ALIVE_SHOWN ? " ..." : "");
}

void mt_report(struct mt_run *run)
{
	struct mt_coverage_totals totals;
	char untracked[64], not_loaded[64] = "";

	report_losses(run);
	report_untracked(run);
	report_alive(run);
	report_file(run);
	mt_coverage_totals(run->coverage, &totals);
	if (totals.known || totals.untracked)
		snprintf(untracked, sizeof(untracked), "%" PRIu64 " untracked image%s",
			 totals.untracked, plural(totals.untracked));
	else
		snprintf(untracked, sizeof(untracked), "untracked images: not known");
	if (totals.not_loaded)
		snprintf(not_loaded, sizeof(not_loaded),
			 ", %" PRIu64 " with no time to load the library", totals.not_loaded);
	mt_say_note("%s: %" PRIu64 " event%s, %zu process%s, %" PRIu64 " lost, %s%s",
		    run->output.path, run->encoder_stats.events_written,
		    plural(run->encoder_stats.events_written), run->process_count,
		    run->process_count == 1 ? "" : "es", run->loss.total, untracked, not_loaded);
}

bool mt_report_is_complete(struct mt_run *run)
{
	struct mt_coverage_totals totals;

	mt_coverage_totals(run->coverage, &totals);
	return mt_loss_is_none(&run->loss) && !run->write_error && totals.known &&
	       totals.untracked == 0 && run->unheard == 0 && !run->output_trouble;
}
