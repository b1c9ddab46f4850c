# SPDX-License-Identifier: MIT OR Apache-2.0
# MT_BPF: eBPF process events, on unless --disable-bpf. Needs libbpf, bpftool (for the skeleton) and
# clang (for -target bpf). bpftool may sit under /usr/lib/linux-tools/*, where Ubuntu puts it.
AC_DEFUN([MT_BPF], [
AC_ARG_ENABLE([bpf], [AS_HELP_STRING([--disable-bpf], [build without eBPF: no clang, bpftool or libbpf needed])],
  [], [enable_bpf=yes])
AC_ARG_VAR([BPF_CLANG], [clang that compiles the eBPF programs])
AC_ARG_VAR([BPFTOOL], [bpftool that makes the skeleton])
AS_IF([test "$enable_bpf" != no], [
  PKG_CHECK_MODULES([LIBBPF], [libbpf >= 1.0], [],
    [AC_MSG_ERROR([libbpf 1.0 or later was not found: install libbpf-dev (Debian 12, Ubuntu 24.04 or later), or configure with --disable-bpf: process events and mappings come from perf then])])
  AC_PATH_PROGS([BPF_CLANG], [clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14], [])
  AS_IF([test -z "$BPF_CLANG"], [AC_MSG_ERROR([clang was not found: install clang, or configure with --disable-bpf])])
  mt_tools_path=$PATH:/usr/sbin:/sbin
  for mt_dir in /usr/lib/linux-tools/* /usr/lib/linux-tools-*; do
    AS_IF([test -x "$mt_dir/bpftool"], [mt_tools_path=$mt_tools_path:$mt_dir])
  done
  # The bpftool in PATH may be a wrapper that finds nothing for this kernel: it has to run.
  AC_CACHE_CHECK([for a bpftool that runs], [mt_cv_bpftool], [
    mt_cv_bpftool=no
    for mt_dir in `echo "$mt_tools_path" | tr : ' '`; do
      AS_IF([test "$mt_cv_bpftool" = no && "$mt_dir/bpftool" version >/dev/null 2>&1],
        [mt_cv_bpftool=$mt_dir/bpftool])
    done
    AS_IF([test -n "$BPFTOOL"], [mt_cv_bpftool=$BPFTOOL])])
  AS_IF([test "$mt_cv_bpftool" = no],
    [AC_MSG_ERROR([[bpftool was not found: install bpftool (Debian) or linux-tools-generic (Ubuntu), or configure with --disable-bpf]])])
  BPFTOOL=$mt_cv_bpftool
  AS_CASE([$host_cpu], [x86_64], [BPF_ARCH=x86], [aarch64], [BPF_ARCH=arm64], [BPF_ARCH=$host_cpu])
  AC_SUBST([BPF_ARCH])
  AC_DEFINE([HAVE_BPF], [1], [Built with eBPF])
])
AC_SUBST([BPFTOOL])
AM_CONDITIONAL([HAVE_BPF], [test "$enable_bpf" != no])
])
