/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/frame_refs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/format.h"
#include "common/run_meta.h"

static int add(struct mt_frame_refs *refs, uint64_t frame, uint64_t index)
{
	if (refs->count == refs->cap) {
		size_t cap = refs->cap ? refs->cap * 2 : 64;
		struct mt_frame_ref *list = reallocarray(refs->list, cap, sizeof(*list));

		if (!list)
			return -ENOMEM;
		refs->list = list;
		refs->cap = cap;
	}
	refs->list[refs->count++] = (struct mt_frame_ref){ frame, index, UINT64_MAX, UINT64_MAX };
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct mt_frame_ref *left = a, *right = b;

	if (left->frame != right->frame)
		return left->frame < right->frame ? -1 : 1;
	return (left->index > right->index) - (left->index < right->index);
}

int mt_frame_refs_load(struct mt_frame_refs *refs, const struct mt_artifact_reader *reader)
{
	struct mt_meta_value map, list, item;
	struct mt_mp_object key;
	uint64_t frame, index;

	for (size_t i = 0; mt_artifact_reader_meta(reader, MT_META_ANOMALIES, i, &map); i++) {
		struct mt_meta_iter it;

		if (!mt_meta_get(&map, MT_KEY_LISTED, &list))
			continue;
		it = mt_meta_iter(&list);
		while (mt_meta_next(&it, &key, &item))
			if (mt_meta_get_u64(&item, MT_KEY_FRAME, &frame) &&
			    mt_meta_get_u64(&item, MT_KEY_INDEX, &index) && add(refs, frame, index))
				return -ENOMEM;
	}
	if (refs->count)
		qsort(refs->list, refs->count, sizeof(refs->list[0]), by_place);
	return 0;
}

void mt_frame_refs_fini(struct mt_frame_refs *refs)
{
	free(refs->list);
	*refs = (struct mt_frame_refs){ 0 };
}

void mt_frame_refs_moved(struct mt_frame_refs *refs, uint64_t frame, uint64_t index, uint64_t count,
			 uint64_t new_frame, uint64_t new_index)
{
	for (; refs->next < refs->count; refs->next++) {
		struct mt_frame_ref *ref = &refs->list[refs->next];

		if (ref->frame > frame || (ref->frame == frame && ref->index >= index + count))
			return;
		/* Those that were passed by are of no event. */
		if (ref->frame < frame || ref->index < index)
			continue;
		ref->new_frame = new_frame;
		ref->new_index = new_index + (ref->index - index);
	}
}

static const struct mt_frame_ref *find(const struct mt_frame_refs *refs, uint64_t frame,
				       uint64_t index)
{
	const struct mt_frame_ref key = { .frame = frame, .index = index };

	return refs->count ? bsearch(&key, refs->list, refs->count, sizeof(key), by_place) : NULL;
}

static void put_value(struct mt_meta_builder *builder, const char *key,
		      const struct mt_meta_value *value);

/* What is in an array. */
static void put_elements(struct mt_meta_builder *builder, const struct mt_meta_value *array)
{
	struct mt_meta_iter it = mt_meta_iter(array);
	struct mt_meta_value element;
	struct mt_mp_object place;

	while (mt_meta_next(&it, &place, &element))
		put_value(builder, NULL, &element);
}

/*
 * What is in a map, but for these two keys. Keys that are no text, or longer than any of ours,
 * nobody reads: they are left out.
 */
static void put_pairs(struct mt_meta_builder *builder, const struct mt_meta_value *map,
		      const char *but, const char *nor)
{
	struct mt_meta_iter it = mt_meta_iter(map);
	struct mt_meta_value value;
	struct mt_mp_object key;

	while (mt_meta_next(&it, &key, &value)) {
		char name[64];

		if (key.type != MT_MP_STR || key.len >= sizeof(name))
			continue;
		memcpy(name, key.bytes, key.len);
		name[key.len] = 0;
		if (strcmp(name, but) && strcmp(name, nor))
			put_value(builder, name, &value);
	}
}

static void put_value(struct mt_meta_builder *builder, const char *key,
		      const struct mt_meta_value *value)
{
	const struct mt_mp_object *object = &value->object;

	switch (object->type) {
	case MT_MP_BOOL:
		mt_meta_put_bool(builder, key, object->u != 0);
		break;
	case MT_MP_UINT:
		mt_meta_put_u64(builder, key, object->u);
		break;
	case MT_MP_INT:
		mt_meta_put_i64(builder, key, object->i);
		break;
	case MT_MP_FLOAT:
		mt_meta_put_f64(builder, key, object->f);
		break;
	case MT_MP_STR:
	case MT_MP_BIN:
		mt_meta_put_text(builder, key, (const char *)object->bytes, object->len);
		break;
	case MT_MP_ARRAY:
		mt_meta_begin_array(builder, key);
		put_elements(builder, value);
		mt_meta_end(builder);
		break;
	case MT_MP_MAP:
		mt_meta_begin_map(builder, key);
		put_pairs(builder, value, "", "");
		mt_meta_end(builder);
		break;
	default: /* nil, and extensions, which metadata of ours does not have */
		mt_meta_put_nil(builder, key);
		break;
	}
}

/* One of the listed, with its new place. */
static void put_listed(const struct mt_frame_refs *refs, const struct mt_meta_value *item,
		       struct mt_meta_builder *builder)
{
	const struct mt_frame_ref *ref;
	uint64_t frame, index;

	if (!mt_meta_get_u64(item, MT_KEY_FRAME, &frame) ||
	    !mt_meta_get_u64(item, MT_KEY_INDEX, &index)) {
		put_value(builder, NULL, item);
		return;
	}
	ref = find(refs, frame, index);
	if (!ref || ref->new_frame == UINT64_MAX)
		return;
	mt_meta_begin_map(builder, NULL);
	mt_meta_put_u64(builder, MT_KEY_FRAME, ref->new_frame);
	mt_meta_put_u64(builder, MT_KEY_INDEX, ref->new_index);
	put_pairs(builder, item, MT_KEY_FRAME, MT_KEY_INDEX);
	mt_meta_end(builder);
}

void mt_frame_refs_put(const struct mt_frame_refs *refs, const struct mt_meta_value *anomalies,
		       struct mt_meta_builder *builder)
{
	struct mt_meta_value list, item;
	struct mt_mp_object place;
	struct mt_meta_iter it;

	mt_meta_init(builder, MT_META_ANOMALIES);
	/* "frame" is the map's name here. */
	put_pairs(builder, anomalies, MT_KEY_FRAME, MT_KEY_LISTED);
	if (!mt_meta_get(anomalies, MT_KEY_LISTED, &list))
		return;
	mt_meta_begin_array(builder, MT_KEY_LISTED);
	it = mt_meta_iter(&list);
	while (mt_meta_next(&it, &place, &item))
		put_listed(refs, &item, builder);
	mt_meta_end(builder);
}
