/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tests/e2e/fault_site.h"

#include <inttypes.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#define MODULES_MAX 64
#define FRAMES_MAX  48
#define SITES_MAX   16384 /* a power of two */

/* An object that was loaded at start. Addresses in it count from its base: that moves. */
struct module {
	uintptr_t base, start, end;
	uint64_t name;
};

static struct module modules[MODULES_MAX];
static int module_count;

static struct site {
	atomic_ullong key; /* of call and site; 0: free */
	atomic_ulong count;
	_Atomic int call; /* from 1; 0: not yet written */
	_Atomic uint64_t site;
} sites[SITES_MAX];

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ (hash >> 29);
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *name = strrchr(info->dlpi_name, '/');
	struct module *module = &modules[module_count];

	(void)size;
	(void)context;
	if (module_count == MODULES_MAX)
		return 1;
	*module = (struct module){ .base = info->dlpi_addr, .start = UINTPTR_MAX, .name = 1 };
	for (name = name ? name + 1 : info->dlpi_name; *name; name++)
		module->name = mix(module->name, (unsigned char)*name);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uintptr_t end = start + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		module->start = start < module->start ? start : module->start;
		module->end = end > module->end ? end : module->end;
	}
	/* Our own frames are no callers. */
	if ((uintptr_t)&add_module < module->start || (uintptr_t)&add_module >= module->end)
		module_count++;
	return 0;
}

struct walk {
	uintptr_t seen[FRAMES_MAX];
	int count;
	uint64_t hash;
};

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *argument)
{
	uintptr_t at = (uintptr_t)_Unwind_GetIP(context);
	struct walk *walk = argument;
	const struct module *module = modules;

	while (module < modules + module_count && (at < module->start || at >= module->end))
		module++;
	if (module == modules + module_count)
		return _URC_NO_REASON;
	for (int i = 0; i < walk->count; i++) {
		if (walk->seen[i] == at)
			return _URC_NO_REASON;
	}
	if (walk->count == FRAMES_MAX)
		return _URC_END_OF_STACK;
	walk->seen[walk->count++] = at;
	walk->hash = mix(mix(walk->hash, module->name), at - module->base);
	return _URC_NO_REASON;
}

uint64_t site_find(void)
{
	struct walk walk = { .count = 0, .hash = 1 };

	_Unwind_Backtrace(take_frame, &walk);
	return walk.hash ? walk.hash : 1;
}

void site_init(void)
{
	dl_iterate_phdr(add_module, NULL);
	(void)site_find(); /* what the unwinder sets up, it does now */
}

void site_count(int call, uint64_t site)
{
	unsigned long long key = mix(mix(1, (uint64_t)call), site) | 1, none;
	struct site *entry;

	for (int i = 0; i < SITES_MAX; i++) {
		entry = &sites[(key + (unsigned)i) & (SITES_MAX - 1)];
		none = 0;
		if (atomic_compare_exchange_strong(&entry->key, &none, key)) {
			entry->site = site;
			entry->call = call + 1;
		} else if (none != key) {
			continue;
		}
		atomic_fetch_add(&entry->count, 1);
		return;
	}
}

void site_write(const char *path, const char *(*name_of)(int call))
{
	FILE *file = fopen(path, "we");

	for (int i = 0; file && i < SITES_MAX; i++) {
		if (sites[i].call)
			fprintf(file, "%s %016" PRIx64 " %lu\n", name_of(sites[i].call - 1),
				(uint64_t)sites[i].site, (unsigned long)sites[i].count);
	}
	if (file)
		fclose(file);
}
