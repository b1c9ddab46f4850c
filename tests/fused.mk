# SPDX-License-Identifier: MIT OR Apache-2.0
# The fused writer: common/frame_fused.[ch] and common/fused_*.
fused_support = tests/unit/fused_support.c tests/unit/fused_support.h

check_PROGRAMS += tests/stress/fused_fuzz
TESTS += tests/stress/fused_fuzz
tests_stress_fused_fuzz_SOURCES = tests/stress/fused_fuzz.c $(fused_support)
tests_stress_fused_fuzz_CFLAGS = $(AM_CFLAGS) $(ZSTD_CFLAGS)
tests_stress_fused_fuzz_LDADD = libmtcommon.la $(ZSTD_LIBS)

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

# The two writers against each other for FUZZ_SECONDS, inputs made by libFuzzer. Needs clang.
FUZZ_CC = clang
FUZZ_SECONDS = 60
fuzz_fused_sources = tests/fuzz/fuzz_fused.c tests/unit/fused_support.c common/frame_fused.c \
	common/fused_bits.c common/fused_fse.c common/fused_plan.c common/fused_seq.c \
	common/fused_slow.c common/frame_enc.c common/buf.c common/utf8.c
EXTRA_DIST += tests/fuzz/fuzz_fused.c
CLEANFILES += tests/fuzz/fuzz_fused
.PHONY: check-fuzz
check-fuzz:
	$(MKDIR_P) tests/fuzz
	cd $(top_srcdir) && $(FUZZ_CC) -std=gnu11 -g -O1 -D_GNU_SOURCE -I. $(ZSTD_CFLAGS) \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
		$(fuzz_fused_sources) $(ZSTD_LIBS) -o $(abs_top_builddir)/tests/fuzz/fuzz_fused
	tests/fuzz/fuzz_fused -max_len=4096 -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1
