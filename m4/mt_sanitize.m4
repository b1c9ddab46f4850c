# SPDX-License-Identifier: MIT OR Apache-2.0
# MT_SANITIZE: --enable-asan (ASan and UBSan), --enable-tsan. The flags go to common, sidecar, tools
# and the test programs; never to the preloaded library, which has to fit into any program.
AC_DEFUN([MT_SANITIZE], [
AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [AddressSanitizer and UBSan])], [], [enable_asan=no])
AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [ThreadSanitizer])], [], [enable_tsan=no])
AS_IF([test "$enable_asan" = yes && test "$enable_tsan" = yes],
  [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
MT_SAN_CFLAGS=
AS_IF([test "$enable_asan" = yes],
  [MT_SAN_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g"])
AS_IF([test "$enable_tsan" = yes], [MT_SAN_CFLAGS="-fsanitize=thread -fno-omit-frame-pointer -g"])
AC_SUBST([MT_SAN_CFLAGS])
AM_CONDITIONAL([MT_ASAN], [test "$enable_asan" = yes])
AM_CONDITIONAL([MT_TSAN], [test "$enable_tsan" = yes])
])
