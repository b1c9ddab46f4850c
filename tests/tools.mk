# SPDX-License-Identifier: MIT OR Apache-2.0
if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_live_table tests/unit/test_replay tests/unit/test_text
TESTS += tests/unit/test_live_table tests/unit/test_replay tests/unit/test_text
tests_unit_test_live_table_SOURCES = tests/unit/test_live_table.c
tests_unit_test_live_table_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
tests_unit_test_live_table_LDADD = libmttools.la $(CRITERION_LIBS)
tests_unit_test_replay_SOURCES = tests/unit/test_replay.c
tests_unit_test_replay_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
tests_unit_test_replay_LDADD = libmttools.la $(CRITERION_LIBS)
tests_unit_test_text_SOURCES = tests/unit/test_text.c
tests_unit_test_text_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
tests_unit_test_text_LDADD = libmttools.la $(CRITERION_LIBS)
endif

# memtrack on small artifacts that mkartifact writes from scripts.
check_PROGRAMS += tests/e2e/mkartifact
tests_e2e_mkartifact_SOURCES = tests/e2e/mkartifact.c
tests_e2e_mkartifact_CFLAGS = $(AM_CFLAGS) $(ZSTD_CFLAGS)
tests_e2e_mkartifact_LDADD = libmtcommon.la $(ZSTD_LIBS)
tool_tests = \
	tests/e2e/tool_dump.sh \
	tests/e2e/tool_plurals.sh \
	tests/e2e/tool_recount.sh \
	tests/e2e/tool_stat.sh \
	tests/e2e/tool_usage.sh \
	tests/e2e/tool_verify.sh
dist_check_SCRIPTS += $(tool_tests)
TESTS += $(tool_tests)
EXTRA_DIST += tests/e2e/recount.py tests/e2e/tool tests/e2e/tool_lib.sh

# The commands over damaged files, in one process.
check_PROGRAMS += tests/unit/tool_damage
TESTS += tests/unit/tool_damage
tests_unit_tool_damage_SOURCES = tests/unit/tool_damage.c
tests_unit_tool_damage_LDADD = libmttools.la

# Threads of the replay: without criterion, for the thread sanitizer.
check_PROGRAMS += tests/stress/replay_shards
TESTS += tests/stress/replay_shards
tests_stress_replay_shards_SOURCES = tests/stress/replay_shards.c
tests_stress_replay_shards_LDADD = libmttools.la
