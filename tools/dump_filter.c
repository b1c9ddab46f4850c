/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/dump_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/event_json.h"

static_assert(MT_EVENT_TYPES <= 32, "types fit the bits of a filter");

void mt_dump_filter_fini(struct mt_dump_filter *filter)
{
	free(filter->pids.numbers);
	free(filter->tids.numbers);
	*filter = (struct mt_dump_filter){ 0 };
}

/* One number of a list: decimal, in 32 bits with a sign, and nothing else. */
static int parse_number(const char *text, size_t len, int32_t *ret_number)
{
	bool negative = len && text[0] == '-';
	int64_t number = 0;

	if (negative) {
		text++;
		len--;
	}
	if (!len || len > 10)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		number = number * 10 + (text[i] - '0');
	}
	if (negative)
		number = -number;
	if (number < INT32_MIN || number > INT32_MAX)
		return -EINVAL;
	*ret_number = (int32_t)number;
	return 0;
}

int mt_dump_filter_numbers(struct mt_number_list *list, const char *value, const char **ret_bad)
{
	for (;;) {
		size_t len = strcspn(value, ",");
		int32_t *numbers;
		int32_t number;

		*ret_bad = value;
		if (parse_number(value, len, &number))
			return -EINVAL;
		numbers = reallocarray(list->numbers, list->count + 1, sizeof(*numbers));
		if (!numbers)
			return -ENOMEM;
		list->numbers = numbers;
		list->numbers[list->count++] = number;
		if (!value[len])
			return 0;
		value += len + 1;
	}
}

int mt_dump_filter_types(struct mt_dump_filter *filter, const char *value, const char **ret_bad)
{
	for (;;) {
		size_t len = strcspn(value, ",");
		char name[32];
		uint8_t type;

		*ret_bad = value;
		if (len >= sizeof(name))
			return -EINVAL;
		memcpy(name, value, len);
		name[len] = 0;
		type = mt_event_type_find(name);
		if (type == MT_EVENT_NONE)
			return -EINVAL;
		filter->types |= 1u << type;
		if (!value[len])
			return 0;
		value += len + 1;
	}
}

/* Nanoseconds of a unit, or 0. */
static uint64_t unit_ns(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i].name, unit))
			return units[i].ns;
	return 0;
}

int mt_time_bound_parse(struct mt_time_bound *bound, const char *value)
{
	unsigned __int128 ns = 0;
	uint64_t scale;
	size_t whole = strspn(value, "0123456789");
	size_t fraction = value[whole] == '.' ? strspn(value + whole + 1, "0123456789") : 0;
	const char *unit = value + whole + (value[whole] == '.' ? fraction + 1 : 0);
	bool relative = *unit != 0;

	scale = relative ? unit_ns(unit) : 1;
	if (!scale || !whole || (value[whole] == '.' && !fraction) || (fraction && !relative))
		return -EINVAL;
	for (size_t i = 0; i < whole; i++) {
		ns = ns * 10 + (unsigned)(value[i] - '0');
		if (ns > UINT64_MAX)
			return -EINVAL;
	}
	ns *= scale;
	for (size_t i = 0; i < fraction && scale; i++) {
		scale /= 10;
		ns += (unsigned)(value[whole + 1 + i] - '0') * scale;
	}
	if (ns > UINT64_MAX)
		return -EINVAL;
	*bound = (struct mt_time_bound){ true, relative, (uint64_t)ns };
	return 0;
}

static void make_absolute(struct mt_time_bound *bound, uint64_t first_ns)
{
	if (!bound->relative)
		return;
	bound->relative = false;
	if (__builtin_add_overflow(bound->ns, first_ns, &bound->ns))
		bound->ns = UINT64_MAX;
}

void mt_dump_filter_start(struct mt_dump_filter *filter, uint64_t first_ns)
{
	make_absolute(&filter->from, first_ns);
	make_absolute(&filter->to, first_ns);
}

bool mt_dump_filter_is_empty(const struct mt_dump_filter *filter)
{
	return !filter->pids.count && !filter->tids.count && !filter->types &&
	       !filter->from.given && !filter->to.given;
}

static bool list_has(const struct mt_number_list *list, int32_t number)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->numbers[i] == number)
			return true;
	return !list->count;
}

bool mt_dump_filter_matches(const struct mt_dump_filter *filter, const struct mt_event *event)
{
	if (filter->types && !(filter->types >> event->type & 1))
		return false;
	if (filter->from.given && event->timestamp_ns < filter->from.ns)
		return false;
	if (filter->to.given && event->timestamp_ns > filter->to.ns)
		return false;
	return list_has(&filter->pids, event->pid) && list_has(&filter->tids, event->tid);
}
