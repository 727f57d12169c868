// SPDX-License-Identifier: GPL-2.0
/* Offsets in structs that have no public header, from the kernel's own type information (BTF). */
#include <linux/btf.h>
#include <linux/fs.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "btf.h"

struct types {
	const u8 *data;
	u32 size;
	const char *strings;
	u32 strings_size;
};

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

static const struct btf_type *next(const struct types *types, u32 *at)
{
	const struct btf_type *type = (const void *)(types->data + *at);
	int more;

	if (*at + sizeof(*type) > types->size)
		return NULL;
	more = tail(type);
	if (more < 0 || more > types->size - *at - sizeof(*type))
		return NULL;
	*at += sizeof(*type) + more;
	return type;
}

static const char *name_of(const struct types *types, u32 offset)
{
	return offset < types->strings_size ? types->strings + offset : "";
}

static const struct btf_type *by_id(const struct types *types, u32 id)
{
	const struct btf_type *type = NULL;
	u32 at = 0;

	while (id-- > 0) {
		type = next(types, &at);
		if (!type)
			return NULL;
	}
	return type;
}

/* Size of a type in bytes; 0 where it has none. */
static u32 size_of(const struct types *types, u32 id)
{
	unsigned int depth;

	for (depth = 0; depth < 16; depth++) {
		const struct btf_type *type = by_id(types, id);

		if (!type)
			return 0;
		switch (BTF_INFO_KIND(type->info)) {
		case BTF_KIND_PTR: return sizeof(void *);
		case BTF_KIND_INT:
		case BTF_KIND_ENUM:
		case BTF_KIND_ENUM64:
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION: return type->size;
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_TYPE_TAG: id = type->type; break;
		default: return 0;
		}
	}
	return 0;
}

static int search(const struct types *types, const char *structure,
		  struct btf_member_place *members, unsigned int count)
{
	const struct btf_type *type;
	u32 at = 0;

	while ((type = next(types, &at))) {
		const struct btf_member *member = (const void *)(type + 1);
		unsigned int n, m;

		if (BTF_INFO_KIND(type->info) != BTF_KIND_STRUCT ||
		    strcmp(name_of(types, type->name_off), structure))
			continue;
		for (n = 0; n < btf_type_vlen(type); n++, member++) {
			u32 bits = btf_type_kflag(type) ? BTF_MEMBER_BIT_OFFSET(member->offset) : member->offset;

			for (m = 0; m < count; m++) {
				if (strcmp(name_of(types, member->name_off), members[m].name))
					continue;
				members[m].offset = bits / 8;
				members[m].found = bits % 8 == 0 &&
						   size_of(types, member->type) == members[m].size;
			}
		}
		for (m = 0; m < count; m++)
			if (!members[m].found)
				return -EINVAL;
		return 0;
	}
	return -ENOENT;
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

int btf_find_members(const char *structure, struct btf_member_place *members, unsigned int count)
{
	const struct btf_header *header;
	struct types types;
	void *file;
	ssize_t size;
	int result = -EINVAL;

	size = read_all("/sys/kernel/btf/vmlinux", &file);
	if (size < 0)
		return size;
	header = file;
	if (size < sizeof(*header) || header->magic != BTF_MAGIC || header->hdr_len > size ||
	    header->type_off > size - header->hdr_len ||
	    header->type_len > size - header->hdr_len - header->type_off ||
	    header->str_off > size - header->hdr_len ||
	    header->str_len > size - header->hdr_len - header->str_off || !header->str_len)
		goto out;
	types.data = file + header->hdr_len + header->type_off;
	types.size = header->type_len;
	types.strings = file + header->hdr_len + header->str_off;
	types.strings_size = header->str_len;
	if (types.strings[types.strings_size - 1])
		goto out;
	result = search(&types, structure, members, count);
out:
	vfree(file);
	return result;
}
