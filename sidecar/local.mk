# SPDX-License-Identifier: MIT OR Apache-2.0

# Memory that is waited for.
noinst_LTLIBRARIES += libmtpatience.la
libmtpatience_la_SOURCES = sidecar/patience.c sidecar/patience.h
# Batches -> frames in parallel -> the file, in order.
noinst_LTLIBRARIES += libmtencoder.la
libmtencoder_la_CFLAGS = $(AM_CFLAGS) $(URCU_CFLAGS)
libmtencoder_la_LIBADD = libmtpatience.la $(URCU_LIBS)
libmtencoder_la_SOURCES = \
	sidecar/batch.c sidecar/batch.h \
	sidecar/encoder.c sidecar/encoder.h
# Kernel events, for the sidecar and for tests.
noinst_LTLIBRARIES += libmtkernel.la
EXTRA_DIST += docs/kernel.md
libmtkernel_la_LIBADD = libmtpatience.la
libmtkernel_la_SOURCES = \
	sidecar/kernel.c \
	sidecar/kernel.h \
	sidecar/kernel_bpf.h \
	sidecar/kernel_merge.c \
	sidecar/kernel_merge.h \
	sidecar/kernel_perf.c \
	sidecar/kernel_perf.h \
	sidecar/kernel_queue.c \
	sidecar/kernel_queue.h \
	sidecar/timens.c \
	sidecar/timens.h
if HAVE_BPF
libmtkernel_la_SOURCES += \
	sidecar/kernel_bpf.c \
	sidecar/kernel_btf.c \
	sidecar/kernel_btf.h \
	sidecar/kernel_load.c \
	sidecar/kernel_load.h
AM_CPPFLAGS += $(LIBBPF_CFLAGS)
libmtkernel_la_LIBADD += $(LIBBPF_LIBS)
# By name: BUILT_SOURCES would serve only all, check and install. (This needs the object to be made
# by the suffix rule, so the library has no flags of its own.)
sidecar/kernel_bpf.lo sidecar/kernel_load.lo: bpf/process.skel.h
else
libmtkernel_la_SOURCES += sidecar/kernel_nobpf.c
endif
# The program. Its parts are a library of their own, for the unit tests.
noinst_LTLIBRARIES += libmtsidecar.la
libmtsidecar_la_SOURCES = \
	sidecar/allocator.c sidecar/allocator.h \
	sidecar/child.c sidecar/child.h \
	sidecar/command.c sidecar/command.h \
	sidecar/control.c sidecar/control.h \
	sidecar/coverage.c sidecar/coverage.h \
	sidecar/identity.c sidecar/identity.h \
	sidecar/inherited.c sidecar/inherited.h \
	sidecar/job.c sidecar/job.h \
	sidecar/loop.c sidecar/loop.h \
	sidecar/loss.c sidecar/loss.h \
	sidecar/mappings.c sidecar/mappings.h \
	sidecar/pulse.c sidecar/pulse.h \
	sidecar/recorder.c sidecar/recorder.h \
	sidecar/options.c sidecar/options.h \
	sidecar/output.c sidecar/output.h \
	sidecar/release.c sidecar/release.h \
	sidecar/report.c sidecar/report.h \
	sidecar/room.c sidecar/room.h \
	sidecar/run.c sidecar/run.h \
	sidecar/runmeta.c sidecar/runmeta.h \
	sidecar/say.c sidecar/say.h \
	sidecar/session.c sidecar/session.h \
	sidecar/untracked.c \
	sidecar/watch.c sidecar/watch.h
libmtsidecar_la_CFLAGS = $(AM_CFLAGS) $(URCU_CFLAGS)
libmtsidecar_la_LIBADD = libmtpatience.la
pkglibexec_PROGRAMS += memtrack-sidecar
memtrack_sidecar_SOURCES = sidecar/main.c
memtrack_sidecar_LDADD = libmtsidecar.la libmtorder.la libmtkernel.la libmtencoder.la libmtcommon.la

# The launcher: of libc alone and without a sanitizer, since the user's LD_PRELOAD is loaded into it.
bin_PROGRAMS += memtrack-preload
memtrack_preload_SOURCES = sidecar/launcher.c
memtrack_preload_CFLAGS = -std=gnu11 $(MT_WARN_CFLAGS) $(MT_OPT_CFLAGS) \
	-DMT_PKGLIBEXECDIR='"$(pkglibexecdir)"' -DMT_PKGLIBDIR='"$(pkglibdir)"'
memtrack_preload_LDFLAGS =
dist_man_MANS += man/memtrack-preload.1
EXTRA_DIST += docs/launcher.md docs/options.md
# The order engine.
EXTRA_DIST += docs/memory.md docs/order.md
noinst_LTLIBRARIES += libmtorder.la
libmtorder_la_CFLAGS = $(AM_CFLAGS) $(URCU_CFLAGS)
libmtorder_la_SOURCES = \
	sidecar/drain.c sidecar/image.c sidecar/image.h \
	sidecar/liveness.c sidecar/liveness.h \
	sidecar/merge.h \
	sidecar/order.c sidecar/order.h \
	sidecar/order_impl.h \
	sidecar/pending.c sidecar/pending_queue.c sidecar/pending.h \
	sidecar/pidns.c sidecar/pidns.h sidecar/process.c sidecar/process.h \
	sidecar/reallocs.c sidecar/repair.c sidecar/repair.h sidecar/repair_impl.h \
	sidecar/pace.c sidecar/pace.h \
	sidecar/sink.c sidecar/sink.h \
	sidecar/shelf.c sidecar/shelf.h \
	sidecar/starved.c sidecar/starved.h
