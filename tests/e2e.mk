# SPDX-License-Identifier: MIT OR Apache-2.0
# End-to-end tests: programs that are tracked as any other would be, so built with plain flags, and
# the counting library that stands behind ours. No sanitizer and no optimisation of malloc.
E2E_CFLAGS = -std=gnu11 $(MT_WARN_CFLAGS) -fno-builtin -pthread
E2E_LDFLAGS = -pthread
check_PROGRAMS += \
	tests/e2e/alone tests/e2e/blocks tests/e2e/closer tests/e2e/deny tests/e2e/early tests/e2e/entries \
	tests/e2e/forker tests/e2e/forkthreads tests/e2e/jumper tests/e2e/locker tests/e2e/mapper tests/e2e/nester \
	tests/e2e/newdelete \
	tests/e2e/odd_stacks tests/e2e/passer tests/e2e/pingpong tests/e2e/places tests/e2e/plugins tests/e2e/sandbox tests/e2e/spawner \
	tests/e2e/stalls tests/e2e/starter tests/e2e/tally tests/e2e/tsd tests/e2e/twice tests/e2e/vforker

check_LTLIBRARIES += tests/e2e/libcounter.la tests/e2e/libcounter_c.la tests/e2e/libplugin.la
tests_e2e_libcounter_la_SOURCES = tests/e2e/counter.c tests/e2e/counter.h
tests_e2e_libcounter_c_la_SOURCES = $(tests_e2e_libcounter_la_SOURCES)
tests_e2e_libcounter_c_la_CFLAGS = $(tests_e2e_libcounter_la_CFLAGS) -DCOUNTER_WITHOUT_OPERATORS
tests_e2e_libcounter_c_la_LDFLAGS = $(tests_e2e_libcounter_la_LDFLAGS)
tests_e2e_libcounter_la_CFLAGS = $(E2E_CFLAGS) -fexceptions -fvisibility=hidden
tests_e2e_libcounter_la_LIBADD = -ldl
tests_e2e_libcounter_c_la_LIBADD = -ldl
tests_e2e_libcounter_la_LDFLAGS = -module -avoid-version -shared -rpath /none $(E2E_LDFLAGS)

tests_e2e_alone_SOURCES = tests/e2e/alone.c
tests_e2e_alone_CFLAGS = $(E2E_CFLAGS)
tests_e2e_alone_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_blocks_SOURCES = tests/e2e/blocks.c
tests_e2e_blocks_CFLAGS = $(E2E_CFLAGS)
tests_e2e_blocks_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_closer_SOURCES = tests/e2e/closer.c
tests_e2e_closer_CFLAGS = $(E2E_CFLAGS)
tests_e2e_closer_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_deny_SOURCES = tests/e2e/deny.c
tests_e2e_deny_CFLAGS = $(E2E_CFLAGS)
tests_e2e_deny_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_entries_SOURCES = tests/e2e/entries.c
tests_e2e_entries_CFLAGS = $(E2E_CFLAGS)
tests_e2e_entries_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_forker_SOURCES = tests/e2e/forker.c
tests_e2e_forker_CFLAGS = $(E2E_CFLAGS)
tests_e2e_forker_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_forkthreads_SOURCES = tests/e2e/forkthreads.c
tests_e2e_forkthreads_CFLAGS = $(E2E_CFLAGS)
tests_e2e_forkthreads_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_jumper_SOURCES = tests/e2e/jumper.c
tests_e2e_jumper_CFLAGS = $(E2E_CFLAGS)
tests_e2e_jumper_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_odd_stacks_SOURCES = tests/e2e/odd_stacks.c
tests_e2e_odd_stacks_CFLAGS = $(E2E_CFLAGS) -fomit-frame-pointer
tests_e2e_odd_stacks_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_places_SOURCES = tests/e2e/places.c
tests_e2e_places_CFLAGS = $(E2E_CFLAGS)
tests_e2e_places_LDADD = -ldl
tests_e2e_places_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_locker_SOURCES = tests/e2e/locker.c
tests_e2e_locker_CFLAGS = $(E2E_CFLAGS)
tests_e2e_locker_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_passer_SOURCES = tests/e2e/passer.c
tests_e2e_passer_CFLAGS = $(E2E_CFLAGS)
tests_e2e_passer_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_pingpong_SOURCES = tests/e2e/pingpong.c
tests_e2e_pingpong_CFLAGS = $(E2E_CFLAGS)
tests_e2e_pingpong_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_sandbox_SOURCES = tests/e2e/sandbox.c
tests_e2e_sandbox_CFLAGS = $(E2E_CFLAGS)
tests_e2e_sandbox_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_spawner_SOURCES = tests/e2e/spawner.c
tests_e2e_spawner_CFLAGS = $(E2E_CFLAGS)
tests_e2e_spawner_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_stalls_SOURCES = bench/stalls.c
tests_e2e_stalls_CFLAGS = $(E2E_CFLAGS)
tests_e2e_stalls_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_starter_SOURCES = tests/e2e/starter.c
tests_e2e_starter_CFLAGS = $(E2E_CFLAGS)
tests_e2e_starter_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_tally_SOURCES = tests/e2e/tally.c
tests_e2e_tally_CFLAGS = $(E2E_CFLAGS)
tests_e2e_tally_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_tsd_SOURCES = tests/e2e/tsd.c
tests_e2e_tsd_CFLAGS = $(E2E_CFLAGS)
tests_e2e_tsd_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_twice_SOURCES = tests/e2e/twice.c
tests_e2e_twice_CFLAGS = $(E2E_CFLAGS)
tests_e2e_twice_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_vforker_SOURCES = tests/e2e/vforker.c
tests_e2e_vforker_CFLAGS = $(E2E_CFLAGS)
tests_e2e_vforker_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_early_SOURCES = tests/e2e/early.c
tests_e2e_early_CFLAGS = $(E2E_CFLAGS)
tests_e2e_early_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_mapper_SOURCES = tests/e2e/mapper.c
tests_e2e_mapper_CFLAGS = $(E2E_CFLAGS)
tests_e2e_mapper_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_plugins_SOURCES = tests/e2e/plugins.c
tests_e2e_plugins_CFLAGS = $(E2E_CFLAGS)
tests_e2e_plugins_LDADD = -ldl
tests_e2e_plugins_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_libplugin_la_SOURCES = tests/e2e/plugin.cc
tests_e2e_libplugin_la_CXXFLAGS = -std=c++17 -Wall -Wextra -fno-builtin -fvisibility=hidden
tests_e2e_libplugin_la_LDFLAGS = -module -avoid-version -shared -rpath /none $(E2E_LDFLAGS)
tests_e2e_nester_SOURCES = tests/e2e/nester.c
tests_e2e_nester_CFLAGS = $(E2E_CFLAGS) -D_GNU_SOURCE
tests_e2e_nester_LDFLAGS = $(E2E_LDFLAGS)
tests_e2e_newdelete_SOURCES = tests/e2e/newdelete.cc
tests_e2e_newdelete_CXXFLAGS = -std=c++17 -Wall -Wextra -fno-builtin -pthread -fsized-deallocation
tests_e2e_newdelete_LDFLAGS = $(E2E_LDFLAGS)

E2E_TESTS = \
	tests/e2e/comparison.sh \
	tests/e2e/count_allocators.sh \
	tests/e2e/count_bash.sh \
	tests/e2e/count_gcc.sh \
	tests/e2e/count_git.sh \
	tests/e2e/count_newdelete.sh \
	tests/e2e/count_node.sh \
	tests/e2e/count_perl.sh \
	tests/e2e/count_python.sh \
	tests/e2e/count_redis.sh \
	tests/e2e/count_sqlite.sh \
	tests/e2e/count_threads.sh \
	tests/e2e/doctored.sh \
	tests/e2e/kind01_no_privileges.sh \
	tests/e2e/kind02_fresh_environment.sh \
	tests/e2e/kind03_endings.sh tests/e2e/kind03_any_moment.sh \
	tests/e2e/kind04_fork_streams.sh \
	tests/e2e/kind05_deepbind.sh tests/e2e/kind05_not_intercepted.sh \
	tests/e2e/kind06_storm.sh \
	tests/e2e/kind07_background.sh \
	tests/e2e/kind08_small_shm.sh \
	tests/e2e/kind09_vfork.sh \
	tests/e2e/kind10_address_reuse.sh \
	tests/e2e/kind11_fork_threads.sh \
	tests/e2e/kind12_closed_descriptors.sh \
	tests/e2e/kind13_status_and_signals.sh \
	tests/e2e/kind14_clean_output.sh \
	tests/e2e/kind15_exec_chain.sh \
	tests/e2e/kind17_own_preload.sh \
	tests/e2e/kind18_short_processes.sh \
	tests/e2e/kind19_other_libc.sh \
	tests/e2e/kind20_entry_points.sh \
	tests/e2e/kind23_static_tls.sh \
	tests/e2e/kind25_early_and_late.sh \
	tests/e2e/kind26_own_mappings.sh \
	tests/e2e/kind27_thread_destructors.sh \
	tests/e2e/kind28_many_threads.sh \
	tests/e2e/kind34_runtimes.sh tests/e2e/kind34_servers.sh \
	tests/e2e/kind35_sanitizers.sh \
	tests/e2e/kind37_own_names.sh \
	tests/e2e/kind38_signal_in_hook.sh \
	tests/e2e/kind39_plugins.sh \
	tests/e2e/kind40_odd_stacks.sh \
	tests/e2e/kind42_foreign_machine.sh \
	tests/e2e/kind43_other_users.sh \
	tests/e2e/kind45_sandbox.sh \
	tests/e2e/kind47_alone_in_the_process.sh \
	tests/e2e/kind50_sidecar_dies.sh \
	tests/e2e/kind51_names.sh \
	tests/e2e/kind53_clocks.sh \
	tests/e2e/kind55_modules.sh \
	tests/e2e/kind56_fork_maps.sh \
	tests/e2e/kind57_damage.sh \
	tests/e2e/kind59_same_numbers.sh \
	tests/e2e/manual_use.sh \
	tests/e2e/memory_locks.sh \
	tests/e2e/msgpack_stream.sh \
	tests/e2e/pressure.sh \
	tests/e2e/process_tree.sh \
	tests/e2e/sidecar_memory.sh \
	tests/e2e/stalled_output.sh \
	tests/e2e/stopped_tree.sh
LINT_TESTS = \
	tests/lint/faults.sh tests/lint/files.sh tests/lint/format.sh tests/lint/headers.sh \
	tests/lint/kinds.sh tests/lint/layering.sh tests/lint/mutants.sh tests/lint/options.sh \
	tests/lint/shim.sh
TESTS += $(LINT_TESTS) $(E2E_TESTS)
EXTRA_DIST += $(LINT_TESTS) $(E2E_TESTS) docs/failure-kinds.md \
	tests/tap.sh tests/lint/lib.sh tests/lint/faults.allow tests/lint/shim_undefined.allow \
	tests/e2e/lib.sh tests/e2e/faults_lib.sh tests/e2e/artifact.py tests/e2e/compare.py \
	tests/e2e/killed.py tests/e2e/made.py tests/e2e/memory.py tests/e2e/opener.c tests/e2e/own_malloc.c \
	tests/e2e/places.py tests/e2e/stalled.py tests/e2e/standstill.py tests/e2e/stream.py \
	tests/e2e/places_lib.sh tests/e2e/preloaded.c tests/e2e/tree.py tests/e2e/watched.py

# The same tests with full sizes and more rounds; run before an issue is resolved. Then, where there
# is a cross compiler, the tests of another machine (tests/aarch64.mk).
.PHONY: check-long
check-long:
	MT_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check
	$(SHELL) $(top_srcdir)/tests/aarch64.sh --if-possible $(abs_top_builddir)-aarch64
