# SPDX-License-Identifier: MIT OR Apache-2.0

# Batches -> frames in parallel -> the file, in order.
noinst_LTLIBRARIES += libmtencoder.la
libmtencoder_la_CFLAGS = $(AM_CFLAGS) $(URCU_CFLAGS)
libmtencoder_la_LIBADD = $(URCU_LIBS)
libmtencoder_la_SOURCES = \
	sidecar/batch.c sidecar/batch.h \
	sidecar/encoder.c sidecar/encoder.h
