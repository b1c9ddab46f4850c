# SPDX-License-Identifier: MIT OR Apache-2.0
bench_all += bench/fused
bench_fused_SOURCES = bench/fused.c bench/trace.c bench/trace.h $(bench_harness)
bench_fused_CFLAGS = $(bench_codec_CFLAGS)
bench_fused_LDADD = $(bench_codec_LIBS)
