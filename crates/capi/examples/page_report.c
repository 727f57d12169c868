/* A list of pages of which some cannot be accessed: what became of each entry, and who has copied how much. */
#include "example.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 16u
#define HOLE 5u
#define LOCKED 11u
#define ROWS 16

static struct dray_mover *open_channels(uint32_t backend) {
    struct dray_channels_options options;
    struct dray_mover *mover = NULL;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.backend = backend;
    options.virtual_queues = 2;
    options.checked = 1;
    check("open", dray_open_channels(&options, &mover));
    return mover;
}

static unsigned char *pages_of_their_own(unsigned count, unsigned char byte) {
    void *pages = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED)
        exit(1);
    return (unsigned char *)memset(pages, byte, count * PAGE);
}

/* A child that copies without looking gets the signal; whether it does. */
static int is_a_signal_unchecked(const struct dray_page *page) {
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        struct dray_page_list_options how;
        struct dray_mover *mover = open_channels(DRAY_BACKEND_CPU);

        memset(&how, 0, sizeof how);
        how.size = sizeof how;
        how.unchecked = 1;
        dray_copy_page_list(mover, page, 1, &how, NULL);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

int main(int argc, char **argv) {
    uint32_t backend = argc > 1 ? (uint32_t)atoi(argv[1]) : (uint32_t)DRAY_BACKEND_ANY;
    struct dray_mover *mover = open_channels(backend);
    unsigned char *source = pages_of_their_own(2 * PAGES, 7), *target = pages_of_their_own(2 * PAGES, 1);
    struct dray_page pages[PAGES];
    struct dray_page_state states[PAGES];
    struct dray_page_list_row rows[ROWS];
    struct dray_page_list_report report;
    struct dray_page_list_statistics statistics;
    struct dray_page_list_options how;
    uint64_t bytes = 0, copied = (PAGES - 2) * PAGE;
    unsigned n;
    int right;

    for (n = 0; n < PAGES; n++) {
        /* Every other page: no two are neighbours. */
        pages[n].source = source + 2 * n * PAGE;
        pages[n].destination = target + 2 * n * PAGE;
        pages[n].bytes = PAGE;
    }
    if (mprotect(source + 2 * HOLE * PAGE, PAGE, PROT_NONE) != 0 || mprotect(target + 2 * LOCKED * PAGE, PAGE, PROT_READ) != 0)
        return 1;
    memset(&report, 0, sizeof report);
    memset(&statistics, 0xaa, sizeof statistics);
    memset(&how, 0, sizeof how);
    memset(states, 0xaa, sizeof states);
    report.size = sizeof report;
    report.states = states;
    report.rows = rows;
    report.max_rows = ROWS;
    statistics.size = sizeof statistics;
    how.size = sizeof how;
    how.dsa_copy_threshold = 1;

    right = dray_copy_page_list_with_report(mover, pages, PAGES, &how, &statistics, &report) == -EFAULT;
    for (n = 0; n < PAGES; n++) {
        int bad = n == HOLE || n == LOCKED;

        right &= states[n].not_copied_bytes == (bad ? PAGE : 0) && states[n].has_fault == bad;
        right &= states[n].write_fault == (n == LOCKED);
        if (bad)
            right &= states[n].fault_address == (uintptr_t)(n == HOLE ? pages[n].source : pages[n].destination);
        right &= target[2 * n * PAGE] == (bad ? 1 : 7) && target[(2 * n + 1) * PAGE] == 1;
    }
    /* The statistics say what was copied although the call has failed. */
    right &= statistics.size == sizeof statistics && statistics.bytes == PAGES * PAGE;
    right &= statistics.device_bytes + statistics.after_failure_bytes + statistics.no_device_bytes == copied;
    right &= statistics.device_bytes > 0 || statistics.no_device_bytes == copied;
    right &= report.row_count >= 1 && report.row_count <= ROWS;
    for (n = 0; n < report.row_count; n++) {
        bytes += rows[n].bytes;
        right &= rows[n].page_size == DRAY_PAGE_SIZE_BASE && rows[n].bytes == rows[n].entries * PAGE;
    }
    right &= bytes == copied;
    /* Backends and executors have the same numbers, but for ANY. */
    right &= backend == DRAY_BACKEND_ANY || rows[0].executor == backend;
    if (rows[0].executor == DRAY_EXECUTOR_CPU)
        right &= rows[0].reason == DRAY_PAGE_REASON_NO_DEVICE;
    else
        right &= rows[0].reason == DRAY_PAGE_REASON_OFFLOADED;

    /* Without places; with fewer than there are rows. */
    report.max_rows = 0;
    rows[0].bytes = 99;
    right &= dray_copy_page_list_with_report(mover, pages, 3, NULL, NULL, &report) == 0;
    right &= report.row_count == 1 && rows[0].bytes == 99 && states[2].not_copied_bytes == 0;
    report.states = NULL;
    report.rows = NULL;
    right &= dray_copy_page_list_with_report(mover, pages, PAGES, NULL, NULL, &report) == -EFAULT;
    right &= dray_copy_page_list_with_report(mover, pages, PAGES, NULL, NULL, NULL) == -EINVAL;

    /* What fails before it has begun has copied nothing: zeros, and every entry is left. */
    report.states = states;
    pages[1].bytes = 0;
    memset(states, 0xaa, sizeof states);
    right &= dray_copy_page_list_with_report(mover, pages, 3, NULL, &statistics, &report) == -EINVAL;
    right &= statistics.size == sizeof statistics && statistics.bytes == 0 && statistics.device_bytes == 0;
    right &= statistics.no_device_bytes == 0 && statistics.below_threshold_bytes == 0 && report.row_count == 0;
    right &= states[0].not_copied_bytes == PAGE && states[1].not_copied_bytes == 0 && states[2].not_copied_bytes == PAGE;
    right &= states[0].has_fault == 0 && states[3].has_fault == 0xaa;
    statistics.descriptors = 99;
    right &= dray_copy_page_list(NULL, pages, 1, NULL, &statistics) == -EINVAL && statistics.descriptors == 0;
    how.unchecked = 2;
    right &= dray_copy_page_list(mover, pages, 1, &how, NULL) == -EINVAL;
    right &= strstr(dray_last_error(), "unchecked is 2") != NULL;
    if (backend == DRAY_BACKEND_CPU)
        right &= is_a_signal_unchecked(&pages[HOLE]);
    return result(mover, "page_report", right);
}
