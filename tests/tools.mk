# SPDX-License-Identifier: MIT OR Apache-2.0
if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_live_table tests/unit/test_replay
TESTS += tests/unit/test_live_table tests/unit/test_replay
tests_unit_test_live_table_SOURCES = tests/unit/test_live_table.c
tests_unit_test_live_table_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
tests_unit_test_live_table_LDADD = libmttools.la $(CRITERION_LIBS)
tests_unit_test_replay_SOURCES = tests/unit/test_replay.c
tests_unit_test_replay_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
tests_unit_test_replay_LDADD = libmttools.la $(CRITERION_LIBS)
endif
