/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/follow.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "common/control.h"
#include "common/raw_syscall.h"
#include "common/sanitizer.h"
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

/* The element of an LD_PRELOAD value that is ours, or NULL. */
static const char *find_us(const char *value, size_t *ret_len)
{
	size_t len;

	for (; value != NULL && (len = next_element(&value)) != 0; value += len) {
		if (is_ours(value, len)) {
			*ret_len = len;
			return value;
		}
	}
	return NULL;
}

static bool has_us(const char *value)
{
	size_t len;

	return find_us(value, &len) != NULL;
}

/* An allocator in front of us would be called in our place. */
static bool has_us_first(const char *value)
{
	size_t len;

	return value != NULL && (len = next_element(&value)) != 0 && is_ours(value, len);
}

/* The value of LD_PRELOAD in `environment`, or NULL. Of several, ld.so takes the last. */
static const char *preload_of(char *const *environment)
{
	const char *value = NULL;

	for (; environment != NULL && *environment != NULL; environment++) {
		if (strncmp(*environment, PRELOAD, sizeof(PRELOAD) - 1) == 0)
			value = *environment + sizeof(PRELOAD) - 1;
	}
	return value;
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
	return has_us(preload_of(environment));
}

bool mt_follow_is_reachable(void)
{
	return mt_follow.path[0] == '\0' ||
	       mt_syscall3(SYS_faccessat, AT_FDCWD, (long)mt_follow.path, R_OK) == 0;
}

struct mt_follow_plan mt_follow_plan(char *const *given, enum mt_target target)
{
	struct mt_follow_plan plan = { .given = given };
	const char *session = mt_settings_get(given, MT_ENV_SESSION);
	size_t count = 0;
	bool wanted;

	plan.preload = preload_of(given);
	if (mt_sanitizer_in(plan.preload) != NULL)
		target = MT_TARGET_UNFIT; /* it would not start behind us */
	wanted = mt_follow.on && mt_follow.path[0] != '\0' &&
		 !mt_settings_is_off(given, "MEMTRACK_FOLLOW");
	if (target == MT_TARGET_ORDINARY && wanted)
		plan.add = !has_us_first(plan.preload) || session == NULL ||
			   strcmp(session, mt_follow.session + sizeof(MT_ENV_SESSION)) != 0;
	if (!plan.add && !(target == MT_TARGET_UNFIT && has_us(plan.preload)))
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

/*
 * Writes the new LD_PRELOAD entry: us in front, or without us. Returns false when nothing is left
 * in it.
 */
static bool build_preload(const struct mt_follow_plan *plan, char *text)
{
	const char *value = plan->preload;
	char *end = text + sizeof(PRELOAD) - 1;
	bool first = true;
	size_t len;

	memcpy(text, PRELOAD, sizeof(PRELOAD));
	if (plan->add) {
		const char *ours = find_us(value, &len);

		if (ours == NULL) {
			ours = mt_follow.path;
			len = strlen(ours);
		}
		memcpy(end, ours, len);
		end += len;
		first = false;
	}
	for (; value != NULL && (len = next_element(&value)) != 0; value += len) {
		if (is_ours(value, len))
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
		    !((plan->add || plan->least) && is_entry(*from, MT_ENV_SESSION)))
			*to++ = *from;
	}
	*to = NULL;
}
