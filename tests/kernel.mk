# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of the kernel events.
check_PROGRAMS += tests/e2e/kernel_trace
tests_e2e_kernel_trace_SOURCES = tests/e2e/kernel_trace.c
tests_e2e_kernel_trace_LDADD = libmtkernel.la
EXTRA_DIST += tests/e2e/kernel_lib.sh
dist_check_SCRIPTS += tests/e2e/kernel_tree.sh
TESTS += tests/e2e/kernel_tree.sh
