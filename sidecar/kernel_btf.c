// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/kernel_btf.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of how many types the place of one is noted: all would be half a megabyte to touch. */
#define STRIDE 64u

/* Far above what any kernel has; a bound for memory. */
#define TYPES_MAX (1u << 22)

/* Names that are looked for are few, so two bytes of each tell most others apart. */
#define STARTS 1024u

struct names {
	const char **list;
	size_t count;
	bool starts[STARTS];
};

struct kernel_types {
	char *data; /* the whole file */
	size_t size;
	bool mapped;
	const char *types, *types_end;
	const char *strings;
	uint32_t strings_len;
	uint32_t *at; /* where each STRIDEth is in types, from id 1 on */
	uint32_t count;
};

/* A type that is copied gets the number of its place in the list; it is written when its turn
 * comes. */
struct copy {
	struct btf *to;
	uint32_t *list;	  /* ids of the kernel's */
	uint32_t *number; /* by id of the kernel's: 0, or the number in the copy */
	uint32_t count, written;
};

struct slim {
	struct kernel_types kernel;
	struct names structs, members, values;
	struct copy copy;
};

static const char *name_at(const struct kernel_types *kernel, uint32_t offset)
{
	/* The section ends with a NUL, as kernel_types_check() saw. */
	return offset < kernel->strings_len ? kernel->strings + offset : "";
}

/* The bytes of a type behind its head, or -1 where the kind is not known. */
static long extra_bytes(const struct btf_type *type)
{
	const long vlen = btf_vlen(type);

	switch (btf_kind(type)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return vlen * (long)sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return vlen * (long)sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return vlen * (long)sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return vlen * (long)sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return vlen * (long)sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	default:
		return -1;
	}
}

/* Only for what the walk has seen: nothing is checked again. */
static const struct btf_type *type_at(const struct kernel_types *kernel, uint32_t id)
{
	const char *at;
	uint32_t skip;

	if (id == 0 || id >= kernel->count)
		return NULL;
	at = kernel->types + kernel->at[(id - 1) / STRIDE];
	for (skip = (id - 1) % STRIDE; skip > 0; skip--)
		at += (long)sizeof(struct btf_type) + extra_bytes((const struct btf_type *)at);
	return (const struct btf_type *)at;
}

/* Where a name's start is noted. It has one byte at least, so there is a second or the NUL. */
static size_t start_of(const char *name)
{
	return ((size_t)(unsigned char)name[0] * 33 + (unsigned char)name[1]) % STARTS;
}

static int names_add(struct names *names, const char *name)
{
	const char **list;

	if (!name || !*name)
		return 0;
	list = realloc(names->list, (names->count + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	names->list = list;
	names->list[names->count++] = name;
	names->starts[start_of(name)] = true;
	return 0;
}

static bool names_have(const struct names *names, const char *name)
{
	size_t i;

	if (!*name || !names->starts[start_of(name)])
		return false;
	for (i = 0; i < names->count; i++)
		if (strcmp(names->list[i], name) == 0)
			return true;
	return false;
}

/* Which structs with which members, and which values of enums, the object names. */
static int wanted_read(const struct btf *wanted, struct slim *slim)
{
	uint32_t id, i;
	int err = 0;

	for (id = 1; id < btf__type_cnt(wanted) && !err; id++) {
		const struct btf_type *type = btf__type_by_id(wanted, id);

		if (btf_is_composite(type)) {
			const struct btf_member *member = btf_members(type);

			err = names_add(&slim->structs,
					btf__name_by_offset(wanted, type->name_off));
			for (i = 0; i < btf_vlen(type) && !err; i++)
				err = names_add(&slim->members,
						btf__name_by_offset(wanted, member[i].name_off));
		} else if (btf_is_enum(type) && type->name_off) {
			err = names_add(&slim->values, btf__name_by_offset(wanted, type->name_off));
		}
	}
	return err;
}

static int file_read(struct kernel_types *kernel)
{
	int fd = open(MT_KBTF_PATH, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st;
	size_t done = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_size <= 0) {
		err = -EINVAL;
		goto out;
	}
	kernel->size = (size_t)st.st_size;
	/* Newer kernels let it be mapped. */
	kernel->data = mmap(NULL, kernel->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (kernel->data != MAP_FAILED) {
		kernel->mapped = true;
		goto out;
	}
	kernel->data = malloc(kernel->size);
	if (!kernel->data)
		err = -ENOMEM;
	while (!err && done < kernel->size) {
		ssize_t got = read(fd, kernel->data + done, kernel->size - done);

		if (got <= 0)
			err = got < 0 ? -errno : -EINVAL;
		else
			done += (size_t)got;
	}
out:
	close(fd);
	return err;
}

static int kernel_types_check(struct kernel_types *kernel)
{
	const struct btf_header *header = (const struct btf_header *)kernel->data;
	size_t room;

	if (kernel->size < sizeof(*header) || header->magic != BTF_MAGIC ||
	    header->version != BTF_VERSION || header->hdr_len > kernel->size)
		return -EINVAL;
	room = kernel->size - header->hdr_len;
	if (header->type_off % 4 || header->type_off > room ||
	    header->type_len > room - header->type_off || header->str_off > room ||
	    header->str_len > room - header->str_off || header->str_len == 0)
		return -EINVAL;
	kernel->types = kernel->data + header->hdr_len + header->type_off;
	kernel->types_end = kernel->types + header->type_len;
	kernel->strings = kernel->data + header->hdr_len + header->str_off;
	kernel->strings_len = header->str_len;
	return kernel->strings[kernel->strings_len - 1] ? -EINVAL : 0;
}

/* The number that a kernel type gets in the copy. Modifiers and typedefs are left out. */
static uint32_t copy_number(struct slim *slim, uint32_t id)
{
	struct copy *copy = &slim->copy;
	const struct btf_type *type = type_at(&slim->kernel, id);
	int depth = 0;

	while (type && (btf_is_mod(type) || btf_is_typedef(type)) && depth++ < 32) {
		id = type->type;
		type = type_at(&slim->kernel, id);
	}
	if (!type)
		return 0;
	if (copy->number[id] == 0) {
		copy->list[copy->count++] = id;
		copy->number[id] = copy->count;
	}
	return copy->number[id];
}

static int composite_write(struct slim *slim, const struct btf_type *type)
{
	const struct btf_member *member = btf_members(type);
	const char *name = name_at(&slim->kernel, type->name_off);
	/* What is not asked for by name is there for its size alone. */
	const bool members = !*name || names_have(&slim->structs, name);
	uint32_t i, vlen = btf_vlen(type);
	int number;

	number = btf_is_struct(type) ? btf__add_struct(slim->copy.to, name, type->size)
				     : btf__add_union(slim->copy.to, name, type->size);
	for (i = 0; members && i < vlen && number >= 0; i++) {
		const char *member_name = name_at(&slim->kernel, member[i].name_off);
		int err;

		if (*member_name && !names_have(&slim->members, member_name))
			continue;
		err = btf__add_field(
			slim->copy.to, member_name, (int)copy_number(slim, member[i].type),
			btf_member_bit_offset(type, i), btf_member_bitfield_size(type, i));
		if (err)
			return err;
	}
	return number;
}

static int enum_write(struct slim *slim, const struct btf_type *type)
{
	const struct btf_enum *value = btf_enum(type);
	const char *name = name_at(&slim->kernel, type->name_off);
	const bool values = *name && names_have(&slim->values, name);
	int number = btf__add_enum(slim->copy.to, name, type->size);
	uint32_t i, vlen = btf_vlen(type);

	for (i = 0; values && i < vlen && number >= 0; i++) {
		int err = btf__add_enum_value(
			slim->copy.to, name_at(&slim->kernel, value[i].name_off), value[i].val);

		if (err)
			return err;
	}
	return number;
}

/* Writes one type; those that it names get numbers and come later. */
static int type_write(struct slim *slim, const struct btf_type *type)
{
	struct btf *to = slim->copy.to;
	const char *name = name_at(&slim->kernel, type->name_off);

	switch (btf_kind(type)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return composite_write(slim, type);
	case BTF_KIND_ENUM:
		return enum_write(slim, type);
	case BTF_KIND_INT:
		return btf__add_int(to, name, type->size, btf_int_encoding(type));
	case BTF_KIND_ARRAY:
		return btf__add_array(to, (int)copy_number(slim, btf_array(type)->index_type),
				      (int)copy_number(slim, btf_array(type)->type),
				      btf_array(type)->nelems);
	default:
		/* Pointers, whatever they point to, and kinds that no program reads. */
		return btf__add_ptr(to, 0);
	}
}

static bool is_wanted(struct slim *slim, const struct btf_type *type)
{
	const char *name;

	if (type->name_off == 0)
		return false;
	name = name_at(&slim->kernel, type->name_off);
	if (btf_is_struct(type))
		return names_have(&slim->structs, name);
	return btf_is_enum(type) && names_have(&slim->values, name);
}

static void ids_match(const char *name, uint32_t kind, uint32_t id, struct mt_kbtf_id *ids,
		      size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (ids[i].kind == kind && strcmp(ids[i].name, name) == 0)
			ids[i].id = id;
}

/* One walk: notes where each type is, and takes up those that are wanted. */
static int kernel_types_walk(struct slim *slim, struct mt_kbtf_id *ids, size_t id_count)
{
	struct kernel_types *kernel = &slim->kernel;
	const char *at = kernel->types;
	uint32_t capacity = (uint32_t)((kernel->types_end - at) / sizeof(struct btf_type)) + 1;
	bool id_starts[STARTS] = { false };
	uint32_t wanted = 0;
	size_t i;

	if (capacity > TYPES_MAX)
		return -EFBIG;
	/* Only the pages that are used cost anything. */
	kernel->at = malloc((capacity / STRIDE + 1) * sizeof(*kernel->at));
	slim->copy.list = malloc(capacity * sizeof(*slim->copy.list));
	slim->copy.number = calloc(capacity, sizeof(*slim->copy.number));
	if (!kernel->at || !slim->copy.list || !slim->copy.number)
		return -ENOMEM;
	for (i = 0; i < id_count; i++)
		id_starts[start_of(ids[i].name)] = true;
	kernel->count = 1; /* void, which is not in the file */
	while (kernel->types_end - at >= (long)sizeof(struct btf_type)) {
		const struct btf_type *type = (const struct btf_type *)at;
		const uint32_t kind = btf_kind(type);
		const long extra = extra_bytes(type);

		if (extra < 0 || extra > kernel->types_end - at - (long)sizeof(*type))
			return -EINVAL;
		if ((kernel->count - 1) % STRIDE == 0)
			kernel->at[(kernel->count - 1) / STRIDE] = (uint32_t)(at - kernel->types);
		if (kind == BTF_KIND_STRUCT || kind == BTF_KIND_ENUM) {
			if (is_wanted(slim, type))
				slim->copy.list[wanted++] = kernel->count;
		} else if (kind == BTF_KIND_FUNC || kind == BTF_KIND_TYPEDEF) {
			const char *name = name_at(kernel, type->name_off);

			if (*name && id_starts[start_of(name)])
				ids_match(name, kind, kernel->count, ids, id_count);
		}
		kernel->count++;
		at += (long)sizeof(*type) + extra;
	}
	for (slim->copy.count = 0; slim->copy.count < wanted; slim->copy.count++)
		slim->copy.number[slim->copy.list[slim->copy.count]] = slim->copy.count + 1;
	return 0;
}

static int copy_write(struct slim *slim, int fd)
{
	struct copy *copy = &slim->copy;
	const char *data;
	uint32_t size;

	for (copy->written = 0; copy->written < copy->count; copy->written++) {
		int number = type_write(slim, type_at(&slim->kernel, copy->list[copy->written]));

		if (number < 0)
			return number;
	}
	data = btf__raw_data(copy->to, &size);
	if (!data)
		return -ENOMEM;
	while (size > 0) {
		ssize_t put = write(fd, data, size);

		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		data += put;
		size -= (uint32_t)put;
	}
	return 0;
}

int mt_kbtf_slim(const struct btf *wanted, int fd, struct mt_kbtf_id *ids, size_t id_count)
{
	struct slim slim = { 0 };
	int err = wanted_read(wanted, &slim);

	if (!err)
		err = file_read(&slim.kernel);
	if (!err)
		err = kernel_types_check(&slim.kernel);
	if (!err)
		err = kernel_types_walk(&slim, ids, id_count);
	if (!err) {
		slim.copy.to = btf__new_empty();
		err = slim.copy.to ? copy_write(&slim, fd) : -ENOMEM;
	}
	btf__free(slim.copy.to);
	free(slim.copy.list);
	free(slim.copy.number);
	free(slim.kernel.at);
	if (slim.kernel.mapped)
		munmap(slim.kernel.data, slim.kernel.size);
	else
		free(slim.kernel.data);
	free(slim.structs.list);
	free(slim.members.list);
	free(slim.values.list);
	return err;
}
