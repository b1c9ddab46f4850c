/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Builds one metadata frame: a map with string keys, and maps and arrays in
 * it, packed by msgpack-c into a skippable zstd frame of ours (format.h).
 *
 *   mt_meta_init(&b, "closed");
 *   mt_meta_put_u64(&b, "exit_status", 0);
 *   mt_meta_begin_array(&b, "untracked");
 *   mt_meta_begin_map(&b, NULL);
 *   mt_meta_put_i64(&b, "pid", pid);
 *   mt_meta_end(&b);
 *   mt_meta_end(&b);
 *   ret = mt_meta_finish(&b, &frame, &len);
 *
 * `key` is NULL inside an array, and only there. Errors stick: the calls in
 * between return nothing and mt_meta_finish() tells the first one.
 *
 * Thread rule: one owner.
 */
#ifndef MT_COMMON_META_BUILDER_H
#define MT_COMMON_META_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/format.h"

struct mt_meta_builder {
	struct mt_buf frame;
	int error;
	unsigned int depth;
	struct {
		size_t head;	/* offset of the map's or array's header */
		uint32_t count; /* pairs or elements so far */
		bool map;
	} open[MT_META_DEPTH_MAX];
};

/* Begins the frame's map; `name` becomes the value of its first key, "frame". */
void mt_meta_init(struct mt_meta_builder *b, const char *name);
/* Takes any state, a zeroed one too. */
void mt_meta_fini(struct mt_meta_builder *b);

void mt_meta_put_nil(struct mt_meta_builder *b, const char *key);
void mt_meta_put_bool(struct mt_meta_builder *b, const char *key, bool v);
void mt_meta_put_u64(struct mt_meta_builder *b, const char *key, uint64_t v);
void mt_meta_put_i64(struct mt_meta_builder *b, const char *key, int64_t v);
void mt_meta_put_f64(struct mt_meta_builder *b, const char *key, double v);
/*
 * Text that came from outside (arguments, paths): a str if it is valid UTF-8,
 * else a bin, so that nothing is lost and msgpack readers stay content.
 */
void mt_meta_put_text(struct mt_meta_builder *b, const char *key, const char *text, size_t len);
/* The same for a string with a NUL at its end; NULL is put as nil. */
void mt_meta_put_str(struct mt_meta_builder *b, const char *key, const char *text);

void mt_meta_begin_map(struct mt_meta_builder *b, const char *key);
void mt_meta_begin_array(struct mt_meta_builder *b, const char *key);
void mt_meta_end(struct mt_meta_builder *b);

/*
 * How long the frame is so far. Lists without a natural limit should stop at
 * MT_META_SPLIT_BYTES and go on in another frame of the same name.
 */
size_t mt_meta_len(const struct mt_meta_builder *b);
#define MT_META_SPLIT_BYTES (MT_META_BYTES_MAX / 2)

/*
 * Closes what is open and gives the whole frame, which stays the builder's.
 * 0; -ENOMEM; -EMSGSIZE when the payload is above MT_META_BYTES_MAX; -EINVAL
 * when a key was missing or too many, or the nesting too deep.
 */
int mt_meta_finish(struct mt_meta_builder *b, const uint8_t **ret_frame, size_t *ret_len);

#endif
