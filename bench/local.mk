# SPDX-License-Identifier: MIT OR Apache-2.0
# Built and run by `make bench` only. Programs print a table on stderr and JSON lines on stdout.
bench_all = bench/encode bench/decode
EXTRA_PROGRAMS += $(bench_all)
CLEANFILES += $(bench_all)
bench_harness = bench/harness.c bench/harness.h
bench_codec_CFLAGS = $(AM_CFLAGS) $(ZSTD_CFLAGS) $(MSGPACK_CFLAGS)
bench_codec_LIBS = libmtcommon.la $(ZSTD_LIBS) $(MSGPACK_LIBS)

bench_encode_SOURCES = bench/encode.c bench/trace.c bench/trace.h $(bench_harness)
bench_encode_CFLAGS = $(bench_codec_CFLAGS)
bench_encode_LDADD = $(bench_codec_LIBS)
bench_decode_SOURCES = bench/decode.c bench/trace.c bench/trace.h $(bench_harness)
bench_decode_CFLAGS = $(bench_codec_CFLAGS)
bench_decode_LDADD = $(bench_codec_LIBS)

include bench/hook.mk

.PHONY: bench
bench: $(bench_all)
	@for program in $(bench_all); do ./$$program || exit 1; done
include bench/merge.mk
include bench/replay.mk
include bench/fused.mk
