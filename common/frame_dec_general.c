/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/frame_dec_general.h"

#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/format.h"
#include "common/utf8.h"

enum { ARENA_BLOCK = 256 << 10 };

/* Memory of one batch for what does not fit into an event. */
struct mt_frame_arena {
	struct mt_frame_arena *next;
	size_t cap;
	size_t used;
	alignas(16) uint8_t data[];
};

/* All keys of all types. */
enum key {
	KEY_PID,
	KEY_TID,
	KEY_TIMESTAMP,
	KEY_ADDR,
	KEY_TYPE,
	KEY_SIZE,
	KEY_STACK_HASH,
	KEY_OLD_ADDR,
	KEY_PARENT_PID,
	KEY_PATH,
	KEY_DEV,
	KEY_INO,
	KEY_FILE_OFFSET,
	KEY_LEN,
	KEY_HASH,
	KEY_SP,
	KEY_REGS,
	KEY_BYTES,
	KEY_FP_CHAIN,
	KEY_TRUNCATED,
	KEY_MEMBER,
	KEY_DELTA,
	KEYS
};

#define NAMED(text)                    \
	{                              \
		text, sizeof(text) - 1 \
	}
struct name {
	const char *text;
	size_t len;
};

static const struct name key_names[KEYS] = {
	[KEY_PID] = NAMED("pid"),
	[KEY_TID] = NAMED("tid"),
	[KEY_TIMESTAMP] = NAMED("timestamp"),
	[KEY_ADDR] = NAMED("addr"),
	[KEY_TYPE] = NAMED("type"),
	[KEY_SIZE] = NAMED("size"),
	[KEY_STACK_HASH] = NAMED("stack_hash"),
	[KEY_OLD_ADDR] = NAMED("old_addr"),
	[KEY_PARENT_PID] = NAMED("parent_pid"),
	[KEY_PATH] = NAMED("path"),
	[KEY_DEV] = NAMED("dev"),
	[KEY_INO] = NAMED("ino"),
	[KEY_FILE_OFFSET] = NAMED("file_offset"),
	[KEY_LEN] = NAMED("len"),
	[KEY_HASH] = NAMED("hash"),
	[KEY_SP] = NAMED("sp"),
	[KEY_REGS] = NAMED("regs"),
	[KEY_BYTES] = NAMED("bytes"),
	[KEY_FP_CHAIN] = NAMED("fp_chain"),
	[KEY_TRUNCATED] = NAMED("truncated"),
	[KEY_MEMBER] = NAMED("member"),
	[KEY_DELTA] = NAMED("delta"),
};

static const struct name type_names[MT_EVENT_TYPES] = {
#define X(type, text) [MT_EVENT_##type] = NAMED(text),
	MT_EVENT_NAMES(X)
#undef X
};

/* One event as the general decoder finds it: the value of each key that was there. */
struct fields {
	uint32_t seen; /* 1 << enum key */
	struct mt_mp_object values[KEYS];
	const uint8_t *elements[KEYS]; /* behind an array's header */
	const uint8_t *end;
	const char *why;
};

void mt_frame_dec_reset(struct mt_frame_dec *dec)
{
	struct mt_frame_arena *block = dec->arena;

	while (block && block->next) {
		struct mt_frame_arena *next = block->next;

		free(block);
		block = next;
	}
	if (block)
		block->used = 0;
	dec->arena = block;
	dec->arena_used = 0;
}

static void *arena_take(struct mt_frame_dec *dec, size_t size)
{
	struct mt_frame_arena *block = dec->arena;
	void *mem;

	size = (size + 15) & ~(size_t)15;
	if (!block || block->cap - block->used < size) {
		size_t cap = size > ARENA_BLOCK ? size : ARENA_BLOCK;

		block = malloc(sizeof(*block) + cap);
		if (!block)
			return NULL;
		block->next = dec->arena;
		block->cap = cap;
		block->used = 0;
		dec->arena = block;
	}
	mem = block->data + block->used;
	block->used += size;
	dec->arena_used += size;
	return mem;
}

static int bad(struct fields *f, const char *why)
{
	f->why = why;
	return -EBADMSG;
}

static enum key find_key(const struct mt_mp_object *o)
{
	for (enum key k = 0; k < KEYS; k++) {
		if (mt_mp_str_is(o, key_names[k].text, key_names[k].len))
			return k;
	}
	return KEYS;
}

/* One key and its value, whatever they are. */
static int read_pair(struct mt_mp_cursor *c, struct fields *f)
{
	struct mt_mp_cursor value;
	struct mt_mp_object key;
	enum key k = KEYS;
	int ret;

	value = *c;
	ret = mt_mp_next(&value, &key);
	if (!ret && key.type == MT_MP_STR)
		k = find_key(&key);
	if (!ret)
		ret = mt_mp_skip(c);
	if (ret)
		return ret;
	if (k == KEYS)
		return mt_mp_skip(c);
	if (f->seen & 1u << k)
		return bad(f, "a key stands twice");
	f->seen |= 1u << k;
	value = *c;
	ret = mt_mp_next(&value, &f->values[k]);
	if (ret)
		return ret;
	f->elements[k] = value.p;
	return mt_mp_skip(c);
}

static int read_fields(struct mt_mp_cursor *c, struct fields *f)
{
	struct mt_mp_object map;
	int ret;

	f->seen = 0;
	f->why = "a byte that msgpack does not use";
	ret = mt_mp_next(c, &map);
	if (ret)
		return ret;
	if (map.type != MT_MP_MAP)
		return bad(f, "not a map");
	for (uint32_t i = 0; i < map.len && !ret; i++)
		ret = read_pair(c, f);
	f->end = c->p;
	return ret;
}

static bool absent(const struct fields *f, enum key k)
{
	return !(f->seen & 1u << k) || f->values[k].type == MT_MP_NIL;
}

/* The getters leave *ret_value alone and note why when the value is not what the field takes. */
static bool get_u64(struct fields *f, enum key k, uint64_t *ret_value)
{
	if (absent(f, k) || f->values[k].type != MT_MP_UINT) {
		f->why = absent(f, k) ? "a required number is missing"
				      : "a value that is no unsigned number where one belongs";
		return false;
	}
	*ret_value = f->values[k].u;
	return true;
}

static bool get_i64(struct fields *f, enum key k, int64_t *ret_value)
{
	const struct mt_mp_object *o = &f->values[k];

	if (absent(f, k) || (o->type != MT_MP_UINT && o->type != MT_MP_INT) ||
	    (o->type == MT_MP_UINT && o->u > INT64_MAX)) {
		f->why = absent(f, k) ? "a required number is missing"
				      : "a value that does not fit its signed field";
		return false;
	}
	*ret_value = o->i;
	return true;
}

static bool get_i32(struct fields *f, enum key k, int32_t *ret_value)
{
	int64_t v;

	if (!get_i64(f, k, &v))
		return false;
	if (v < INT32_MIN || v > INT32_MAX) {
		f->why = "a value that does not fit its 32 bit field";
		return false;
	}
	*ret_value = (int32_t)v;
	return true;
}

/* Absent is `otherwise`. */
static bool get_optional(struct fields *f, enum key k, uint64_t otherwise, uint64_t *ret_value)
{
	if (absent(f, k)) {
		*ret_value = otherwise;
		return true;
	}
	return get_u64(f, k, ret_value);
}

static bool get_bytes(struct fields *f, enum key k, enum mt_mp_type type, const uint8_t **ret_bytes,
		      uint32_t *ret_len)
{
	if (absent(f, k) || f->values[k].type != type) {
		f->why = type == MT_MP_STR ? "a required string is missing or none"
					   : "required bytes are missing or none";
		return false;
	}
	*ret_bytes = f->values[k].bytes;
	*ret_len = f->values[k].len;
	return true;
}

/* An array of u64. 0, -EBADMSG or -ENOMEM. */
static int get_array(struct mt_frame_dec *dec, struct fields *f, enum key k, const uint64_t **ret,
		     uint32_t *ret_len)
{
	struct mt_mp_cursor c = { f->elements[k], f->end };
	uint32_t len = f->values[k].len;
	uint64_t *values;

	if (absent(f, k) || f->values[k].type != MT_MP_ARRAY)
		return bad(f, "a required array is missing or none");
	if (len > MT_EVENT_ARRAY_MAX)
		return bad(f, "an array is too long");
	values = arena_take(dec, sizeof(*values) * len);
	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < len; i++) {
		struct mt_mp_object o;

		if (mt_mp_next(&c, &o) || o.type != MT_MP_UINT)
			return bad(f, "an array's element is no unsigned number");
		values[i] = o.u;
	}
	*ret = values;
	*ret_len = len;
	return 0;
}

static int take_mapping(struct mt_frame_dec *dec, struct fields *f, struct mt_event *e)
{
	struct mt_mapping *m = arena_take(dec, sizeof(*m));
	const uint8_t *path;

	if (!m)
		return -ENOMEM;
	if (!get_bytes(f, KEY_PATH, MT_MP_STR, &path, &m->path_len) ||
	    !get_u64(f, KEY_DEV, &m->dev) || !get_u64(f, KEY_INO, &m->ino) ||
	    !get_u64(f, KEY_FILE_OFFSET, &m->file_offset) || !get_u64(f, KEY_LEN, &m->len))
		return -EBADMSG;
	m->path = (const char *)path;
	e->mapping = m;
	return 0;
}

static int take_stack(struct mt_frame_dec *dec, struct fields *f, struct mt_event *e)
{
	struct mt_stack *s = arena_take(dec, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	if (!get_u64(f, KEY_HASH, &s->hash) || !get_u64(f, KEY_SP, &s->sp) ||
	    !get_bytes(f, KEY_BYTES, MT_MP_BIN, &s->bytes, &s->bytes_len))
		return -EBADMSG;
	ret = get_array(dec, f, KEY_REGS, &s->regs, &s->regs_len);
	if (!ret)
		ret = get_array(dec, f, KEY_FP_CHAIN, &s->fp_chain, &s->fp_chain_len);
	if (ret)
		return ret;
	if (absent(f, KEY_TRUNCATED) || f->values[KEY_TRUNCATED].type != MT_MP_BOOL)
		return bad(f, "truncated is missing or no bool");
	s->truncated = (uint8_t)f->values[KEY_TRUNCATED].u;
	e->stack = s;
	return 0;
}

/* The fields that hang on the type. */
static int take_typed(struct mt_frame_dec *dec, struct fields *f, struct mt_event *e)
{
	int32_t parent;
	bool ok = true;

	switch (e->type) {
	case MT_EVENT_REALLOC:
		if (!absent(f, KEY_OLD_ADDR))
			e->flags |= MT_EVENT_HAS_OLD;
		ok = get_optional(f, KEY_OLD_ADDR, 0, &e->aux);
		__attribute__((fallthrough));
	case MT_EVENT_MALLOC:
	case MT_EVENT_CALLOC:
	case MT_EVENT_ALIGNED_ALLOC:
		ok = ok && get_optional(f, KEY_STACK_HASH, 0, &e->stack_hash) &&
		     get_u64(f, KEY_SIZE, &e->size);
		break;
	case MT_EVENT_MMAP:
	case MT_EVENT_MUNMAP:
	case MT_EVENT_BRK:
		ok = get_u64(f, KEY_SIZE, &e->size);
		break;
	case MT_EVENT_FORK:
		ok = get_i32(f, KEY_PARENT_PID, &parent);
		if (ok)
			e->aux = (uint64_t)(int64_t)parent;
		break;
	case MT_EVENT_RSS:
		ok = get_i32(f, KEY_MEMBER, &e->member) && get_u64(f, KEY_SIZE, &e->size);
		break;
	case MT_EVENT_RMAP:
		ok = get_i32(f, KEY_MEMBER, &e->member) && get_i64(f, KEY_DELTA, &e->delta);
		break;
	case MT_EVENT_MAPPING:
		return take_mapping(dec, f, e);
	case MT_EVENT_STACK:
		return take_stack(dec, f, e);
	default:
		break;
	}
	return ok ? 0 : -EBADMSG;
}

static void note_unknown(struct mt_decoded *ret, const struct mt_mp_object *name)
{
	size_t room = sizeof(ret->unknown_name) - 1, used = 0, pos = 0;

	if (ret->unknown++)
		return;
	while (pos < name->len && used < room) {
		const char *s = (const char *)name->bytes + pos;
		bool valid;
		size_t n = mt_utf8_step(s, name->len - pos, &valid);

		pos += n;
		if (!valid || (uint8_t)*s < 0x20 || *s == 0x7f) {
			ret->unknown_name[used++] = '?';
		} else {
			if (used + n > room)
				break;
			memcpy(ret->unknown_name + used, s, n);
			used += n;
		}
	}
	ret->unknown_name[used] = '\0';
}

/* 0 with e->type MT_EVENT_NONE for an event of an unknown type. */
int mt_frame_dec_general(struct mt_frame_dec *dec, struct mt_mp_cursor *c, struct mt_event *e,
			 struct mt_decoded *ret)
{
	struct fields f;
	int err = read_fields(c, &f);
	uint8_t type;

	*e = (struct mt_event){ 0 };
	if (!err && (absent(&f, KEY_TYPE) || f.values[KEY_TYPE].type != MT_MP_STR))
		err = bad(&f, "type is missing or no string");
	if (err) {
		ret->why = f.why;
		return err;
	}
	for (type = 1; type < MT_EVENT_TYPES; type++) {
		if (mt_mp_str_is(&f.values[KEY_TYPE], type_names[type].text, type_names[type].len))
			break;
	}
	if (type == MT_EVENT_TYPES) {
		note_unknown(ret, &f.values[KEY_TYPE]);
		return 0;
	}
	e->type = type;
	if (!get_i32(&f, KEY_PID, &e->pid) || !get_i32(&f, KEY_TID, &e->tid) ||
	    !get_u64(&f, KEY_TIMESTAMP, &e->timestamp_ns) || !get_u64(&f, KEY_ADDR, &e->addr))
		err = -EBADMSG;
	else
		err = take_typed(dec, &f, e);
	ret->why = f.why;
	return err;
}
