# SPDX-License-Identifier: MIT OR Apache-2.0
# Built and run by `make bench` only; each program of bench_all answers one question by itself. They
# print a table on stderr and JSON lines on stdout.
bench_all = bench/encode bench/decode
bench_harness = bench/harness.c bench/harness.h
bench_codec_CFLAGS = $(AM_CFLAGS) $(ZSTD_CFLAGS) $(MSGPACK_CFLAGS)
bench_codec_LIBS = libmtcommon.la $(ZSTD_LIBS) $(MSGPACK_LIBS)

bench_encode_SOURCES = bench/encode.c bench/trace.c bench/trace.h $(bench_harness)
bench_encode_CFLAGS = $(bench_codec_CFLAGS)
bench_encode_LDADD = $(bench_codec_LIBS)
bench_decode_SOURCES = bench/decode.c bench/trace.c bench/trace.h $(bench_harness)
bench_decode_CFLAGS = $(bench_codec_CFLAGS)
bench_decode_LDADD = $(bench_codec_LIBS)

include bench/fused.mk
include bench/hook.mk
include bench/merge.mk
include bench/pipeline.mk
include bench/replay.mk
include bench/run.mk
include bench/scan.mk
EXTRA_PROGRAMS += $(bench_all) bench/pairs bench/run
CLEANFILES += $(bench_all) bench/pairs bench/run

.PHONY: bench
bench: all $(bench_all) bench-run
	@for program in $(bench_all); do ./$$program || exit 1; done
