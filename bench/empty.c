/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An interposer that only passes on: the floor of what any preloaded tracker costs. */
#include <dlfcn.h>
#include <stddef.h>

void *malloc(size_t size);
void free(void *block);

static void *(*real_malloc)(size_t size);
static void (*real_free)(void *block);

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	if (__builtin_expect(real_malloc == NULL, 0))
		real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	return real_malloc(size);
}

__attribute__((visibility("default"))) void free(void *block)
{
	if (__builtin_expect(real_free == NULL, 0))
		real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
	real_free(block);
}
