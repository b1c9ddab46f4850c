# SPDX-License-Identifier: MIT OR Apache-2.0
# The artifact's codec: common/frame_*, artifact_*, meta_*.
EXTRA_DIST += tests/golden tests/lsan.supp
dist_check_SCRIPTS += tests/e2e/codec_foreign.sh
TESTS += tests/e2e/codec_foreign.sh
if HAVE_CRITERION
codec_tests = \
	tests/unit/test_artifact_reader \
	tests/unit/test_artifact_writer \
	tests/unit/test_checked_frame \
	tests/unit/test_event_json \
	tests/unit/test_frame_dec \
	tests/unit/test_frame_enc \
	tests/unit/test_frame_hint \
	tests/unit/test_golden \
	tests/unit/test_meta
check_PROGRAMS += $(codec_tests) tests/unit/make_artifact
TESTS += $(codec_tests)
codec_support = tests/unit/codec_support.c tests/unit/codec_support.h
codec_cflags = $(AM_CFLAGS) $(CRITERION_CFLAGS) $(ZSTD_CFLAGS) $(MSGPACK_CFLAGS)
codec_libs = libmtcommon.la $(CRITERION_LIBS) $(ZSTD_LIBS) $(MSGPACK_LIBS)

tests_unit_test_artifact_reader_SOURCES = tests/unit/test_artifact_reader.c $(codec_support)
tests_unit_test_artifact_reader_CFLAGS = $(codec_cflags)
tests_unit_test_artifact_reader_LDADD = $(codec_libs)
tests_unit_test_artifact_writer_SOURCES = tests/unit/test_artifact_writer.c
tests_unit_test_artifact_writer_CFLAGS = $(codec_cflags)
tests_unit_test_artifact_writer_LDADD = $(codec_libs)
tests_unit_test_checked_frame_SOURCES = tests/unit/test_checked_frame.c $(codec_support)
tests_unit_test_checked_frame_CFLAGS = $(codec_cflags)
tests_unit_test_checked_frame_LDADD = $(codec_libs)
tests_unit_test_event_json_SOURCES = tests/unit/test_event_json.c
tests_unit_test_event_json_CFLAGS = $(codec_cflags)
tests_unit_test_event_json_LDADD = $(codec_libs)
tests_unit_test_frame_dec_SOURCES = tests/unit/test_frame_dec.c $(codec_support)
tests_unit_test_frame_dec_CFLAGS = $(codec_cflags)
tests_unit_test_frame_dec_LDADD = $(codec_libs)
tests_unit_test_frame_enc_SOURCES = tests/unit/test_frame_enc.c $(codec_support)
tests_unit_test_frame_enc_CFLAGS = $(codec_cflags)
tests_unit_test_frame_enc_LDADD = $(codec_libs)
tests_unit_test_frame_hint_SOURCES = tests/unit/test_frame_hint.c $(codec_support)
tests_unit_test_frame_hint_CFLAGS = $(codec_cflags)
tests_unit_test_frame_hint_LDADD = $(codec_libs)
tests_unit_test_golden_SOURCES = tests/unit/test_golden.c $(codec_support)
tests_unit_test_golden_CFLAGS = $(codec_cflags)
tests_unit_test_golden_LDADD = $(codec_libs)
tests_unit_test_meta_SOURCES = tests/unit/test_meta.c
tests_unit_test_meta_CFLAGS = $(codec_cflags)
tests_unit_test_meta_LDADD = $(codec_libs)
tests_unit_make_artifact_SOURCES = tests/unit/make_artifact.c $(codec_support)
tests_unit_make_artifact_CFLAGS = $(codec_cflags)
tests_unit_make_artifact_LDADD = $(codec_libs)
endif
