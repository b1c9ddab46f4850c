# SPDX-License-Identifier: MIT OR Apache-2.0
# Fuzz targets. `make check` replays what was found and kept (tests/fuzz/corpus/TARGET) with any
# compiler; `make check-fuzz` lets libFuzzer search for FUZZ_SECONDS a target and needs clang.
FUZZ_TARGETS = artifact control frame_dec fused merge order
FUZZ_CC = clang
FUZZ_SECONDS = 600

fuzz_common = tests/fuzz/fuzz_input.h tests/fuzz/replay.c
fuzz_replays = \
	tests/fuzz/replay_artifact tests/fuzz/replay_control tests/fuzz/replay_frame_dec \
	tests/fuzz/replay_fused tests/fuzz/replay_merge tests/fuzz/replay_order
check_PROGRAMS += $(fuzz_replays)
TESTS += $(fuzz_replays)
EXTRA_DIST += tests/fuzz/corpus docs/limits.md

tests_fuzz_replay_artifact_SOURCES = tests/fuzz/fuzz_artifact.c $(fuzz_common)
tests_fuzz_replay_artifact_LDADD = libmtcommon.la
tests_fuzz_replay_control_SOURCES = tests/fuzz/fuzz_control.c $(fuzz_common)
tests_fuzz_replay_control_LDADD = libmtsidecar.la libmtcommon.la
tests_fuzz_replay_frame_dec_SOURCES = tests/fuzz/fuzz_frame_dec.c $(fuzz_common)
tests_fuzz_replay_frame_dec_LDADD = libmtcommon.la
tests_fuzz_replay_fused_SOURCES = tests/fuzz/fuzz_fused.c $(fused_support) $(fuzz_common)
tests_fuzz_replay_fused_CFLAGS = $(AM_CFLAGS) $(ZSTD_CFLAGS)
tests_fuzz_replay_fused_LDADD = libmtcommon.la $(ZSTD_LIBS)
tests_fuzz_replay_merge_SOURCES = tests/fuzz/fuzz_merge.c $(fuzz_common)
tests_fuzz_replay_merge_LDADD = libmtkernel.la libmtcommon.la
tests_fuzz_replay_order_SOURCES = tests/fuzz/fuzz_order.c $(fuzz_common) \
	tests/unit/order_support.c tests/unit/order_support.h $(one_batch) \
	common/chunk_producer.c
tests_fuzz_replay_order_CFLAGS = $(AM_CFLAGS) $(URCU_CFLAGS)
tests_fuzz_replay_order_LDADD = libmtorder.la libmtencoder.la libmtcommon.la

# Built from the sources in one go, each by clang with its coverage.
fuzz_flags = -std=gnu11 -g -O1 -D_GNU_SOURCE -I. -I$(abs_top_builddir) \
	-include $(abs_top_builddir)/config.h $(ZSTD_CFLAGS) $(MSGPACK_CFLAGS) $(URCU_CFLAGS) \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
fuzz_libs = $(ZSTD_LIBS) $(MSGPACK_LIBS) $(URCU_LIBS) -pthread
fuzz_sources_artifact = common/*.c
fuzz_sources_control = sidecar/control.c sidecar/session.c sidecar/child.c sidecar/identity.c sidecar/inherited.c sidecar/say.c sidecar/patience.c common/*.c
fuzz_sources_frame_dec = common/*.c
fuzz_sources_fused = tests/unit/fused_support.c common/*.c
fuzz_sources_merge = sidecar/kernel_merge.c sidecar/kernel_queue.c sidecar/patience.c common/*.c
fuzz_sources_order = $(filter %.c,$(libmtorder_la_SOURCES)) tests/unit/order_support.c \
	tests/one_batch.c sidecar/batch.c sidecar/patience.c common/*.c

# One target, built and searched: make fuzz-order FUZZ_SECONDS=60. New inputs are kept in the build
# folder; the corpus is added to by hand, small.
CLEANFILES += $(FUZZ_TARGETS:%=tests/fuzz/fuzz_%)
fuzz_all = $(FUZZ_TARGETS:%=fuzz-%)
.PHONY: check-fuzz $(fuzz_all)
$(fuzz_all):
	@target=$(@:fuzz-%=%); $(MKDIR_P) tests/fuzz/found/$$target && \
	(cd $(top_srcdir) && $(FUZZ_CC) $(fuzz_flags) tests/fuzz/fuzz_$$target.c \
		$(fuzz_sources_$(@:fuzz-%=%)) $(fuzz_libs) -o $(abs_top_builddir)/tests/fuzz/fuzz_$$target) && \
	tests/fuzz/fuzz_$$target -max_len=2048 -len_control=10 -timeout=20 -max_total_time=$(FUZZ_SECONDS) \
		-artifact_prefix=tests/fuzz/found/$$target- -print_final_stats=1 \
		tests/fuzz/found/$$target $(abs_top_srcdir)/tests/fuzz/corpus/$$target
check-fuzz:
	@for target in $(FUZZ_TARGETS); do $(MAKE) fuzz-$$target || exit 1; done

# Programs that attack the sidecar while they are tracked.
check_PROGRAMS += tests/e2e/hostile tests/e2e/hostile_client
tests_e2e_hostile_SOURCES = tests/e2e/hostile.c
tests_e2e_hostile_CFLAGS = $(E2E_CFLAGS)
tests_e2e_hostile_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_hostile_client_SOURCES = tests/e2e/hostile_client.c
tests_e2e_hostile_client_CFLAGS = $(E2E_CFLAGS)
tests_e2e_hostile_client_LDFLAGS = $(E2E_LDFLAGS)
HOSTILE_TESTS = tests/e2e/kind35_valgrind.sh tests/e2e/run_faults.sh \
	tests/e2e/run_faults_manual.sh tests/e2e/tool_faults.sh \
	tests/e2e/run_privileges.sh tests/e2e/run_hostile_client.sh tests/e2e/run_hostile_memory.sh
TESTS += $(HOSTILE_TESTS)
EXTRA_DIST += $(HOSTILE_TESTS)

# Lets a call of the program that it is preloaded into fail.
check_LTLIBRARIES += tests/e2e/libfault.la
tests_e2e_libfault_la_SOURCES = tests/e2e/fault.c tests/e2e/fault_calls.h tests/e2e/fault_site.c tests/e2e/fault_site.h
tests_e2e_libfault_la_CFLAGS = $(E2E_CFLAGS) -fvisibility=hidden
tests_e2e_libfault_la_LDFLAGS = -module -avoid-version -shared -rpath /none $(E2E_LDFLAGS)
tests_e2e_libfault_la_LIBADD = -lgcc_s

# Unit tests and the fuzz corpora under valgrind's memcheck: an error is a failed test.
VALGRIND = valgrind -q --error-exitcode=9
.PHONY: check-valgrind
check-valgrind:
	$(MAKE) check TESTS='$(filter tests/unit/test_% tests/fuzz/replay_%,$(TESTS))' \
		LOG_COMPILER='$(VALGRIND)'
