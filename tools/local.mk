# SPDX-License-Identifier: MIT OR Apache-2.0
# Everything of memtrack but its main(), so that tests and benchmarks can link it.
noinst_LTLIBRARIES += libmttools.la
libmttools_la_CFLAGS = $(AM_CFLAGS)
libmttools_la_LIBADD = libmtcommon.la
libmttools_la_SOURCES = \
	tools/cmd_dump.c \
	tools/cmd_modules.c tools/module_table.c tools/module_table.h \
	tools/cmd_recompress.c tools/cmd_repair.c tools/rewrite.c tools/rewrite.h \
	tools/wait.c tools/wait.h \
	tools/cmd_stat.c tools/stat_json.c tools/stat_text.c tools/stat.h \
	tools/cmd_verify.c tools/verify_print.c tools/verify.h \
	tools/command.c tools/command.h \
	tools/dump_filter.c tools/dump_filter.h \
	tools/excused.c tools/excused.h \
	tools/frame_refs.c tools/frame_refs.h \
	tools/input.c tools/input.h \
	tools/json_writer.c tools/json_writer.h \
	tools/live_page.c tools/live_page.h tools/live_table.c tools/live_table.h \
	tools/meta_json.c tools/meta_json.h \
	tools/new_file.c tools/new_file.h \
	tools/output.c tools/output.h \
	tools/replay.c tools/replay.h \
	tools/replay_account.c tools/replay_internal.h \
	tools/replay_pool.c tools/replay_pool.h \
	tools/replay_route.c tools/replay_shard.c tools/replay_stack.c \
	tools/run_info.c tools/run_info.h \
	tools/text.c tools/text.h \
	tools/u64_map.c tools/u64_map.h

bin_PROGRAMS += memtrack
memtrack_SOURCES = tools/memtrack.c
memtrack_LDADD = libmttools.la
dist_man_MANS += man/memtrack.1
