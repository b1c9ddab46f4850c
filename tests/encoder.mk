# SPDX-License-Identifier: MIT OR Apache-2.0
check_PROGRAMS += tests/stress/encoder_order
TESTS += tests/stress/encoder_order
tests_stress_encoder_order_SOURCES = tests/stress/encoder_order.c
tests_stress_encoder_order_LDADD = libmtencoder.la libmtcommon.la
