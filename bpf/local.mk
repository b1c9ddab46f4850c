# SPDX-License-Identifier: MIT OR Apache-2.0
# The eBPF programs and the skeleton that the sidecar includes as bpf/process.skel.h.
MT_BPF_FILES = \
	bpf/process.bpf.c \
	bpf/session.h \
	bpf/path.h \
	bpf/image.h \
	bpf/kernel_types.h \
	common/bpf_event.h
EXTRA_DIST += $(MT_BPF_FILES)
CLEANFILES += bpf/process.bpf.o bpf/process.min.o bpf/process.skel.h

# clang -target bpf knows nothing of the directories of a multiarch system, so those of the host
# compiler are passed on. Sanitizers and hardening flags of the host have no meaning here.
bpf/process.bpf.o: $(MT_BPF_FILES)
	$(AM_V_GEN)$(MKDIR_P) bpf && $(BPF_CLANG) -g -O2 -mcpu=v3 -target bpf \
		-D__TARGET_ARCH_$(BPF_ARCH) -Wall -Wextra -Wno-unused-parameter -I$(top_srcdir) \
		$(LIBBPF_CFLAGS) `$(BPF_CLANG) -v -E -x c - </dev/null 2>&1 | \
			$(SED) -n '/^#include </,/^End of search/s/^ \(\/.*\)/-idirafter \1/p'` \
		-c $(top_srcdir)/bpf/process.bpf.c -o $@.tmp && mv $@.tmp $@

# What is linked again has no DWARF, which would only be read past at each start.
bpf/process.skel.h: bpf/process.bpf.o
	$(AM_V_GEN)$(BPFTOOL) gen object bpf/process.min.o bpf/process.bpf.o && \
		$(BPFTOOL) gen skeleton bpf/process.min.o name mt_process > $@.tmp && mv $@.tmp $@
