# SPDX-License-Identifier: MIT OR Apache-2.0
# Another machine: built for aarch64, run under qemu-user (tests/aarch64.sh). What an emulator can
# run: all unit and stress tests, and the end-to-end tests that ask for nothing which qemu-user lacks
# (docs/limits.md, "Under qemu-user"); single cases that it cannot run are skipped there, by name.
EXTRA_DIST += tests/aarch64.sh tests/e2e/page_sizes.sh
EMULATED_SH = \
	tests/lint/shim.sh \
	tests/e2e/codec_foreign.sh \
	tests/e2e/count_newdelete.sh \
	tests/e2e/count_perl.sh \
	tests/e2e/kind03_endings.sh \
	tests/e2e/kind05_deepbind.sh \
	tests/e2e/kind07_background.sh \
	tests/e2e/kind08_small_shm.sh \
	tests/e2e/kind12_closed_descriptors.sh \
	tests/e2e/kind13_status_and_signals.sh \
	tests/e2e/kind15_exec_chain.sh \
	tests/e2e/kind17_own_preload.sh \
	tests/e2e/kind20_entry_points.sh \
	tests/e2e/kind23_static_tls.sh \
	tests/e2e/kind25_early_and_late.sh \
	tests/e2e/kind26_own_mappings.sh \
	tests/e2e/kind27_thread_destructors.sh \
	tests/e2e/kind28_many_threads.sh \
	tests/e2e/page_sizes.sh \
	tests/e2e/run_faults.sh \
	tests/e2e/run_jobs.sh
EMULATED_TESTS = $(EMULATED_SH) \
	$(filter tests/unit/% tests/stress/% tests/fuzz/replay_% tests/e2e/tool_%,$(TESTS))

# check-emulated is for the build for the other machine, and called by the script.
.PHONY: check-aarch64 check-emulated
check-aarch64:
	$(SHELL) $(top_srcdir)/tests/aarch64.sh $(abs_top_builddir)-aarch64
check-emulated:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(EMULATED_TESTS)'
