# SPDX-License-Identifier: MIT OR Apache-2.0
# The fused writer: common/frame_fused.[ch] and common/fused_*.
fused_support = tests/unit/fused_support.c tests/unit/fused_support.h

check_PROGRAMS += tests/stress/fused_fuzz
TESTS += tests/stress/fused_fuzz
tests_stress_fused_fuzz_SOURCES = tests/stress/fused_fuzz.c $(fused_support)
tests_stress_fused_fuzz_CFLAGS = $(AM_CFLAGS) $(ZSTD_CFLAGS)
tests_stress_fused_fuzz_LDADD = libmtcommon.la $(ZSTD_LIBS)

# What --disable-cpu-dispatch builds, for who does not ask for it: compiled, and tried, a second time.
if CPU_DISPATCH
check_LTLIBRARIES += libmtplain.la
libmtplain_la_CPPFLAGS = $(AM_CPPFLAGS) -DMT_NO_CPU_DISPATCH
libmtplain_la_CFLAGS = $(libmtcommon_la_CFLAGS)
libmtplain_la_SOURCES = common/event_search.c common/frame_fused.c common/fused_bits.c \
	common/fused_fse.c common/fused_plan.c common/fused_seq.c common/fused_slow.c
check_PROGRAMS += tests/stress/fused_fuzz_plain
TESTS += tests/stress/fused_fuzz_plain
tests_stress_fused_fuzz_plain_SOURCES = $(tests_stress_fused_fuzz_SOURCES)
tests_stress_fused_fuzz_plain_CPPFLAGS = $(libmtplain_la_CPPFLAGS)
tests_stress_fused_fuzz_plain_CFLAGS = $(tests_stress_fused_fuzz_CFLAGS)
tests_stress_fused_fuzz_plain_LDADD = libmtplain.la $(tests_stress_fused_fuzz_LDADD)
endif

if HAVE_CRITERION
fused_tests = tests/unit/test_frame_fused tests/unit/test_fused_frames
check_PROGRAMS += $(fused_tests)
TESTS += $(fused_tests)
fused_unit = tests/unit/fused_unit.c tests/unit/fused_unit.h $(fused_support)
tests_unit_test_frame_fused_SOURCES = tests/unit/test_frame_fused.c $(fused_unit) $(codec_support)
tests_unit_test_frame_fused_CFLAGS = $(codec_cflags)
tests_unit_test_frame_fused_LDADD = $(codec_libs)
tests_unit_test_fused_frames_SOURCES = tests/unit/test_fused_frames.c $(fused_unit)
tests_unit_test_fused_frames_CFLAGS = $(codec_cflags)
tests_unit_test_fused_frames_LDADD = $(codec_libs)
endif
