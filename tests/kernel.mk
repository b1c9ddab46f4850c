# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of the kernel events.
check_PROGRAMS += tests/e2e/kernel_trace
tests_e2e_kernel_trace_SOURCES = tests/e2e/kernel_trace.c
tests_e2e_kernel_trace_LDADD = libmtkernel.la
EXTRA_DIST += tests/e2e/kernel_lib.sh
dist_check_SCRIPTS += tests/e2e/kernel_pidns.sh
TESTS += tests/e2e/kernel_pidns.sh
dist_check_SCRIPTS += tests/e2e/kernel_tree.sh
TESTS += tests/e2e/kernel_tree.sh
dist_check_SCRIPTS += tests/e2e/kernel_unreadable.sh
TESTS += tests/e2e/kernel_unreadable.sh
# What is followed has no sanitizer, which would have processes and threads of its own.
MT_FOLLOWED_CFLAGS = -std=gnu11 $(MT_WARN_CFLAGS) -pthread
check_PROGRAMS += tests/e2e/kernel_maps_target
tests_e2e_kernel_maps_target_SOURCES = tests/e2e/kernel_maps_target.c
tests_e2e_kernel_maps_target_CFLAGS = $(MT_FOLLOWED_CFLAGS)
tests_e2e_kernel_maps_target_LDFLAGS = -pthread
tests_e2e_kernel_maps_target_LDADD = -ldl
dist_check_SCRIPTS += tests/e2e/kernel_maps.sh
TESTS += tests/e2e/kernel_maps.sh
check_PROGRAMS += tests/e2e/kernel_actions
tests_e2e_kernel_actions_SOURCES = tests/e2e/kernel_actions.c
tests_e2e_kernel_actions_CFLAGS = $(MT_FOLLOWED_CFLAGS)
tests_e2e_kernel_actions_LDFLAGS = -pthread
# Static, for the flag; libtool would take -static for its own libraries alone.
check_PROGRAMS += tests/e2e/kernel_static
tests_e2e_kernel_static_SOURCES = tests/e2e/kernel_static.c
tests_e2e_kernel_static_CFLAGS = $(MT_FOLLOWED_CFLAGS)
tests_e2e_kernel_static_LDFLAGS = -all-static
dist_check_SCRIPTS += tests/e2e/kernel_events.sh
TESTS += tests/e2e/kernel_events.sh
dist_check_SCRIPTS += tests/e2e/kernel_privileges.sh
TESTS += tests/e2e/kernel_privileges.sh
if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_kernel_merge
TESTS += tests/unit/test_kernel_merge
tests_unit_test_kernel_merge_SOURCES = tests/unit/test_kernel_merge.c
tests_unit_test_kernel_merge_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
tests_unit_test_kernel_merge_LDADD = libmtkernel.la $(CRITERION_LIBS)
endif
