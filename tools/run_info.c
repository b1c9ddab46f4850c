/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/run_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/format.h"

static const char *const anomaly_names[MT_ANOMALY_REASONS] = MT_ANOMALY_NAMES;

const char *mt_anomaly_name(int reason)
{
	return reason >= 0 && reason < MT_ANOMALY_REASONS ? anomaly_names[reason] : "unknown";
}

static int find_reason(const char *name, size_t len)
{
	for (int i = 0; i < MT_ANOMALY_REASONS; i++)
		if (strlen(anomaly_names[i]) == len && !memcmp(anomaly_names[i], name, len))
			return i;
	return -1;
}

/* Places beyond these bounds (a frame of more than 16 million events) are not looked up. */
static bool place_key(uint64_t frame, uint64_t index, uint64_t *ret_key)
{
	if (frame >> 40 || index >> 24)
		return false;
	*ret_key = frame << 24 | index;
	return true;
}

static void read_losses(struct mt_run_info *info, const struct mt_meta_value *losses)
{
	struct mt_meta_iter it = mt_meta_iter(losses);
	struct mt_mp_object key;
	struct mt_meta_value value;

	info->losses_known = losses->object.type == MT_MP_MAP;
	while (info->losses_known && mt_meta_next(&it, &key, &value)) {
		struct mt_run_loss *loss = &info->losses[info->losses_count];
		size_t len = key.len < sizeof(loss->cause) ? key.len : sizeof(loss->cause) - 1;

		if (key.type != MT_MP_STR || value.object.type != MT_MP_UINT || !value.object.u)
			continue;
		if (__builtin_add_overflow(info->lost, value.object.u, &info->lost))
			info->lost = UINT64_MAX;
		if (info->losses_count == MT_RUN_LOSSES)
			continue;
		memcpy(loss->cause, key.bytes, len);
		loss->cause[len] = 0;
		loss->count = value.object.u;
		info->losses_count++;
	}
}

static int read_anomalies(struct mt_run_info *info, const struct mt_meta_value *map)
{
	struct mt_meta_value list;
	struct mt_meta_value value;
	struct mt_mp_object key;
	struct mt_meta_iter it;

	if (mt_meta_get(map, MT_KEY_COUNTS, &list)) {
		it = mt_meta_iter(&list);
		while (mt_meta_next(&it, &key, &value)) {
			int reason = key.type == MT_MP_STR
					     ? find_reason((const char *)key.bytes, key.len)
					     : -1;

			if (reason >= 0 && value.object.type == MT_MP_UINT)
				info->anomalies[reason] = value.object.u;
		}
	}
	if (!mt_meta_get(map, MT_KEY_LISTED, &list))
		return 0;
	it = mt_meta_iter(&list);
	while (mt_meta_next(&it, &key, &value)) {
		uint64_t frame, index, place;
		const char *name = "";
		size_t len = 0;

		if (!mt_meta_get_u64(&value, MT_KEY_FRAME, &frame) ||
		    !mt_meta_get_u64(&value, MT_KEY_INDEX, &index) ||
		    !place_key(frame, index, &place))
			continue;
		(void)mt_meta_get_text(&value, MT_KEY_REASON, &name, &len); /* else: unknown */
		if (mt_u64_map_put(&info->listed, place, (uint32_t)find_reason(name, len)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_process(struct mt_run_info *info, struct mt_u64_map *newest,
		       const struct mt_meta_value *map)
{
	struct mt_run_process *list = info->processes;
	uint32_t *before;
	uint32_t place;
	int64_t pid;

	if (!mt_meta_get_i64(map, MT_KEY_PID, &pid) || pid < INT32_MIN || pid > INT32_MAX)
		return 0;
	if (info->processes_count == info->processes_cap) {
		size_t cap = info->processes_cap ? info->processes_cap * 2 : 64;

		list = reallocarray(list, cap, sizeof(*list));
		if (!list)
			return -ENOMEM;
		info->processes = list;
		info->processes_cap = cap;
	}
	list[info->processes_count++] = (struct mt_run_process){ .map = *map };
	place = (uint32_t)info->processes_count;
	before = mt_u64_map_get(newest, (uint32_t)pid);
	if (before)
		list[*before - 1].next = place;
	else if (mt_u64_map_put(&info->pids, (uint32_t)pid, place) < 0)
		return -ENOMEM;
	return mt_u64_map_put(newest, (uint32_t)pid, place) < 0 ? -ENOMEM : 0;
}

static int read_processes(struct mt_run_info *info)
{
	struct mt_u64_map newest = { 0 };
	struct mt_meta_value map, list, process;
	struct mt_mp_object key;
	int ret = 0;

	for (size_t i = 0; mt_artifact_reader_meta(info->reader, MT_META_CLOSED, i, &map); i++) {
		struct mt_meta_iter it;

		if (!mt_meta_get(&map, MT_KEY_PROCESSES, &list))
			continue;
		it = mt_meta_iter(&list);
		while (!ret && mt_meta_next(&it, &key, &process))
			ret = add_process(info, &newest, &process);
	}
	mt_u64_map_fini(&newest);
	return ret;
}

int mt_run_info_init(struct mt_run_info *info, const struct mt_artifact_reader *reader)
{
	struct mt_untracked_walk walk = { 0 };
	struct mt_meta_value map, value;

	*info = (struct mt_run_info){ .reader = reader };
	info->has_open = mt_artifact_reader_meta(reader, MT_META_OPEN, 0, &info->open);
	info->repaired = mt_artifact_reader_meta(reader, MT_META_REPAIRED, 0, &map);
	for (size_t i = 0; mt_artifact_reader_meta(reader, MT_META_CLOSED, i, &map); i++) {
		info->has_closed = true;
		info->closed = map;
	}
	if (info->has_closed && mt_meta_get(&info->closed, MT_KEY_LOSSES, &value))
		read_losses(info, &value);
	if (info->has_closed && mt_meta_get(&info->closed, MT_KEY_ORDER_STATS, &value)) {
		/* What is absent stays 0. */
		(void)mt_meta_get_u64(&value, MT_KEY_CORRUPT_STREAMS, &info->spoiled);
		(void)mt_meta_get_u64(&value, MT_KEY_UNREAD_STREAMS, &info->unread);
	}
	if (info->has_closed)
		(void)mt_meta_get_u64(&info->closed, MT_KEY_UNHEARD, &info->unheard); /* or 0 */
	if (info->has_closed && mt_meta_get(&info->closed, MT_KEY_UNTRACKED, &value))
		info->untracked_known = value.object.type == MT_MP_ARRAY;
	while (mt_run_info_untracked(info, &walk, &value))
		info->untracked++;
	for (size_t i = 0; mt_artifact_reader_meta(reader, MT_META_ANOMALIES, i, &map); i++)
		if (read_anomalies(info, &map))
			return -ENOMEM;
	return read_processes(info);
}

void mt_run_info_fini(struct mt_run_info *info)
{
	mt_u64_map_fini(&info->listed);
	mt_u64_map_fini(&info->pids);
	free(info->processes);
}

const char *mt_run_loss_text(const struct mt_run_loss *loss)
{
	static const struct mt_loss_words words[] = {
#define ROW(name, text) { name, text },
		MT_LOSS_TABLE(ROW)
#undef ROW
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].name, loss->cause))
			return words[i].text;
	return NULL;
}

bool mt_run_info_complete(const struct mt_run_info *info)
{
	uint64_t untracked;

	return info->has_closed && !info->repaired && info->losses_known && !info->lost &&
	       !info->spoiled && !info->unread && !info->unheard &&
	       mt_meta_get_u64(&info->closed, MT_KEY_UNTRACKED_COUNT, &untracked) && !untracked;
}

int mt_run_info_flagged(const struct mt_run_info *info, uint64_t frame, uint64_t index)
{
	const uint32_t *reason;
	uint64_t place;

	if (!place_key(frame, index, &place))
		return -1;
	reason = mt_u64_map_get(&info->listed, place);
	return reason ? (int)(*reason & INT32_MAX) : -1;
}

bool mt_run_info_untracked(const struct mt_run_info *info, struct mt_untracked_walk *walk,
			   struct mt_meta_value *ret_image)
{
	struct mt_meta_value map, list;
	struct mt_mp_object key;

	for (;;) {
		if (walk->inside && mt_meta_next(&walk->it, &key, ret_image))
			return true;
		walk->inside = false;
		if (!mt_artifact_reader_meta(info->reader, MT_META_CLOSED, walk->frame++, &map))
			return false;
		if (!mt_meta_get(&map, MT_KEY_UNTRACKED, &list))
			continue;
		walk->inside = true;
		walk->it = mt_meta_iter(&list);
	}
}

bool mt_run_info_take_process(struct mt_run_info *info, int32_t pid,
			      struct mt_meta_value *ret_process)
{
	uint32_t *place = mt_u64_map_get(&info->pids, (uint32_t)pid);

	if (!place || !*place)
		return false;
	*ret_process = info->processes[*place - 1].map;
	*place = info->processes[*place - 1].next;
	return true;
}
