# SPDX-License-Identifier: MIT OR Apache-2.0
bench_all += bench/replay
bench_replay_SOURCES = bench/replay.c
bench_replay_LDADD = libmttools.la
