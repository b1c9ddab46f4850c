# SPDX-License-Identifier: MIT OR Apache-2.0
bench_all += bench/scan
bench_scan_SOURCES = bench/scan.c bench/trace.c bench/trace.h $(bench_harness)
bench_scan_CFLAGS = $(bench_codec_CFLAGS)
bench_scan_LDADD = $(bench_codec_LIBS)
