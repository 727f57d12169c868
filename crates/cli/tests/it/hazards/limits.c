// A program limits itself: what it may have then is what it may have without dray.
#include "hazard.h"
#include <fcntl.h>
#include <sys/resource.h>

static long used(const char *name) {
	char line[200];
	long value = 0;
	FILE *file = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, name, strlen(name)))
			value = atol(line + strlen(name));
	fclose(file);
	return value;
}

int main(int count, char **words) {
	const char *how = count > 1 ? words[1] : "files";
	int files = 0, maps = 0;
	alarm(60);
	if (!strcmp(how, "address")) {
		// As shells do it with ulimit -v, before there is anything.
		struct rlimit limit = { 1ul << 30, 1ul << 30 };
		setrlimit(RLIMIT_AS, &limit);
	}
	fill();
	settle();
	if (!strcmp(how, "files")) {
		struct rlimit limit = { 3, 3 };
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (!strcmp(how, "data")) {
		struct rlimit limit = { (used("VmData:") + (256 << 10)) << 10, (used("VmData:") + (256 << 10)) << 10 };
		setrlimit(RLIMIT_DATA, &limit);
	}
	settle();
	while (files < 100 && open("/dev/null", O_RDONLY) >= 0)
		files++;
	// 200 MiB more, touched.
	while (maps < 50) {
		char *more = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (more == MAP_FAILED)
			break;
		memset(more, 1, 4 << 20);
		maps++;
	}
	printf("%d files, %d mappings, %d pages wrong\n", files, maps, wrong());
	return 0;
}
