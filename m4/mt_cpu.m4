# SPDX-License-Identifier: MIT OR Apache-2.0
# MT_CPU_DISPATCH: --disable-cpu-dispatch leaves out the code that only newer processors can run and
# that is chosen at run time, so that the tests see what runs on all others.
AC_DEFUN([MT_CPU_DISPATCH], [
AC_ARG_ENABLE([cpu-dispatch], [AS_HELP_STRING([--disable-cpu-dispatch],
  [only code for the oldest processor of the machine])], [], [enable_cpu_dispatch=yes])
AS_IF([test "$enable_cpu_dispatch" = no], [AC_DEFINE([MT_NO_CPU_DISPATCH], [1],
  [No code that is chosen by the processor at run time])])
AS_CASE([$enable_cpu_dispatch,$host_cpu], [yes,x86_64], [mt_cpu_dispatch=yes], [mt_cpu_dispatch=no])
AM_CONDITIONAL([CPU_DISPATCH], [test "$mt_cpu_dispatch" = yes])
])
