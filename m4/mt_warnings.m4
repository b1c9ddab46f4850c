# SPDX-License-Identifier: MIT OR Apache-2.0
# MT_TRY_CFLAG(VARIABLE, FLAG): appends FLAG to VARIABLE when the compiler takes it.
AC_DEFUN([MT_TRY_CFLAG], [
AC_MSG_CHECKING([whether $CC accepts $2])
mt_saved_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -Werror $2"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes]); $1="$$1 $2"], [AC_MSG_RESULT([no])])
CFLAGS=$mt_saved_CFLAGS
])
# MT_WARNINGS: the warnings of the project; --enable-werror makes them errors.
AC_DEFUN([MT_WARNINGS], [
AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [warnings are errors])], [], [enable_werror=no])
MT_WARN_CFLAGS="-Wall -Wextra"
m4_foreach_w([mt_flag], [-Wundef -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wformat=2
  -Wpointer-arith -Wwrite-strings -Wimplicit-fallthrough -Wmissing-variable-declarations],
  [MT_TRY_CFLAG([MT_WARN_CFLAGS], mt_flag)])
MT_WARN_COMMON_CFLAGS=
MT_TRY_CFLAG([MT_WARN_COMMON_CFLAGS], [-Wconversion])
AS_IF([test "$enable_werror" = yes], [MT_WARN_CFLAGS="$MT_WARN_CFLAGS -Werror"])
AC_SUBST([MT_WARN_CFLAGS])
AC_SUBST([MT_WARN_COMMON_CFLAGS])
])
