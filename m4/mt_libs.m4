# SPDX-License-Identifier: MIT OR Apache-2.0
# MT_NEED(PREFIX, MODULES, PACKAGE): a library that must be there; names its package when it is not.
AC_DEFUN([MT_NEED], [
PKG_CHECK_MODULES([$1], [$2], [],
  [AC_MSG_ERROR([$2 was not found: install $3 (Debian, Ubuntu), or name it in PKG_CONFIG_PATH])])
])
AC_DEFUN([MT_LIBS], [
MT_NEED([ZSTD], [libzstd >= 1.4.0], [libzstd-dev])
PKG_CHECK_MODULES([MSGPACK], [msgpack], [], [
  PKG_CHECK_MODULES([MSGPACK], [msgpack-c], [], [
    AC_MSG_ERROR([msgpack-c was not found: install libmsgpack-dev (Debian 12) or libmsgpack-c-dev (newer Debian, Ubuntu 24.04)])])])
MT_NEED([URCU], [liburcu liburcu-cds], [liburcu-dev])
PKG_CHECK_MODULES([CRITERION], [criterion], [have_criterion=yes], [have_criterion=no])
# Its macros define variables that no header declares; clang would warn of each test.
CRITERION_CFLAGS="$CRITERION_CFLAGS -Wno-missing-variable-declarations"
AM_CONDITIONAL([HAVE_CRITERION], [test "$have_criterion" = yes])
])
