/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DRAY_BTF_H
#define DRAY_BTF_H

#include <linux/types.h>

/* A member of a struct that has no public header. */
struct btf_member_place {
	const char *name;
	/* Size that its type must have. */
	u32 size;
	/* Found: offset in bytes. */
	u32 offset;
	bool found;
};

/* Finds members of a struct in the type information of the running kernel. */
int btf_find_members(const char *structure, struct btf_member_place *members, unsigned int count);

#endif
