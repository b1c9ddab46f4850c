# SPDX-License-Identifier: MIT OR Apache-2.0
EXTRA_PROGRAMS += bench/bench-replay
bench_bench_replay_SOURCES = bench/replay.c
bench_bench_replay_LDADD = libmttools.la
