/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tests/unit/codec_support.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "common/event_json.h"

char *golden_path(const char *name)
{
	const char *top = getenv("MT_SRCDIR");
	char *path;

	cr_assert(asprintf(&path, "%s/tests/golden/%s", top ? top : ".", name) > 0);
	return path;
}

struct mt_buf golden_load(const char *name)
{
	char *path = golden_path(name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct mt_buf buf = { 0 };
	struct stat st;

	cr_assert(fd >= 0, "%s cannot be opened", path);
	cr_assert(!fstat(fd, &st));
	cr_assert(!mt_buf_reserve(&buf, (size_t)st.st_size + 1));
	cr_assert_eq(read(fd, buf.data, (size_t)st.st_size), st.st_size);
	buf.len = (size_t)st.st_size;
	close(fd);
	free(path);
	return buf;
}

struct mt_artifact_reader *reader_of(const void *bytes, size_t len)
{
	struct mt_artifact_reader *reader = NULL;
	int fd = memfd_create("artifact", MFD_CLOEXEC);

	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	cr_assert(!mt_artifact_reader_open_fd(fd, &reader, NULL));
	return reader;
}

int read_all(struct mt_artifact_reader *reader, struct mt_buf *json)
{
	struct mt_artifact_batch batch;
	int ret;

	while ((ret = mt_artifact_reader_next(reader, &batch)) == 1) {
		for (size_t i = 0; json && i < batch.n; i++)
			cr_assert(!mt_event_json(&batch.events[i], json));
	}
	return ret;
}

void append_frame(struct mt_buf *out, const void *content, size_t len)
{
	size_t n;

	cr_assert(!mt_buf_reserve(out, ZSTD_compressBound(len)));
	n = ZSTD_compress(out->data + out->len, out->cap - out->len, content, len, 1);
	cr_assert(!ZSTD_isError(n));
	out->len += n;
}

uint64_t rnd(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t rnd_wide(uint64_t *state)
{
	unsigned int bits = (unsigned int)(rnd(state) % 65);
	/* The edges of each width are the interesting values. */
	uint64_t v = bits == 64 ? rnd(state) : rnd(state) & ((1ull << bits) - 1);

	switch (rnd(state) % 4) {
	case 0:
		return bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
	case 1:
		return bits == 64 ? 1ull << 63 : 1ull << bits;
	default:
		return v;
	}
}

static void rnd_path(uint64_t *state, struct event_store *s)
{
	static const char *const pieces[] = { "/", "lib", "\"", "\\", "\n", "\x01", "ö", "π", "😀" };
	size_t want = rnd(state) % 4 ? rnd(state) % 40 : rnd(state) % 390, len = 0;

	while (len < want) {
		const char *piece = pieces[rnd(state) % (sizeof(pieces) / sizeof(pieces[0]))];

		memcpy(s->path + len, piece, strlen(piece));
		len += strlen(piece);
	}
	s->mapping = (struct mt_mapping){
		.dev = rnd_wide(state),
		.ino = rnd_wide(state),
		.file_offset = rnd_wide(state),
		.len = rnd_wide(state),
		.path = s->path,
		.path_len = (uint32_t)len,
	};
}

static void rnd_stack(uint64_t *state, struct event_store *s)
{
	s->stack = (struct mt_stack){
		.hash = rnd_wide(state),
		.sp = rnd_wide(state),
		.regs = s->regs,
		.bytes = s->bytes,
		.fp_chain = s->chain,
		.regs_len = (uint32_t)(rnd(state) % 80),
		.bytes_len = (uint32_t)(rnd(state) % 3 ? rnd(state) % 700 : 0),
		.fp_chain_len = (uint32_t)(rnd(state) % 400),
		.truncated = (uint8_t)(rnd(state) & 1),
	};
	if (rnd(state) % 2)
		s->stack.fp_chain_len %= 20;
	for (size_t i = 0; i < s->stack.regs_len; i++)
		s->regs[i] = rnd_wide(state);
	for (size_t i = 0; i < s->stack.fp_chain_len; i++)
		s->chain[i] = rnd_wide(state);
	for (size_t i = 0; i < s->stack.bytes_len; i++)
		s->bytes[i] = (uint8_t)rnd(state);
}

void rnd_event(uint64_t *state, struct event_store *store, struct mt_event *e)
{
	*e = (struct mt_event){
		.timestamp_ns = rnd_wide(state),
		.addr = rnd_wide(state),
		.pid = (int32_t)rnd_wide(state),
		.tid = (int32_t)rnd_wide(state),
		.type = (uint8_t)(1 + rnd(state) % (MT_EVENT_TYPES - 1)),
	};
	switch (e->type) {
	case MT_EVENT_REALLOC:
		if (rnd(state) & 1) {
			e->flags = MT_EVENT_HAS_OLD;
			e->aux = rnd_wide(state);
		}
		__attribute__((fallthrough));
	case MT_EVENT_MALLOC:
	case MT_EVENT_CALLOC:
	case MT_EVENT_ALIGNED_ALLOC:
		e->stack_hash = rnd(state) & 1 ? rnd_wide(state) : 0;
		__attribute__((fallthrough));
	case MT_EVENT_MMAP:
	case MT_EVENT_MUNMAP:
	case MT_EVENT_BRK:
		e->size = rnd_wide(state);
		break;
	case MT_EVENT_FORK:
		e->aux = (uint64_t)(int64_t)(int32_t)rnd_wide(state);
		break;
	case MT_EVENT_RSS:
		e->member = (int32_t)rnd_wide(state);
		e->size = rnd_wide(state);
		break;
	case MT_EVENT_RMAP:
		e->member = (int32_t)rnd_wide(state);
		e->delta = (int64_t)(rnd(state) & 1 ? rnd_wide(state) : -rnd_wide(state));
		break;
	case MT_EVENT_MAPPING:
		rnd_path(state, store);
		e->mapping = &store->mapping;
		break;
	case MT_EVENT_STACK:
		rnd_stack(state, store);
		e->stack = &store->stack;
		break;
	default:
		break;
	}
}

static int write_buf(void *data, const char *bytes, size_t len)
{
	return mt_buf_append(data, bytes, len);
}

static void pack_key(msgpack_packer *pk, const char *key)
{
	msgpack_pack_str_with_body(pk, key, strlen(key));
}

static void pack_u64(msgpack_packer *pk, const char *key, uint64_t v)
{
	pack_key(pk, key);
	msgpack_pack_uint64(pk, v);
}

static void pack_i64(msgpack_packer *pk, const char *key, int64_t v)
{
	pack_key(pk, key);
	msgpack_pack_int64(pk, v);
}

static void pack_array(msgpack_packer *pk, const char *key, const uint64_t *values, uint32_t n)
{
	pack_key(pk, key);
	msgpack_pack_array(pk, n);
	for (uint32_t i = 0; i < n; i++)
		msgpack_pack_uint64(pk, values[i]);
}

static void pack_cold(msgpack_packer *pk, const struct mt_event *e)
{
	const struct mt_mapping *m = e->mapping;
	const struct mt_stack *s = e->stack;

	if (e->type == MT_EVENT_MAPPING) {
		pack_key(pk, "path");
		msgpack_pack_str_with_body(pk, m->path, m->path_len);
		pack_u64(pk, "dev", m->dev);
		pack_u64(pk, "ino", m->ino);
		pack_u64(pk, "file_offset", m->file_offset);
		pack_u64(pk, "len", m->len);
	} else if (e->type == MT_EVENT_STACK) {
		pack_u64(pk, "hash", s->hash);
		pack_u64(pk, "sp", s->sp);
		pack_array(pk, "regs", s->regs, s->regs_len);
		pack_key(pk, "bytes");
		msgpack_pack_bin_with_body(pk, s->bytes, s->bytes_len);
		pack_array(pk, "fp_chain", s->fp_chain, s->fp_chain_len);
		pack_key(pk, "truncated");
		(void)(s->truncated ? msgpack_pack_true(pk) : msgpack_pack_false(pk));
	} else if (e->type == MT_EVENT_FORK) {
		pack_i64(pk, "parent_pid", (int32_t)e->aux);
	} else if (e->type == MT_EVENT_RSS) {
		pack_i64(pk, "member", e->member);
		pack_u64(pk, "size", e->size);
	} else if (e->type == MT_EVENT_RMAP) {
		pack_i64(pk, "member", e->member);
		pack_i64(pk, "delta", e->delta);
	}
}

static unsigned int field_count(const struct mt_event *e)
{
	static const uint8_t fixed[MT_EVENT_TYPES] = {
		[MT_EVENT_FREE] = 5,   [MT_EVENT_FORK] = 6,	[MT_EVENT_EXEC] = 5,
		[MT_EVENT_EXIT] = 5,   [MT_EVENT_MAPPING] = 10, [MT_EVENT_STACK] = 11,
		[MT_EVENT_RSS] = 7,    [MT_EVENT_RMAP] = 7,	[MT_EVENT_MMAP] = 6,
		[MT_EVENT_MUNMAP] = 6, [MT_EVENT_BRK] = 6,
	};

	return fixed[e->type] ? fixed[e->type]
			      : 6u + (e->stack_hash != 0) + (e->flags & MT_EVENT_HAS_OLD);
}

void reference_pack(const struct mt_event *e, struct mt_buf *out)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, write_buf);
	msgpack_pack_map(&pk, field_count(e));
	pack_i64(&pk, "pid", e->pid);
	pack_i64(&pk, "tid", e->tid);
	pack_u64(&pk, "timestamp", e->timestamp_ns);
	pack_u64(&pk, "addr", e->addr);
	pack_key(&pk, "type");
	pack_key(&pk, mt_event_type_name(e->type));
	switch (e->type) {
	case MT_EVENT_MALLOC:
	case MT_EVENT_CALLOC:
	case MT_EVENT_ALIGNED_ALLOC:
	case MT_EVENT_REALLOC:
		if (e->flags & MT_EVENT_HAS_OLD)
			pack_u64(&pk, "old_addr", e->aux);
		pack_u64(&pk, "size", e->size);
		if (e->stack_hash)
			pack_u64(&pk, "stack_hash", e->stack_hash);
		break;
	case MT_EVENT_MMAP:
	case MT_EVENT_MUNMAP:
	case MT_EVENT_BRK:
		pack_u64(&pk, "size", e->size);
		break;
	default:
		pack_cold(&pk, e);
		break;
	}
}
