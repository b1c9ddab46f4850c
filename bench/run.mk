# SPDX-License-Identifier: MIT OR Apache-2.0
# Whole runs: bare, tracked, and under heaptrack where it is installed. BENCH_CASES picks some.
bench_pairs_SOURCES = bench/pairs.c
bench_run_SOURCES = bench/run.c

.PHONY: bench-run
bench-run: all bench/pairs bench/run
	@bench/run '$(abs_top_builddir)/memtrack-preload' '$(abs_top_builddir)/bench/pairs' $(BENCH_CASES)
