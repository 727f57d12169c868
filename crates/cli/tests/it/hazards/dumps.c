// A program that ends by a signal while its pages move writes its memory to a file: all of it.
#include "hazard.h"
#include <elf.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static long missing(const char *name) {
	long bad = 0;
	size_t found = 0;
	struct stat about;
	int file = open(name, O_RDONLY);
	if (file < 0 || fstat(file, &about))
		return -1;
	char *core = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	Elf64_Ehdr *header = (void *)core;
	Elf64_Phdr *parts = (void *)(core + header->e_phoff);
	for (int part = 0; part < header->e_phnum; part++)
		for (size_t page = 0; page < PAGES; page++) {
			uintptr_t at = (uintptr_t)&pages[page * WORDS];
			if (parts[part].p_type != PT_LOAD || at < parts[part].p_vaddr || at >= parts[part].p_vaddr + parts[part].p_filesz)
				continue;
			found++;
			bad += *(uint64_t *)(core + parts[part].p_offset + (at - parts[part].p_vaddr)) != page * 2654435761u + 1;
		}
	return bad + (PAGES - found);
}

int main(void) {
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	long bad = 0;
	int status, dumped = 0;
	char name[40], pattern[8] = "";
	alarm(60);
	setrlimit(RLIMIT_CORE, &all);
	fill();
	FILE *file = fopen("/proc/sys/kernel/core_pattern", "r");
	if (!file || !fgets(pattern, sizeof pattern, file) || strcmp(pattern, "core\n")) {
		puts("core files go elsewhere");
		return 0;
	}
	for (int turn = 0; turn < 6; turn++) {
		pid_t child = fork();
		if (child == 0) {
			number_pages();
			settle();
			abort();
		}
		waitpid(child, &status, 0);
		dumped += WCOREDUMP(status);
		snprintf(name, sizeof name, "core.%d", child);
		rename("core", name);
		if (missing(name))
			fprintf(stderr, "turn %d: %ld\n", turn, missing(name));
		bad += missing(name);
		unlink(name);
	}
	printf("%d dumped, status %d, %ld pages missing\n", dumped, WTERMSIG(status), bad);
	return 0;
}
