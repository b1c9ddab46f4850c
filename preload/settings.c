/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/settings.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/raw_syscall.h"

/* In ld.so: the stack as the kernel made it, from argc on. Absent on other C libraries. */
extern void *__libc_stack_end __attribute__((weak));

char **mt_settings_environment(void)
{
	const long *stack;

	if (environ != NULL)
		return environ;
	if (&__libc_stack_end == NULL || __libc_stack_end == NULL)
		return NULL;
	stack = __libc_stack_end;
	return (char **)(stack + 1 + stack[0] + 1);
}

const char *mt_settings_get(char *const *environment, const char *name)
{
	size_t len = strlen(name);

	for (; environment != NULL && *environment != NULL; environment++) {
		if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
			return *environment + len + 1;
	}
	return NULL;
}

/* Without strcasecmp(): its table of letters is not ready before libc is. */
static bool same_word(const char *text, const char *word)
{
	for (; *word != '\0'; text++, word++) {
		if (*text != *word && (*text | 0x20) != *word)
			return false;
	}
	return *text == '\0';
}

bool mt_settings_is_off(char *const *environment, const char *name)
{
	const char *value = mt_settings_get(environment, name);

	return value != NULL && (same_word(value, "0") || same_word(value, "no") ||
				 same_word(value, "false") || same_word(value, "off"));
}

uint64_t mt_settings_ms(char *const *environment, const char *name, uint64_t most)
{
	const char *c = mt_settings_get(environment, name);
	uint64_t ms = 0, scale = 1000;

	if (c == NULL || *c < '0' || *c > '9')
		return most;
	for (; *c >= '0' && *c <= '9'; c++) {
		ms = ms * 10 + (uint64_t)(*c - '0');
		if (ms > most)
			return most;
	}
	if (strcmp(c, "ms") == 0)
		return ms;
	ms *= 1000;
	if (*c == '.') {
		for (c++; *c >= '0' && *c <= '9'; c++) {
			scale /= 10;
			ms += (uint64_t)(*c - '0') * scale;
		}
	}
	return ms < most ? ms : most;
}

void mt_settings_add(char *entry)
{
	size_t count = 0;
	char **larger;
	long map;

	while (environ != NULL && environ[count] != NULL)
		count++;
	/* Kept for good: the program may hold on to it. */
	map = mt_syscall6(SYS_mmap, 0, (long)((count + 2) * sizeof(*larger)),
			  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mt_syscall_failed(map))
		return;
	larger = (char **)map;
	if (count != 0)
		memcpy(larger, environ, count * sizeof(*larger));
	larger[count] = entry;
	environ = larger;
}
