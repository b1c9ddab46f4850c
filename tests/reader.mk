# SPDX-License-Identifier: MIT OR Apache-2.0
# Reading with threads and by search.
check_PROGRAMS += tests/stress/reader_threads
TESTS += tests/stress/reader_threads
tests_stress_reader_threads_SOURCES = tests/stress/reader_threads.c
tests_stress_reader_threads_LDADD = libmtcommon.la

if HAVE_CRITERION
reader_tests = tests/unit/test_event_search tests/unit/test_frame_crew
check_PROGRAMS += $(reader_tests)
TESTS += $(reader_tests)
tests_unit_test_event_search_SOURCES = tests/unit/test_event_search.c $(codec_support)
tests_unit_test_event_search_CFLAGS = $(codec_cflags)
tests_unit_test_event_search_LDADD = $(codec_libs)
tests_unit_test_frame_crew_SOURCES = tests/unit/test_frame_crew.c $(codec_support)
tests_unit_test_frame_crew_CFLAGS = $(codec_cflags)
tests_unit_test_frame_crew_LDADD = $(codec_libs)
endif

reader_sh_tests = tests/e2e/tool_join.sh tests/e2e/tool_modules.sh tests/e2e/tool_new_file.sh \
	tests/e2e/tool_repair.sh
dist_check_SCRIPTS += $(reader_sh_tests)
TESTS += $(reader_sh_tests)
