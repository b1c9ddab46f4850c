# SPDX-License-Identifier: MIT OR Apache-2.0
# The preloaded library, by itself: a peer that stands in for the sidecar, and programs under it.
check_PROGRAMS += tests/e2e/shim_peer
tests_e2e_shim_peer_SOURCES = \
	tests/e2e/shim_peer.c tests/e2e/shim_session.c tests/e2e/shim_session.h
tests_e2e_shim_peer_LDADD = libmtcommon.la

# The producer against the consumer, and the hooks under other names, also under sanitizers.
check_PROGRAMS += tests/stress/shim_producer tests/stress/shim_hooks
TESTS += tests/stress/shim_producer tests/stress/shim_hooks
tests_stress_shim_producer_SOURCES = \
	tests/stress/shim_producer.c common/chunk_producer.c common/chunk_producer.h
tests_stress_shim_producer_LDADD = libmtcommon.la
tests_stress_shim_hooks_SOURCES = $(MT_SHIM_SOURCES) \
	tests/stress/shim_hooks.c tests/e2e/shim_session.c tests/e2e/shim_session.h
# gcc tests the address of a thread-local variable by the flags of the add that makes it; the linker
# makes that add a lea, which sets none, when it links a program. So no test for null under UBSan.
tests_stress_shim_hooks_CFLAGS = $(AM_CFLAGS) -DMT_HARNESS $(MT_NO_NULL_CFLAGS)
if MT_ASAN
MT_NO_NULL_CFLAGS = -fno-sanitize=null
endif
tests_stress_shim_hooks_LDADD = libmtcommon.la
TESTS += tests/e2e/shim_alone.sh
EXTRA_DIST += tests/e2e/shim_alone.sh
