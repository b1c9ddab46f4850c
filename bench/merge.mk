# SPDX-License-Identifier: MIT OR Apache-2.0
bench_all += bench/merge
bench_merge_SOURCES = bench/merge.c $(one_batch) common/chunk_producer.c
bench_merge_CFLAGS = $(AM_CFLAGS) $(URCU_CFLAGS)
bench_merge_LDADD = libmtorder.la libmtencoder.la libmtcommon.la
