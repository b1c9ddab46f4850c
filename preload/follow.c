/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/follow.h"

#include <stdint.h>
#include <string.h>

#include "common/control.h"
#include "common/raw_syscall.h"
#include "preload/settings.h"

#define LIBRARY "libmemtrack-preload.so"
#define PRELOAD "LD_PRELOAD="

struct mt_follow mt_follow;

/* The next element of an LD_PRELOAD value, which blanks and colons part. Returns its length. */
static size_t next_element(const char **value)
{
	*value += strspn(*value, ": \t");
	return strcspn(*value, ": \t");
}

/* Ours under any path counts: who named another copy of us wants that one. */
static bool is_ours(const char *element, size_t len)
{
	const size_t name = sizeof(LIBRARY) - 1;

	if (len == strlen(mt_follow.path) && memcmp(element, mt_follow.path, len) == 0)
		return true;
	return len >= name && memcmp(element + len - name, LIBRARY, name) == 0 &&
	       (len == name || element[len - name - 1] == '/');
}

static bool has_us(const char *value)
{
	size_t len;

	for (; value != NULL && (len = next_element(&value)) != 0; value += len) {
		if (is_ours(value, len))
			return true;
	}
	return false;
}

void mt_follow_set_path(const char *path)
{
	size_t len = strlen(path);
	long used = 0;

	if (path[0] != '/') {
		used = mt_syscall2(SYS_getcwd, (long)mt_follow.path, sizeof(mt_follow.path));
		if (used <= 1)
			return;
		mt_follow.path[used - 1] = '/';
	}
	if ((size_t)used + len >= sizeof(mt_follow.path))
		mt_follow.path[0] = '\0';
	else
		memcpy(mt_follow.path + used, path, len + 1);
}

bool mt_follow_names_us(char *const *environment)
{
	return has_us(mt_settings_get(environment, "LD_PRELOAD"));
}

struct mt_follow_plan mt_follow_plan(char *const *given, enum mt_target target)
{
	struct mt_follow_plan plan = { .given = given };
	const char *follow = mt_settings_get(given, "MEMTRACK_FOLLOW");
	const char *session = mt_settings_get(given, MT_ENV_SESSION);
	bool ours, wanted;
	size_t count = 0;

	plan.preload = mt_settings_get(given, "LD_PRELOAD");
	ours = has_us(plan.preload);
	wanted = mt_follow.on && mt_follow.path[0] != '\0' &&
		 !(follow != NULL && strcmp(follow, "0") == 0);
	if (target == MT_TARGET_ORDINARY && wanted)
		plan.add = !ours || session == NULL ||
			   strcmp(session, mt_follow.session + sizeof(MT_ENV_SESSION)) != 0;
	if (!plan.add && !(target == MT_TARGET_UNFIT && ours))
		return plan;
	while (given != NULL && given[count] != NULL && count < MT_FOLLOW_POINTERS_MAX)
		count++;
	plan.text_bytes = sizeof(PRELOAD) + strlen(mt_follow.path) + 1 +
			  (plan.preload != NULL ? strlen(plan.preload) : 0);
	if (count + 3 <= MT_FOLLOW_POINTERS_MAX && plan.text_bytes <= MT_FOLLOW_TEXT_MAX)
		plan.pointers = count + 3; /* LD_PRELOAD, the session, and the end */
	return plan;
}

static bool is_entry(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

/* Writes the new LD_PRELOAD entry. Returns false when nothing is left in it. */
static bool build_preload(const struct mt_follow_plan *plan, char *text)
{
	const char *value = plan->preload;
	char *end = text + sizeof(PRELOAD) - 1;
	bool first = true;
	size_t len;

	memcpy(text, PRELOAD, sizeof(PRELOAD));
	if (plan->add && !has_us(value)) {
		len = strlen(mt_follow.path);
		memcpy(end, mt_follow.path, len);
		end += len;
		first = false;
	}
	for (; value != NULL && (len = next_element(&value)) != 0; value += len) {
		if (!plan->add && is_ours(value, len))
			continue;
		if (!first)
			*end++ = ':';
		memcpy(end, value, len);
		end += len;
		first = false;
	}
	*end = '\0';
	return !first;
}

void mt_follow_build(const struct mt_follow_plan *plan, char **pointers, char *text)
{
	char *const *from = plan->given;
	char **to = pointers;

	if (build_preload(plan, text))
		*to++ = text;
	if (plan->add)
		*to++ = (char *)(uintptr_t)mt_follow.session; /* exec does not write to it */
	for (; from != NULL && *from != NULL; from++) {
		if (!is_entry(*from, "LD_PRELOAD") &&
		    !(plan->add && is_entry(*from, MT_ENV_SESSION)))
			*to++ = *from;
	}
	*to = NULL;
}
