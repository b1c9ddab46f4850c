# SPDX-License-Identifier: MIT OR Apache-2.0
# The order engine: streams -> one order.
if HAVE_CRITERION
order_tests = tests/unit/test_order
check_PROGRAMS += $(order_tests)
TESTS += $(order_tests)
tests_unit_test_order_SOURCES = tests/unit/test_order.c tests/unit/order_support.c \
	tests/unit/order_support.h common/chunk_producer.c
tests_unit_test_order_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS) $(URCU_CFLAGS)
tests_unit_test_order_LDADD = libmtorder.la libmtencoder.la libmtcommon.la $(CRITERION_LIBS)
endif
