# SPDX-License-Identifier: MIT OR Apache-2.0
# MT_SUMMARY: what configure decided, in one look.
AC_DEFUN([MT_SUMMARY], [
AS_IF([test "$have_criterion" = yes], [mt_sum_criterion=yes],
  [mt_sum_criterion="no: 'make check' needs it; install libcriterion-dev"])
AS_IF([test "$enable_bpf" != no], [mt_sum_bpf="yes ($BPF_CLANG, $BPFTOOL)"], [mt_sum_bpf="no (--disable-bpf)"])
cat <<MT_END

memtrack $PACKAGE_VERSION
  compiler      $CC $CFLAGS
  prefix        $prefix
  eBPF          $mt_sum_bpf
  unit tests    $mt_sum_criterion
  sanitizers    asan=$enable_asan tsan=$enable_tsan
  debug level   $enable_debug
  werror        $enable_werror
MT_END
])
