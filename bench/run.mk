# SPDX-License-Identifier: MIT OR Apache-2.0
# Whole runs: bare, tracked, and under heaptrack where it is installed. BENCH_CASES picks some.
bench_pairs_SOURCES = bench/pairs.c
bench_run_SOURCES = bench/run.c

.PHONY: bench-run
bench-run: all bench/pairs bench/run
	@bench/run '$(abs_top_builddir)/memtrack-preload' '$(abs_top_builddir)/bench/pairs' $(BENCH_CASES)

# How a slow encoder holds a program up: see the source.
EXTRA_PROGRAMS += bench/stalls
CLEANFILES += bench/stalls
bench_stalls_SOURCES = bench/stalls.c
bench_stalls_CFLAGS = $(AM_CFLAGS) -fno-builtin
