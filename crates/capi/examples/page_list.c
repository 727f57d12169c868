/* A list of pages, small and large ones mixed, copied in one call; who has copied what. */
#include "example.h"
#include <errno.h>

#define BASE 4096u
#define LARGE (2u << 20)
#define SMALL_PAGES 64u
#define LARGE_PAGES 2u
#define BYTES (LARGE_PAGES * LARGE + 2 * SMALL_PAGES * BASE)

static unsigned char source[BYTES], target[BYTES];

/* Large pages, then every other small one. */
static unsigned list_of_pages(struct dray_page *pages) {
    unsigned n;

    for (n = 0; n < LARGE_PAGES; n++) {
        pages[n].source = source + n * LARGE;
        pages[n].destination = target + n * LARGE;
        pages[n].bytes = LARGE;
    }
    for (n = 0; n < SMALL_PAGES; n++) {
        size_t at = LARGE_PAGES * LARGE + 2 * n * BASE;

        pages[LARGE_PAGES + n].source = source + at;
        pages[LARGE_PAGES + n].destination = target + at;
        pages[LARGE_PAGES + n].bytes = BASE;
    }
    return LARGE_PAGES + SMALL_PAGES;
}

/* Whether what is in the list was copied, and nothing beside it. */
static int copied(void) {
    size_t n, at = LARGE_PAGES * LARGE;
    int right = memcmp(source, target, at) == 0;

    for (n = 0; n < 2 * SMALL_PAGES; n++, at += BASE)
        right &= n % 2 == 0 ? memcmp(source + at, target + at, BASE) == 0 : target[at] == 1 && target[at + BASE - 1] == 1;
    return right;
}

int main(int argc, char **argv) {
    struct dray_page pages[LARGE_PAGES + SMALL_PAGES];
    struct dray_channels_options options;
    struct dray_page_list_options how;
    struct dray_page_list_statistics statistics;
    struct dray_mover *mover = NULL;
    uint64_t bytes = LARGE_PAGES * LARGE + SMALL_PAGES * BASE;
    unsigned count = list_of_pages(pages);
    int right;

    memset(&options, 0, sizeof options);
    memset(&how, 0, sizeof how);
    memset(&statistics, 0, sizeof statistics);
    options.size = sizeof options;
    options.backend = argc > 1 ? (uint32_t)atoi(argv[1]) : (uint32_t)DRAY_BACKEND_ANY;
    options.virtual_queues = 4;
    how.size = sizeof how;
    statistics.size = sizeof statistics;
    memset(source, 7, sizeof source);
    memset(target, 1, sizeof target);
    check("open", dray_open_channels(&options, &mover));

    check("copy", dray_copy_page_list(mover, pages, count, NULL, &statistics));
    right = copied() && statistics.bytes == bytes;
    right &= statistics.device_bytes + statistics.no_device_bytes + statistics.after_failure_bytes == bytes;
    /* The first small page follows the large ones, and is merged with them. */
    if (options.backend == DRAY_BACKEND_VIRTUAL)
        right &= statistics.device_bytes == bytes && statistics.in_batches == SMALL_PAGES - 1;
    if (options.backend == DRAY_BACKEND_CPU)
        right &= statistics.no_device_bytes == bytes && statistics.descriptors == 0;

    /* Below the threshold threads of the program copy. */
    memset(target, 1, sizeof target);
    how.dsa_copy_threshold = 1u << 20;
    how.limit_mt_num = 2;
    check("copy", dray_copy_page_list(mover, pages, count, &how, &statistics));
    right &= copied() && statistics.below_threshold_bytes == bytes;

    /* What is required is not left to the core. */
    if (options.backend == DRAY_BACKEND_CPU) {
        how.require_device = 1;
        right &= dray_copy_page_list(mover, pages, count, &how, &statistics) == -ENODEV;
        how.require_device = 0;
    }

    /* What is wrong has a code, and nothing is copied. */
    memset(target, 1, sizeof target);
    pages[3].bytes = 0;
    right &= dray_copy_page_list(mover, pages, count, NULL, NULL) == -EINVAL;
    right &= strstr(dray_last_error(), "entry 3") != NULL;
    pages[3].bytes = BASE;
    pages[5].destination = NULL;
    right &= dray_copy_page_list(mover, pages, count, NULL, NULL) == -EINVAL;
    right &= strstr(dray_last_error(), "entry 5") != NULL;
    right &= dray_copy_page_list(mover, NULL, 1, NULL, NULL) == -EINVAL;
    right &= dray_copy_page_list(mover, NULL, 0, NULL, NULL) == 0;
    how.limit_mt_num = 65;
    right &= dray_copy_page_list(mover, pages, 1, &how, NULL) == -EINVAL;
    right &= strstr(dray_last_error(), "limit_mt_num is 65") != NULL;
    /* A page that is not there; a virtual device that does not look at addresses would get a signal. */
    pages[0].destination = (void *)(uintptr_t)BASE;
    pages[0].bytes = BASE;
    if (options.backend != DRAY_BACKEND_VIRTUAL)
        right &= dray_copy_page_list(mover, pages, 1, NULL, NULL) == -EFAULT;
    pages[0].destination = target;
    pages[0].bytes = LARGE;
    statistics.size = 8;
    right &= dray_copy_page_list(mover, pages, 1, NULL, &statistics) == -EINVAL;
    right &= target[0] == 1 && target[LARGE] == 1;
    /* Its completions would be lost. */
    check("noop", dray_noop(mover, 0));
    right &= dray_copy_page_list(mover, pages, 1, NULL, NULL) == -EBUSY;
    finish(mover);
    check("copy", dray_copy_page_list(mover, pages, 1, NULL, NULL));
    right &= target[0] == 7 && target[LARGE] == 1;
    return result(mover, "page_list", right);
}
