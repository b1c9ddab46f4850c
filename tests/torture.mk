# SPDX-License-Identifier: MIT OR Apache-2.0
# The order of events against the truth: a program that knows it, an allocator that hands blocks over
# faster than any other, and a judge of artifacts.
check_PROGRAMS += tests/e2e/exchange tests/e2e/order_judge
tests_e2e_exchange_SOURCES = \
	tests/e2e/exchange.c tests/e2e/stopper.c tests/e2e/stopper.h tests/e2e/truth.h
tests_e2e_exchange_CFLAGS = $(E2E_CFLAGS) -O2
tests_e2e_exchange_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_exchange_LDADD = -ldl -lrt
tests_e2e_order_judge_SOURCES = tests/e2e/order_judge.c tests/e2e/truth.h
tests_e2e_order_judge_LDADD = libmtcommon.la

check_LTLIBRARIES += tests/e2e/libstrip.la tests/e2e/libtorture.la
tests_e2e_libstrip_la_SOURCES = tests/e2e/strip.c tests/e2e/truth.h
tests_e2e_libstrip_la_CFLAGS = $(E2E_CFLAGS) -O2 -fvisibility=hidden
tests_e2e_libstrip_la_LDFLAGS = -module -avoid-version -shared -rpath /none $(E2E_LDFLAGS)
tests_e2e_libstrip_la_LIBADD = -ldl
tests_e2e_libtorture_la_SOURCES = tests/e2e/torture.c tests/e2e/truth.h
tests_e2e_libtorture_la_CFLAGS = $(E2E_CFLAGS) -O2 -fvisibility=hidden
tests_e2e_libtorture_la_LDFLAGS = -module -avoid-version -shared -rpath /none $(E2E_LDFLAGS)

order_sh_tests = \
	tests/e2e/order_forks.sh tests/e2e/order_glibc.sh tests/e2e/order_jemalloc.sh \
	tests/e2e/order_mimalloc.sh tests/e2e/order_tcmalloc.sh tests/e2e/order_torture.sh \
	tests/e2e/order_wrongs.sh
TESTS += $(order_sh_tests)
EXTRA_DIST += $(order_sh_tests) tests/e2e/order_allocator.sh tests/e2e/order_lib.sh
