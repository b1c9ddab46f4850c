# SPDX-License-Identifier: MIT OR Apache-2.0
noinst_LTLIBRARIES += libmtcommon.la
libmtcommon_la_CFLAGS = $(AM_CFLAGS) $(MT_WARN_COMMON_CFLAGS) $(ZSTD_CFLAGS) $(MSGPACK_CFLAGS)
libmtcommon_la_LIBADD = $(ZSTD_LIBS) $(MSGPACK_LIBS)
libmtcommon_la_SOURCES = common/event.h
EXTRA_DIST += docs/format.md
# The artifact: its frames, and files of them.
libmtcommon_la_SOURCES += \
	common/artifact_filter.h \
	common/artifact_meta.c common/artifact_meta.h \
	common/artifact_open.c common/artifact_reader_internal.h \
	common/artifact_reader.c common/artifact_reader.h \
	common/artifact_source.c common/artifact_source.h \
	common/artifact_writer.c common/artifact_writer.h \
	common/buf.c common/buf.h \
	common/crc32.c common/crc32.h common/crc32c.c common/crc32c.h \
	common/diag.c common/diag.h \
	common/event_json.c common/event_json.h \
	common/event_search.c common/event_search.h \
	common/format.h \
	common/frame_crew.c common/frame_crew.h \
	common/frame_dec.c common/frame_dec.h \
	common/frame_dec_general.c common/frame_dec_general.h \
	common/frame_enc.c common/frame_enc.h \
	common/frame_hint.c common/frame_hint.h \
	common/hint_walk.c common/hint_walk.h \
	common/meta_builder.c common/meta_builder.h \
	common/meta_value.c common/meta_value.h \
	common/msgpack_cursor.c common/msgpack_cursor.h \
	common/run_meta.h \
	common/utf8.c common/utf8.h
# The shared memory and the clock.
libmtcommon_la_SOURCES += \
	common/atomic.h common/chunk.h common/control.h \
	common/chunk_consumer.c common/chunk_consumer.h \
	common/clock.c common/clock.h \
	common/pages.h \
	common/shm.c common/shm.h
# The fused writer: events to zstd blocks.
libmtcommon_la_SOURCES += \
	common/frame_fused.c common/frame_fused.h \
	common/fused_bits.c common/fused_bits.h \
	common/fused_cpu.h \
	common/fused_fse.c common/fused_fse.h \
	common/fused_plan.c common/fused_plan.h \
	common/fused_seq.c common/fused_seq.h \
	common/fused_slow.c
