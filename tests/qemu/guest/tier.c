// A program for `dray tier` in the guest: a small mapping that is read again and again, and a large one that is
// written once. It says on which node the kernel has their pages, until those of the first are all on one node.
//
// tier HOT_PAGES COLD_PAGES huge|base NODE SECONDS
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20 };

// Between mappings that cannot be merged with it, so that it has a line of its own in numa_maps.
static char *map(size_t bytes, int huge) {
    char *at = mmap(NULL, bytes + 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) exit(2);
    at = (char *)(((uintptr_t)at + HUGE) & ~(uintptr_t)(HUGE - 1));
    if (mprotect(at, bytes, PROT_READ | PROT_WRITE)) exit(2);
    madvise(at, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return at;
}

static uint64_t value(uint64_t mapping, size_t page) { return (mapping << 40) + page * 2654435761u + 1; }

static void write_all(char *at, uint64_t mapping, size_t pages) {
    for (size_t page = 0; page < pages; page++) *(uint64_t *)(at + page * PAGE + page % 500 * 8) = value(mapping, page);
}

static void check_all(char *at, uint64_t mapping, size_t pages) {
    for (size_t page = 0; page < pages; page++) {
        volatile uint64_t *word = (uint64_t *)(at + page * PAGE + page % 500 * 8);
        if (*word != value(mapping, page)) {
            printf("LOST: mapping %d page %zu\n", (int)mapping, page);
            exit(1);
        }
    }
}

// Pages of the mapping on a node, as /proc/self/numa_maps has them.
static size_t on_node(char *at, int node) {
    char line[4096], want[16];
    size_t found = 0;
    snprintf(want, sizeof(want), " N%d=", node);
    FILE *file = fopen("/proc/self/numa_maps", "r");
    if (!file) exit(2);
    while (fgets(line, sizeof(line), file)) {
        if (strtoull(line, NULL, 16) != (uintptr_t)at) continue;
        char *count = strstr(line, want);
        char *size = strstr(line, "kernelpagesize_kB=");
        if (count) found = strtoull(count + strlen(want), NULL, 10);
        if (size) found *= strtoull(size + strlen("kernelpagesize_kB="), NULL, 10) / 4;
    }
    fclose(file);
    return found;
}

// Has the processor forget its translations. An emulated one keeps thousands more of them than a real one, and sets no
// accessed bit in a page table while it has one: the kernel would take pages that are read all the time for idle. A
// change of protection of more than 33 pages has the kernel flush all.
static void forget_translations(void) {
    enum { PAGES = 64 };
    static char *at;
    if (!at) at = map(PAGES * PAGE, 0);
    for (int page = 0; page < PAGES; page++) at[page * PAGE] = 1;
    if (mprotect(at, PAGES * PAGE, PROT_READ) || mprotect(at, PAGES * PAGE, PROT_READ | PROT_WRITE)) exit(2);
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    size_t hot = strtoull(argv[1], NULL, 10), cold = strtoull(argv[2], NULL, 10);
    int huge = argv[3][0] == 'h', node = atoi(argv[4]);
    time_t end = time(NULL) + atoi(argv[5]);
    static char out[1 << 12];
    setvbuf(stdout, out, _IOLBF, sizeof(out));
    // The kernel maps from the top: what is read again and again is at lower addresses.
    char *second = map(cold * PAGE, huge), *first = map(hot * PAGE, huge);
    write_all(first, 1, hot);
    write_all(second, 2, cold);
    printf("WRITTEN hot %zu %zu cold %zu %zu\n", on_node(first, 0), on_node(first, 1), on_node(second, 0),
           on_node(second, 1));
    // Nothing is hot yet: what was written first goes first.
    while (time(NULL) < end && on_node(first, 1) < hot / 2) usleep(100000);
    printf("DEMOTED hot %zu %zu cold %zu %zu\n", on_node(first, 0), on_node(first, 1), on_node(second, 0),
           on_node(second, 1));
    while (time(NULL) < end && on_node(first, node) < hot - hot / 16) {
        for (int round = 0; round < 20; round++) {
            check_all(first, 1, hot);
            forget_translations();
            usleep(1000);
        }
    }
    printf("FOUND hot %zu %zu cold %zu %zu\n", on_node(first, 0), on_node(first, 1), on_node(second, 0),
           on_node(second, 1));
    check_all(first, 1, hot);
    check_all(second, 2, cold);
    puts("WHOLE");
    return 0;
}
