/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DRAY_BTF_H
#define DRAY_BTF_H

#include <linux/types.h>

/* A member of a struct that has no public header; members of unnamed unions count as the struct's own. */
struct btf_member_place {
	const char *name;
	/* Size that its type must have. */
	u32 size;
	/* Found: offset in bytes. */
	u32 offset;
	bool found;
};

struct btf_structure {
	const char *name;
	struct btf_member_place *members;
	unsigned int count;
	/* Found: its size in bytes. */
	u32 size;
};

/* A value that an enumeration must have. */
struct btf_constant {
	const char *enumeration;
	const char *name;
	s64 value;
};

/* A function and the names of its parameters, separated by single spaces. */
struct btf_function {
	const char *name;
	const char *parameters;
};

struct btf_types;

/* Type information of the running kernel, or of one of its modules; an error pointer where there is none. */
struct btf_types *btf_open(const char *module);
void btf_close(struct btf_types *types);

/* Each logs what differs, and fails if anything does. */
int btf_find_structure(const struct btf_types *types, struct btf_structure *structure);
int btf_check_constant(const struct btf_types *types, const struct btf_constant *constant);
int btf_check_function(const struct btf_types *types, const struct btf_function *function);

/* Finds members of a struct of the kernel itself. */
int btf_find_members(const char *structure, struct btf_member_place *members, unsigned int count);

#endif
