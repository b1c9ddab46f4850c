# SPDX-License-Identifier: MIT OR Apache-2.0
# An object of its own: from a library the linker could take the real encoder instead.
one_batch = tests/one_batch.c tests/one_batch.h
# The order engine: streams -> one order.
if HAVE_CRITERION
order_tests = tests/unit/test_clock tests/unit/test_liveness tests/unit/test_order \
	tests/unit/test_order_clocks tests/unit/test_order_ends tests/unit/test_order_forks \
	tests/unit/test_order_pidns tests/unit/test_order_realloc tests/unit/test_pace \
	tests/unit/test_scan tests/unit/test_shm
check_PROGRAMS += $(order_tests)
TESTS += $(order_tests)
tests_unit_test_clock_SOURCES = tests/unit/test_clock.c
tests_unit_test_clock_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
tests_unit_test_clock_LDADD = libmtcommon.la $(CRITERION_LIBS)
tests_unit_test_liveness_SOURCES = tests/unit/test_liveness.c
tests_unit_test_liveness_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS) $(URCU_CFLAGS)
tests_unit_test_liveness_LDADD = libmtorder.la libmtencoder.la libmtcommon.la $(CRITERION_LIBS)
tests_unit_test_pace_SOURCES = tests/unit/test_pace.c
tests_unit_test_pace_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS) $(URCU_CFLAGS)
tests_unit_test_pace_LDADD = libmtorder.la libmtencoder.la libmtcommon.la $(CRITERION_LIBS)
tests_unit_test_scan_SOURCES = tests/unit/test_scan.c common/chunk_producer.c
tests_unit_test_scan_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
tests_unit_test_scan_LDADD = libmtcommon.la $(CRITERION_LIBS)
tests_unit_test_shm_SOURCES = tests/unit/test_shm.c
tests_unit_test_shm_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
tests_unit_test_shm_LDADD = libmtcommon.la $(CRITERION_LIBS)
check_LTLIBRARIES += libmtordertest.la
libmtordertest_la_SOURCES = tests/unit/order_fixture.c tests/unit/order_fixture.h \
	tests/unit/order_support.c tests/unit/order_support.h common/chunk_producer.c
libmtordertest_la_CFLAGS = $(AM_CFLAGS) $(URCU_CFLAGS)
libmtordertest_la_LIBADD = libmtorder.la libmtencoder.la libmtcommon.la
order_test_cflags = $(AM_CFLAGS) $(CRITERION_CFLAGS) $(URCU_CFLAGS)
order_test_libs = libmtordertest.la $(CRITERION_LIBS)
tests_unit_test_order_SOURCES = tests/unit/test_order.c $(one_batch)
tests_unit_test_order_CFLAGS = $(order_test_cflags)
tests_unit_test_order_LDADD = $(order_test_libs)
tests_unit_test_order_clocks_SOURCES = tests/unit/test_order_clocks.c $(one_batch)
tests_unit_test_order_clocks_CFLAGS = $(order_test_cflags)
tests_unit_test_order_clocks_LDADD = $(order_test_libs)
tests_unit_test_order_ends_SOURCES = tests/unit/test_order_ends.c $(one_batch)
tests_unit_test_order_ends_CFLAGS = $(order_test_cflags)
tests_unit_test_order_ends_LDADD = $(order_test_libs)
tests_unit_test_order_forks_SOURCES = tests/unit/test_order_forks.c $(one_batch)
tests_unit_test_order_forks_CFLAGS = $(order_test_cflags)
tests_unit_test_order_forks_LDADD = $(order_test_libs)
tests_unit_test_order_pidns_SOURCES = tests/unit/test_order_pidns.c $(one_batch)
tests_unit_test_order_pidns_CFLAGS = $(order_test_cflags)
tests_unit_test_order_pidns_LDADD = $(order_test_libs)
tests_unit_test_order_realloc_SOURCES = tests/unit/test_order_realloc.c $(one_batch)
tests_unit_test_order_realloc_CFLAGS = $(order_test_cflags)
tests_unit_test_order_realloc_LDADD = $(order_test_libs)
endif
check_PROGRAMS += tests/stress/order_exchange
TESTS += tests/stress/order_exchange
tests_stress_order_exchange_SOURCES = tests/stress/order_exchange.c $(one_batch) \
	common/chunk_producer.c
tests_stress_order_exchange_CFLAGS = $(AM_CFLAGS) $(URCU_CFLAGS)
tests_stress_order_exchange_LDADD = libmtorder.la libmtencoder.la libmtcommon.la
