# SPDX-License-Identifier: MIT OR Apache-2.0
# MT_ENABLE_DEBUG: --enable-debug[=LEVEL] turns on the invariant walkers (MT_DEBUG in config.h, 0 to 3).
AC_DEFUN([MT_ENABLE_DEBUG], [
AC_ARG_ENABLE([debug],
  [AS_HELP_STRING([--enable-debug@<:@=1..3@:>@], [check invariants at run time; higher is slower])],
  [], [enable_debug=0])
AS_CASE([$enable_debug], [yes], [enable_debug=1], [no], [enable_debug=0], [0|1|2|3], [],
  [AC_MSG_ERROR([--enable-debug takes 1, 2 or 3])])
AC_DEFINE_UNQUOTED([MT_DEBUG], [$enable_debug], [Level of run-time invariant checks])
AS_IF([test "$enable_debug" != 0], [MT_OPT_CFLAGS="-Og -g3"], [MT_OPT_CFLAGS=])
AC_SUBST([MT_OPT_CFLAGS])
# The preloaded library is read by the tools of its programs: valgrind 3.19 gives up at clang's DWARF 5.
AS_CASE([" $CFLAGS "], [*" -g"*], [MT_SHIM_DEBUG_CFLAGS=-gdwarf-4], [MT_SHIM_DEBUG_CFLAGS=])
AC_SUBST([MT_SHIM_DEBUG_CFLAGS])
])
