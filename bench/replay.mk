# SPDX-License-Identifier: MIT OR Apache-2.0
EXTRA_PROGRAMS += bench/bench-replay
bench_bench_replay_SOURCES = bench/replay.c
bench_bench_replay_LDADD = libmttools.la
bench_all += bench/replay
bench_replay_SOURCES = bench/replay.c
bench_replay_LDADD = libmttools.la
