# SPDX-License-Identifier: MIT OR Apache-2.0
bench_all += bench/pipeline
bench_pipeline_SOURCES = bench/pipeline.c bench/trace.c bench/trace.h common/chunk_producer.c \
	$(bench_harness)
bench_pipeline_CFLAGS = $(bench_codec_CFLAGS) $(URCU_CFLAGS)
bench_pipeline_LDADD = libmtorder.la libmtencoder.la $(bench_codec_LIBS)
