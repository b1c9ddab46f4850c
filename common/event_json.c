/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/event_json.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "common/format.h"
#include "common/utf8.h"

enum {
	LINE_ROOM = 512,  /* keys and single numbers of the longest type */
	NUMBER_ROOM = 21, /* 20 digits and a comma */
	CHAR_ROOM = 6,	  /* a byte as \u00xx */
};

static const char hex[16] = "0123456789abcdef";

static const char *const type_names[MT_EVENT_TYPES] = {
#define X(type, text) [MT_EVENT_##type] = (text),
	MT_EVENT_NAMES(X)
#undef X
};

/* The put functions write where room was made before. */
#define put_text(p, text) put_chars((p), (text), sizeof(text) - 1)
static char *put_chars(char *p, const char *text, size_t len)
{
	memcpy(p, text, len);
	return p + len;
}

static char *put_u64(char *p, uint64_t v)
{
	char digits[20];
	size_t n = sizeof(digits);

	do {
		digits[--n] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	return put_chars(p, digits + n, sizeof(digits) - n);
}

static char *put_i64(char *p, int64_t v)
{
	if (v >= 0)
		return put_u64(p, (uint64_t)v);
	*p = '-';
	return put_u64(p + 1, -(uint64_t)v);
}

static char *put_array(char *p, const uint64_t *values, uint32_t n)
{
	*p++ = '[';
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			*p++ = ',';
		p = put_u64(p, values[i]);
	}
	*p++ = ']';
	return p;
}

static char *put_char(char *p, const char *s, size_t n, bool valid)
{
	if (!valid)
		return put_text(p, MT_UTF8_REPLACEMENT);
	if (*s == '"' || *s == '\\') {
		*p++ = '\\';
		*p++ = *s;
		return p;
	}
	if (*s == '\n')
		return put_text(p, "\\n");
	if ((unsigned char)*s < 0x20 || *s == 0x7f) {
		p = put_text(p, "\\u00");
		*p++ = hex[*s >> 4];
		*p++ = hex[*s & 15];
		return p;
	}
	return put_chars(p, s, n);
}

static char *put_string(char *p, const char *s, size_t len)
{
	*p++ = '"';
	while (len) {
		bool valid;
		size_t n = mt_utf8_step(s, len, &valid);

		p = put_char(p, s, n, valid);
		s += n;
		len -= n;
	}
	*p++ = '"';
	return p;
}

static char *put_mapping(char *p, const struct mt_mapping *m)
{
	p = put_string(put_text(p, ",\"path\":"), m->path, m->path_len);
	p = put_u64(put_text(p, ",\"dev\":"), m->dev);
	p = put_u64(put_text(p, ",\"ino\":"), m->ino);
	p = put_u64(put_text(p, ",\"file_offset\":"), m->file_offset);
	return put_u64(put_text(p, ",\"len\":"), m->len);
}

static char *put_stack(char *p, const struct mt_stack *s)
{
	p = put_u64(put_text(p, ",\"hash\":"), s->hash);
	p = put_u64(put_text(p, ",\"sp\":"), s->sp);
	p = put_array(put_text(p, ",\"regs\":"), s->regs, s->regs_len);
	p = put_text(p, ",\"bytes\":\"");
	for (uint32_t i = 0; i < s->bytes_len; i++) {
		*p++ = hex[s->bytes[i] >> 4];
		*p++ = hex[s->bytes[i] & 15];
	}
	p = put_text(p, "\"");
	p = put_array(put_text(p, ",\"fp_chain\":"), s->fp_chain, s->fp_chain_len);
	p = put_text(p, ",\"truncated\":");
	return s->truncated ? put_text(p, "true") : put_text(p, "false");
}

static char *put_alloc(char *p, const struct mt_event *e)
{
	if (e->type == MT_EVENT_REALLOC && e->flags & MT_EVENT_HAS_OLD)
		p = put_u64(put_text(p, ",\"old_addr\":"), e->aux);
	p = put_u64(put_text(p, ",\"size\":"), e->size);
	if (e->stack_hash)
		p = put_u64(put_text(p, ",\"stack_hash\":"), e->stack_hash);
	return p;
}

static char *put_typed(char *p, const struct mt_event *e)
{
	switch (e->type) {
	case MT_EVENT_MALLOC:
	case MT_EVENT_CALLOC:
	case MT_EVENT_ALIGNED_ALLOC:
	case MT_EVENT_REALLOC:
		return put_alloc(p, e);
	case MT_EVENT_MMAP:
	case MT_EVENT_MUNMAP:
	case MT_EVENT_BRK:
		return put_u64(put_text(p, ",\"size\":"), e->size);
	case MT_EVENT_FORK:
		return put_i64(put_text(p, ",\"parent_pid\":"), (int32_t)e->aux);
	case MT_EVENT_RSS:
		p = put_i64(put_text(p, ",\"member\":"), e->member);
		return put_u64(put_text(p, ",\"size\":"), e->size);
	case MT_EVENT_RMAP:
		p = put_i64(put_text(p, ",\"member\":"), e->member);
		return put_i64(put_text(p, ",\"delta\":"), e->delta);
	case MT_EVENT_MAPPING:
		return put_mapping(p, e->mapping);
	case MT_EVENT_STACK:
		return put_stack(p, e->stack);
	default:
		return p;
	}
}

static size_t line_room(const struct mt_event *e)
{
	const struct mt_stack *s = e->stack;

	if (e->type == MT_EVENT_MAPPING)
		return LINE_ROOM + (size_t)e->mapping->path_len * CHAR_ROOM;
	if (e->type == MT_EVENT_STACK)
		return LINE_ROOM + ((size_t)s->regs_len + s->fp_chain_len) * NUMBER_ROOM +
		       (size_t)s->bytes_len * 2;
	return LINE_ROOM;
}

int mt_event_json(const struct mt_event *e, struct mt_buf *out)
{
	const char *name = mt_event_type_name(e->type);
	char *p;
	int ret;

	if (!name)
		return -EINVAL;
	ret = mt_buf_reserve(out, line_room(e));
	if (ret)
		return ret;
	p = (char *)out->data + out->len;
	p = put_i64(put_text(p, "{\"pid\":"), e->pid);
	p = put_i64(put_text(p, ",\"tid\":"), e->tid);
	p = put_u64(put_text(p, ",\"timestamp\":"), e->timestamp_ns);
	p = put_u64(put_text(p, ",\"addr\":"), e->addr);
	p = put_chars(put_text(p, ",\"type\":\""), name, strlen(name));
	p = put_typed(put_text(p, "\""), e);
	p = put_text(p, "}\n");
	out->len = (size_t)(p - (char *)out->data);
	return 0;
}

int mt_json_string(const char *text, size_t len, struct mt_buf *out)
{
	int ret;

	if (len > SIZE_MAX / CHAR_ROOM - 2)
		return -ENOMEM;
	ret = mt_buf_reserve(out, len * CHAR_ROOM + 2);
	if (!ret)
		out->len = (size_t)((uint8_t *)put_string((char *)out->data + out->len, text, len) -
				    out->data);
	return ret;
}

const char *mt_event_type_name(uint8_t type)
{
	return type < MT_EVENT_TYPES ? type_names[type] : NULL;
}

uint8_t mt_event_type_find(const char *name)
{
	for (uint8_t type = 1; type < MT_EVENT_TYPES; type++) {
		if (!strcasecmp(name, type_names[type]))
			return type;
	}
	return MT_EVENT_NONE;
}
