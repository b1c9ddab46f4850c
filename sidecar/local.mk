# SPDX-License-Identifier: MIT OR Apache-2.0

# Batches -> frames in parallel -> the file, in order.
noinst_LTLIBRARIES += libmtencoder.la
libmtencoder_la_CFLAGS = $(AM_CFLAGS) $(URCU_CFLAGS)
libmtencoder_la_LIBADD = $(URCU_LIBS)
libmtencoder_la_SOURCES = \
	sidecar/batch.c sidecar/batch.h \
	sidecar/encoder.c sidecar/encoder.h
# Kernel events, for the sidecar and for tests.
noinst_LTLIBRARIES += libmtkernel.la
libmtkernel_la_SOURCES = \
	sidecar/kernel.c \
	sidecar/kernel.h \
	sidecar/kernel_bpf.h \
	sidecar/kernel_merge.c \
	sidecar/kernel_merge.h \
	sidecar/kernel_perf.c \
	sidecar/kernel_perf.h \
	sidecar/kernel_queue.c \
	sidecar/kernel_queue.h
if HAVE_BPF
libmtkernel_la_SOURCES += sidecar/kernel_bpf.c
AM_CPPFLAGS += $(LIBBPF_CFLAGS)
libmtkernel_la_LIBADD = $(LIBBPF_LIBS)
# By name: BUILT_SOURCES would serve only all, check and install. (This needs the object to be made
# by the suffix rule, so the library has no flags of its own.)
sidecar/kernel_bpf.lo: bpf/process.skel.h
else
libmtkernel_la_SOURCES += sidecar/kernel_nobpf.c
endif
EXTRA_DIST += sidecar/kernel_bpf.c sidecar/kernel_nobpf.c
