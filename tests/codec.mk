# SPDX-License-Identifier: MIT OR Apache-2.0
# The artifact's codec: common/frame_*, artifact_*, meta_*.
if HAVE_CRITERION
codec_tests = tests/unit/test_golden
check_PROGRAMS += $(codec_tests)
TESTS += $(codec_tests)
codec_support = tests/unit/codec_support.c tests/unit/codec_support.h
codec_cflags = $(AM_CFLAGS) $(CRITERION_CFLAGS) $(ZSTD_CFLAGS) $(MSGPACK_CFLAGS)
codec_libs = libmtcommon.la $(CRITERION_LIBS) $(ZSTD_LIBS) $(MSGPACK_LIBS)

tests_unit_test_golden_SOURCES = tests/unit/test_golden.c $(codec_support)
tests_unit_test_golden_CFLAGS = $(codec_cflags)
tests_unit_test_golden_LDADD = $(codec_libs)
endif
EXTRA_DIST += tests/golden
