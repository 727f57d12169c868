// SPDX-License-Identifier: GPL-2.0
/* What has no public header, from the type information (BTF) of the kernel and of its modules. */
#include <linux/btf.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "btf.h"

/* This file is part of several modules. */
#undef pr_fmt
#define pr_fmt(fmt) "%s: " fmt, THIS_MODULE->name

/* Types and strings of one file. Those of a module go on where the kernel's end. */
struct btf_types {
	struct btf_types *base;
	void *file;
	const u8 *data;
	u32 size;
	const char *strings;
	u32 strings_size;
	/* Where each type is in data; the first has this number. */
	u32 *at;
	u32 count;
	u32 first;
	u32 first_string;
};

/* Unnamed structs in structs, and names of names, to this depth. */
#define DEPTH 16

/* Bytes of what follows a type's header, by its kind; negative for a kind that is not known. */
static int tail(const struct btf_type *type)
{
	u32 length = btf_type_vlen(type);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT: return 4;
	case BTF_KIND_ARRAY: return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION: return length * sizeof(struct btf_member);
	case BTF_KIND_ENUM: return length * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64: return length * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO: return length * sizeof(struct btf_param);
	case BTF_KIND_VAR: return sizeof(struct btf_var);
	case BTF_KIND_DATASEC: return length * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG: return sizeof(struct btf_decl_tag);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG: return 0;
	default: return -1;
	}
}

/* Reads a file whose size is known: its bytes, to be freed by the caller. */
static ssize_t read_all(const char *path, void **bytes)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	loff_t size, at = 0;
	ssize_t got = -ENOMEM;

	if (IS_ERR(file))
		return PTR_ERR(file);
	size = i_size_read(file_inode(file));
	*bytes = size > 0 && size <= SZ_64M ? vmalloc(size) : NULL;
	while (*bytes && at < size) {
		got = kernel_read(file, *bytes + at, size - at, &at);
		if (got <= 0)
			break;
	}
	filp_close(file, NULL);
	if (*bytes && at == size)
		return size;
	vfree(*bytes);
	return got < 0 ? got : -EIO;
}

/* Finds where each type begins. */
static int number_types(struct btf_types *types)
{
	unsigned int pass;

	/* The first pass counts. */
	for (pass = 0; pass < 2; pass++) {
		u32 at = 0, count = 0;

		while (at < types->size) {
			const struct btf_type *type = (const void *)(types->data + at);
			int more;

			if (types->size - at < sizeof(*type))
				return -EINVAL;
			more = tail(type);
			if (more < 0 || more > types->size - at - sizeof(*type))
				return -EINVAL;
			if (types->at)
				types->at[count] = at;
			count++;
			at += sizeof(*type) + more;
		}
		types->count = count;
		if (!types->at)
			types->at = vmalloc_array(count + 1, sizeof(u32));
		if (!types->at)
			return -ENOMEM;
	}
	return 0;
}

static struct btf_types *open_file(const char *name, struct btf_types *base)
{
	struct btf_types *types = kzalloc(sizeof(*types), GFP_KERNEL);
	const struct btf_header *header;
	char path[80];
	ssize_t size;
	int result;

	if (!types)
		return ERR_PTR(-ENOMEM);
	types->base = base;
	types->first = base ? base->first + base->count : 1;
	types->first_string = base ? base->first_string + base->strings_size : 0;
	snprintf(path, sizeof(path), "/sys/kernel/btf/%s", name);
	size = read_all(path, &types->file);
	if (size < 0) {
		pr_err("%s cannot be read: %zd\n", path, size);
		kfree(types);
		return ERR_PTR(size);
	}
	header = types->file;
	result = -EINVAL;
	if (size < sizeof(*header) || header->magic != BTF_MAGIC || header->hdr_len > size ||
	    header->type_off > size - header->hdr_len ||
	    header->type_len > size - header->hdr_len - header->type_off ||
	    header->str_off > size - header->hdr_len ||
	    header->str_len > size - header->hdr_len - header->str_off || !header->str_len)
		goto bad;
	types->data = types->file + header->hdr_len + header->type_off;
	types->size = header->type_len;
	types->strings = types->file + header->hdr_len + header->str_off;
	types->strings_size = header->str_len;
	if (types->strings[types->strings_size - 1])
		goto bad;
	result = number_types(types);
	if (!result)
		return types;
bad:
	pr_err("%s is not as it is known: %d\n", path, result);
	types->base = NULL;
	btf_close(types);
	return ERR_PTR(result);
}

struct btf_types *btf_open(const char *module)
{
	struct btf_types *kernel = open_file("vmlinux", NULL);
	struct btf_types *types;

	if (IS_ERR(kernel) || !module)
		return kernel;
	types = open_file(module, kernel);
	if (IS_ERR(types))
		btf_close(kernel);
	return types;
}

void btf_close(struct btf_types *types)
{
	while (types) {
		struct btf_types *base = types->base;

		vfree(types->file);
		vfree(types->at);
		kfree(types);
		types = base;
	}
}

static const char *name_of(const struct btf_types *types, u32 offset)
{
	while (types->base && offset < types->first_string)
		types = types->base;
	offset -= types->first_string;
	return offset < types->strings_size ? types->strings + offset : "";
}

static const struct btf_type *by_id(const struct btf_types *types, u32 id)
{
	while (types->base && id < types->first)
		types = types->base;
	if (id < types->first || id - types->first >= types->count)
		return NULL;
	return (const void *)(types->data + types->at[id - types->first]);
}

/* Type behind names, const and volatile; NULL where there is none. */
static const struct btf_type *plain(const struct btf_types *types, u32 id)
{
	unsigned int depth;

	for (depth = 0; depth < DEPTH; depth++) {
		const struct btf_type *type = by_id(types, id);

		if (!type)
			return NULL;
		switch (BTF_INFO_KIND(type->info)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_TYPE_TAG: id = type->type; break;
		default: return type;
		}
	}
	return NULL;
}

/* Size of a type in bytes; 0 where it has none. */
static u32 size_of(const struct btf_types *types, u32 id)
{
	u32 elements = 1;
	unsigned int depth;

	for (depth = 0; depth < DEPTH; depth++) {
		const struct btf_type *type = plain(types, id);
		const struct btf_array *array;

		if (!type)
			return 0;
		switch (BTF_INFO_KIND(type->info)) {
		case BTF_KIND_PTR: return elements * sizeof(void *);
		case BTF_KIND_INT:
		case BTF_KIND_ENUM:
		case BTF_KIND_ENUM64:
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION: return elements * type->size;
		case BTF_KIND_ARRAY:
			array = (const void *)(type + 1);
			elements *= array->nelems;
			id = array->type;
			break;
		default: return 0;
		}
	}
	return 0;
}

/* The type of this kind and name: a module's own, then the kernel's. */
static const struct btf_type *by_name(const struct btf_types *types, unsigned int kind, const char *name)
{
	const struct btf_types *file;
	u32 n;

	for (file = types; file; file = file->base)
		for (n = 0; n < file->count; n++) {
			const struct btf_type *type = (const void *)(file->data + file->at[n]);

			if (BTF_INFO_KIND(type->info) == kind &&
			    !strcmp(name_of(types, type->name_off), name))
				return type;
		}
	return NULL;
}

static void search_members(const struct btf_types *types, const struct btf_type *type, u32 base_bits,
			   struct btf_structure *structure, unsigned int depth)
{
	const struct btf_member *member = (const void *)(type + 1);
	unsigned int n, m;

	for (n = 0; n < btf_type_vlen(type); n++, member++) {
		u32 bits = base_bits +
			   (btf_type_kflag(type) ? BTF_MEMBER_BIT_OFFSET(member->offset) : member->offset);
		const char *name = name_of(types, member->name_off);
		const struct btf_type *inner = plain(types, member->type);

		if (!*name && inner && depth < DEPTH &&
		    (BTF_INFO_KIND(inner->info) == BTF_KIND_STRUCT ||
		     BTF_INFO_KIND(inner->info) == BTF_KIND_UNION))
			search_members(types, inner, bits, structure, depth + 1);
		for (m = 0; m < structure->count; m++) {
			struct btf_member_place *place = &structure->members[m];
			u32 size;

			if (strcmp(name, place->name))
				continue;
			size = size_of(types, member->type);
			place->offset = bits / 8;
			place->found = bits % 8 == 0 && size == place->size;
			if (!place->found)
				pr_err("struct %s: %s has %u bytes at bit %u, not %u bytes\n",
				       structure->name, name, size, bits, place->size);
		}
	}
}

int btf_find_structure(const struct btf_types *types, struct btf_structure *structure)
{
	const struct btf_type *type = by_name(types, BTF_KIND_STRUCT, structure->name);
	unsigned int m;
	int result = 0;

	if (!type) {
		pr_err("this kernel has no struct %s\n", structure->name);
		return -ENOENT;
	}
	structure->size = type->size;
	search_members(types, type, 0, structure, 0);
	for (m = 0; m < structure->count; m++) {
		const struct btf_member_place *place = &structure->members[m];

		if (place->found)
			continue;
		pr_err("struct %s has no %s as it is known\n", structure->name, place->name);
		result = -EINVAL;
	}
	return result;
}

int btf_check_constant(const struct btf_types *types, const struct btf_constant *constant)
{
	const struct btf_type *type = by_name(types, BTF_KIND_ENUM, constant->enumeration);
	const struct btf_enum *value = (const void *)(type + 1);
	unsigned int n;

	for (n = 0; type && n < btf_type_vlen(type); n++, value++)
		if (!strcmp(name_of(types, value->name_off), constant->name)) {
			if (value->val == constant->value)
				return 0;
			pr_err("%s of enum %s is %d, not %lld\n", constant->name, constant->enumeration,
			       value->val, constant->value);
			return -EINVAL;
		}
	pr_err("this kernel has no %s in enum %s\n", constant->name, constant->enumeration);
	return -ENOENT;
}

int btf_check_function(const struct btf_types *types, const struct btf_function *function)
{
	const struct btf_type *type = by_name(types, BTF_KIND_FUNC, function->name);
	const struct btf_type *prototype = type ? by_id(types, type->type) : NULL;
	const struct btf_param *parameter;
	char names[160] = "";
	unsigned int n;

	if (!prototype || BTF_INFO_KIND(prototype->info) != BTF_KIND_FUNC_PROTO) {
		pr_err("this kernel has no function %s\n", function->name);
		return -ENOENT;
	}
	parameter = (const void *)(prototype + 1);
	for (n = 0; n < btf_type_vlen(prototype); n++, parameter++) {
		strlcat(names, n ? " " : "", sizeof(names));
		strlcat(names, name_of(types, parameter->name_off), sizeof(names));
	}
	if (!strcmp(names, function->parameters))
		return 0;
	pr_err("%s takes (%s), not (%s)\n", function->name, names, function->parameters);
	return -EINVAL;
}

int btf_find_members(const char *name, struct btf_member_place *members, unsigned int count)
{
	struct btf_structure structure = { .name = name, .members = members, .count = count };
	struct btf_types *types = btf_open(NULL);
	int result;

	if (IS_ERR(types))
		return PTR_ERR(types);
	result = btf_find_structure(types, &structure);
	btf_close(types);
	return result;
}
