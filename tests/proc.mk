# SPDX-License-Identifier: MIT OR Apache-2.0
# The sidecar's own parts, and the launcher.
if HAVE_CRITERION
proc_tests = \
	tests/unit/test_options tests/unit/test_pulse tests/unit/test_room tests/unit/test_watch tests/unit/test_coverage tests/unit/test_control tests/unit/test_command
check_PROGRAMS += $(proc_tests)
TESTS += $(proc_tests)
proc_cflags = $(AM_CFLAGS) $(CRITERION_CFLAGS)
proc_libs = libmtsidecar.la libmtcommon.la $(CRITERION_LIBS)

tests_unit_test_options_SOURCES = tests/unit/test_options.c
tests_unit_test_options_CFLAGS = $(proc_cflags)
tests_unit_test_options_LDADD = $(proc_libs)
tests_unit_test_room_SOURCES = tests/unit/test_room.c
tests_unit_test_room_CFLAGS = $(proc_cflags)
tests_unit_test_room_LDADD = $(proc_libs)
tests_unit_test_pulse_SOURCES = tests/unit/test_pulse.c
tests_unit_test_pulse_CFLAGS = $(proc_cflags)
tests_unit_test_pulse_LDADD = $(proc_libs)
tests_unit_test_watch_SOURCES = tests/unit/test_watch.c
tests_unit_test_watch_CFLAGS = $(proc_cflags)
tests_unit_test_watch_LDADD = libmtsidecar.la libmtorder.la libmtencoder.la libmtcommon.la $(CRITERION_LIBS)
tests_unit_test_coverage_SOURCES = tests/unit/test_coverage.c
tests_unit_test_coverage_CFLAGS = $(proc_cflags)
tests_unit_test_coverage_LDADD = $(proc_libs)
tests_unit_test_control_SOURCES = tests/unit/test_control.c
tests_unit_test_control_CFLAGS = $(proc_cflags)
tests_unit_test_control_LDADD = $(proc_libs)
tests_unit_test_command_SOURCES = tests/unit/test_command.c
tests_unit_test_command_CFLAGS = $(proc_cflags)
tests_unit_test_command_LDADD = $(proc_libs)
endif

PROC_TESTS = \
	tests/e2e/run_disk_full.sh tests/e2e/run_jobs.sh tests/e2e/run_launcher.sh \
	tests/e2e/run_manual.sh tests/e2e/run_sudo.sh
TESTS += $(PROC_TESTS)
EXTRA_DIST += $(PROC_TESTS)
