/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/event_json.h"
#include "tools/command.h"
#include "tools/input.h"
#include "tools/module_table.h"
#include "tools/output.h"

/* Written to standard output when so many bytes have come together. */
#define FLUSH_BYTES (256u << 10)

static const char help[] =
	"usage: memtrack modules [OPTION...] FILE\n"
	"Prints the events that say which code was where (Mapping, Fork, Exec), as dump\n"
	"does, without reading what holds none of them.\n\n"
	"  --table       the modules of each process instead: what it mapped when, or\n"
	"                inherited at fork; an exec begins a new list\n"
	"  --no-hints    do not use or check what hints say of frames\n"
	"  --keep-going  skip damaged frames instead of ending at the first\n"
	"  -h, --help    this text\n";

/* What becomes of the events. */
struct modules {
	struct mt_input input;
	struct mt_module_table *table; /* NULL: lines */
	struct mt_buf out;
	int output_error;
};

static void flush(struct modules *m)
{
	if (!m->output_error && m->out.len)
		m->output_error = mt_output_write(STDOUT_FILENO, m->out.data, m->out.len);
	m->out.len = 0;
}

static int take_batch(struct modules *m, const struct mt_artifact_batch *batch)
{
	int ret = 0;

	if (m->table)
		return mt_module_table_add(m->table, batch->events, batch->n);
	for (size_t i = 0; i < batch->n && !ret; i++) {
		ret = mt_event_json(&batch->events[i], &m->out);
		if (m->out.len >= FLUSH_BYTES)
			flush(m);
	}
	return ret;
}

static int run_modules(struct modules *m)
{
	static const struct mt_artifact_filter wanted = {
		.types = MT_EVENT_SEARCHED,
		.to_ns = UINT64_MAX,
		.search = true,
	};
	struct mt_artifact_batch batch;
	int ret = 0, status = 0, verdict;

	mt_artifact_reader_filter(m->input.reader, &wanted);
	while (!m->output_error && !ret && mt_input_next(&m->input, &batch) > 0)
		ret = take_batch(m, &batch);
	if (!ret && m->table)
		ret = mt_module_table_print(m->table);
	if (ret) {
		fprintf(stderr, "memtrack modules: %s\n", strerror(-ret));
		return MT_EXIT_FAILED;
	}
	flush(m);
	if (m->output_error)
		return mt_output_failed(m->output_error);
	if (m->table)
		status = mt_output_end(stdout);
	verdict = mt_input_verdict(&m->input);
	return status ? status : verdict;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "table", no_argument, NULL, MT_OPT_TABLE },
		MT_INPUT_NO_HINTS_OPTION,
		MT_INPUT_KEEP_GOING_OPTION,
		{ 0 },
	};
	struct mt_input_options reading = { 0 };
	struct modules m = { 0 };
	bool table = false;
	const char *path;
	int option, ret;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == MT_OPT_TABLE)
			table = true;
		else if (!mt_input_take_option(&reading, option))
			return mt_command_hint(argv[0]);
	}
	path = mt_command_file(argc, argv);
	if (!path)
		return MT_EXIT_USAGE;
	if (mt_input_open(&m.input, argv[0], path))
		return MT_EXIT_FAILED;
	m.input.writes_as_it_reads = !table;
	mt_input_use(&m.input, &reading);
	if (table)
		m.table = mt_module_table_new();
	if (table && !m.table) {
		fprintf(stderr, "%s: out of memory\n", argv[0]);
		ret = MT_EXIT_FAILED;
	} else {
		ret = run_modules(&m);
	}
	mt_module_table_free(m.table);
	mt_buf_fini(&m.out);
	mt_input_close(&m.input);
	return ret;
}

const struct mt_command mt_cmd_modules = {
	.name = "modules",
	.summary = "print events of mapped code, or the modules of each process",
	.help = help,
	.run = run,
};
