// All memory is locked, before or after there is much of it: how much that is, and that it stays right.
#include "hazard.h"
#include <sys/resource.h>

static long status(const char *name) {
	char line[200];
	long value = -1;
	FILE *file = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, name, strlen(name)))
			value = atol(line + strlen(name));
	fclose(file);
	return value;
}

int main(int count, char **words) {
	int before = count > 1 && !strcmp(words[1], "before");
	int answer = 0;
	if (before)
		answer = mlockall(MCL_CURRENT | MCL_FUTURE);
	fill();
	settle();
	if (!before)
		answer = mlockall(MCL_CURRENT | MCL_FUTURE);
	settle();
	// The program has 16 MiB, and 64 for the heap of another thread, libraries and stacks.
	printf("%d, locked less than 128 MiB: %d, resident less than 64 MiB: %d, %d pages wrong\n", answer,
	       status("VmLck:") < 128 << 10, status("VmRSS:") < 64 << 10, wrong());
	return 0;
}
