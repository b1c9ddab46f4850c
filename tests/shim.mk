# SPDX-License-Identifier: MIT OR Apache-2.0
# The preloaded library, by itself: a peer that stands in for the sidecar, and programs under it.
check_PROGRAMS += tests/e2e/shim_peer
tests_e2e_shim_peer_SOURCES = tests/e2e/shim_peer.c
tests_e2e_shim_peer_LDADD = libmtcommon.la
