/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/module_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "tools/text.h"
#include "tools/u64_map.h"

#define NONE UINT32_MAX

/* One Mapping; those of an image are a list, newest first. */
struct module {
	uint64_t at_ns;
	uint64_t start;
	uint64_t len;
	uint64_t file_offset;
	size_t path; /* in `paths` */
	uint32_t path_len;
	uint32_t before; /* the module of the same image, or of the parent's at the fork; NONE */
};

/* One program in one process, in order of its beginning. */
struct image {
	uint64_t at_ns;
	int32_t pid;
	int32_t parent; /* of a fork */
	bool forked;
	bool exec;
	uint32_t newest;    /* module; NONE */
	uint32_t inherited; /* what the parent had at the fork: its newest then; NONE */
};

struct mt_module_table {
	struct module *modules;
	size_t modules_n, modules_cap;
	struct image *images;
	size_t images_n, images_cap;
	struct mt_u64_map pids; /* pid -> its last image */
	struct mt_buf paths;
	uint64_t first_ns;
};

struct mt_module_table *mt_module_table_new(void)
{
	return calloc(1, sizeof(struct mt_module_table));
}

void mt_module_table_free(struct mt_module_table *table)
{
	if (!table)
		return;
	free(table->modules);
	free(table->images);
	mt_u64_map_fini(&table->pids);
	mt_buf_fini(&table->paths);
	free(table);
}

/* Room for one more element. */
static int grow(void **array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : 64;
	void *larger;

	if (n < *cap)
		return 0;
	if (n >= NONE)
		return -ENOMEM;
	larger = reallocarray(*array, more, size);
	if (!larger)
		return -ENOMEM;
	*array = larger;
	*cap = more;
	return 0;
}

static struct image *image_of(const struct mt_module_table *table, int32_t pid)
{
	const uint32_t *place = mt_u64_map_get(&table->pids, (uint32_t)pid);

	return place ? &table->images[*place] : NULL;
}

/* Begins an image, which is the pid's last from now on. */
static int add_image(struct mt_module_table *table, const struct image *image)
{
	int ret = grow((void **)&table->images, table->images_n, &table->images_cap,
		       sizeof(*table->images));

	if (!ret)
		ret = mt_u64_map_put(&table->pids, (uint32_t)image->pid, (uint32_t)table->images_n);
	if (ret < 0)
		return ret;
	table->images[table->images_n++] = *image;
	return 0;
}

static int add_mapping(struct mt_module_table *table, const struct mt_event *e)
{
	const struct mt_mapping *m = e->mapping;
	struct image *image = image_of(table, e->pid);
	int ret = 0;

	if (!image) {
		const struct image first = {
			.at_ns = e->timestamp_ns, .pid = e->pid, .newest = NONE, .inherited = NONE
		};

		ret = add_image(table, &first);
		image = image_of(table, e->pid);
	}
	if (!ret)
		ret = grow((void **)&table->modules, table->modules_n, &table->modules_cap,
			   sizeof(*table->modules));
	if (ret)
		return ret;
	table->modules[table->modules_n] = (struct module){
		.at_ns = e->timestamp_ns,
		.start = e->addr,
		.len = m->len,
		.file_offset = m->file_offset,
		.path = table->paths.len,
		.path_len = m->path_len,
		.before = image->newest,
	};
	ret = mt_buf_append(&table->paths, m->path, m->path_len);
	if (!ret)
		image->newest = (uint32_t)table->modules_n++;
	return ret;
}

int mt_module_table_add(struct mt_module_table *table, const struct mt_event *events, size_t n)
{
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++) {
		const struct mt_event *e = &events[i];
		struct image image = {
			.at_ns = e->timestamp_ns, .pid = e->pid, .newest = NONE, .inherited = NONE
		};

		if (!table->images_n)
			table->first_ns = e->timestamp_ns;
		if (e->type == MT_EVENT_MAPPING) {
			ret = add_mapping(table, e);
		} else if (e->type == MT_EVENT_FORK) {
			const struct image *parent = image_of(table, (int32_t)e->aux);

			image.forked = true;
			image.parent = (int32_t)e->aux;
			if (parent)
				image.newest = image.inherited = parent->newest;
			ret = add_image(table, &image);
		} else if (e->type == MT_EVENT_EXEC) {
			image.exec = true;
			ret = add_image(table, &image);
		}
	}
	return ret;
}

static void print_module(const struct mt_module_table *table, const struct module *m,
			 bool inherited)
{
	char when[MT_SUM_CHARS], path[512];
	uint64_t since = m->at_ns > table->first_ns ? m->at_ns - table->first_ns : 0;

	printf("  %14s  %016" PRIx64 "-%016" PRIx64 "  %10" PRIx64 "  %s\n",
	       inherited ? "inherited" : mt_time_text(since, when), m->start,
	       m->start + m->len < m->start ? UINT64_MAX : m->start + m->len, m->file_offset,
	       mt_clean_text((const char *)table->paths.data + m->path, m->path_len, path,
			     sizeof(path)));
}

/* The image's modules are a list from the newest; here they are shown from the oldest. */
static int print_image(const struct mt_module_table *table, const struct image *image,
		       uint32_t *order)
{
	char when[MT_SUM_CHARS];
	size_t n = 0, inherited = 0;

	for (uint32_t at = image->newest; at != NONE; at = table->modules[at].before)
		order[n++] = at;
	for (size_t i = 0; i < n; i++)
		if (order[i] == image->inherited)
			inherited = n - i;
	printf("process %" PRId32, image->pid);
	if (image->forked)
		printf(", forked by %" PRId32, image->parent);
	printf(", %s %s: %zu %s\n", image->exec ? "exec at" : "from",
	       mt_time_text(image->at_ns > table->first_ns ? image->at_ns - table->first_ns : 0,
			    when),
	       n, mt_plural(n, "module", "modules"));
	for (size_t i = 0; i < n; i++)
		print_module(table, &table->modules[order[n - 1 - i]], i < inherited);
	return ferror(stdout) ? -EIO : 0;
}

int mt_module_table_print(const struct mt_module_table *table)
{
	uint32_t *order = calloc(table->modules_n + 1, sizeof(*order));
	int ret = order ? 0 : -ENOMEM;

	for (size_t i = 0; i < table->images_n && !ret; i++)
		ret = print_image(table, &table->images[i], order);
	free(order);
	/* What happened to the output, whoever ends it says. */
	return ret == -EIO ? 0 : ret;
}
