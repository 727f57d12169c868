/* Fills, goes into a user namespace of its own, which a process of several threads may not, and fills again. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>

static char all[1 << 20];

int main(void)
{
	memset(all, 1, sizeof all);
	int left = unshare(CLONE_NEWUSER);

	memset(all, 2, sizeof all);
	for (unsigned i = 0; i < sizeof all; i++)
		if (all[i] != 2)
			return 3;
	if (left)
		perror("unshare");
	puts(left ? "in the same" : "in another");
	return left ? 1 : 0;
}
