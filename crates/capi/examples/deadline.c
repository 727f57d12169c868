/* A completion that does not come: the deadline says so, the operation stays in flight, and completes once
 * when the device can go on. Here it waits for a page that this program supplies late. */
#include "example.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define MILLISECOND 1000000
#define COPIES 300

/* A page that is missing until `supply`; NULL where the kernel does not let programs do that. */
static void *missing_page(int *fault) {
    struct uffdio_api api;
    struct uffdio_register area;
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memset(&api, 0, sizeof api);
    memset(&area, 0, sizeof area);
    api.api = UFFD_API;
    area.mode = UFFDIO_REGISTER_MODE_MISSING;
    /* 1: faults of programs alone, which every user may see to. */
    *fault = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1);
    area.range.start = (uintptr_t)page;
    area.range.len = PAGE;
    if (page == MAP_FAILED || *fault < 0 || ioctl(*fault, UFFDIO_API, &api) != 0 ||
        ioctl(*fault, UFFDIO_REGISTER, &area) != 0)
        return NULL;
    return page;
}

static void supply(int fault, void *page, const void *bytes) {
    struct uffdio_copy copy;

    memset(&copy, 0, sizeof copy);
    copy.dst = (uintptr_t)page;
    copy.src = (uintptr_t)bytes;
    copy.len = PAGE;
    if (ioctl(fault, UFFDIO_COPY, &copy) != 0)
        exit(1);
}

static unsigned char bytes[PAGE];

/* A wait ends; the operation goes on, and its buffers are the mover's. */
static int waits(struct dray_mover *mover) {
    static unsigned char target[PAGE];
    struct dray_completion done;
    int fault, n, right = 1;
    void *page = missing_page(&fault);

    check("copy", dray_copy(mover, target, page, PAGE, 3));
    for (n = 0; n < 3; n++)
        right &= dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 5 * MILLISECOND) == -ETIMEDOUT;
    /* The device has it: nothing can be taken back, and nothing has been written. */
    right &= dray_withdraw(mover) == 0 && target[0] == 0 && target[PAGE - 1] == 0;
    supply(fault, page, bytes);
    done = finish(mover);
    right &= done.user_data == 3 && done.status == 1 && memcmp(target, bytes, PAGE) == 0;
    right &= dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 5 * MILLISECOND) == -ENOENT;
    close(fault);
    return right;
}

/* More operations than the queue has entries. What it has not accepted can be taken back; the buffers of that
 * are the program's again when its completion was polled, those of the rest when the rest has ended. */
static int withdraws(void) {
    static unsigned char targets[COPIES][PAGE];
    struct dray_channels_options options;
    struct dray_mover *mover = NULL;
    struct dray_outcome outcome;
    int fault, n, withdrawn, found = 0, right = 1;
    void *page = missing_page(&fault);

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.backend = DRAY_BACKEND_VIRTUAL;
    options.slots = COPIES;
    options.gather_below_bytes = 1;
    check("open", dray_open_channels(&options, &mover));
    for (n = 0; n < COPIES; n++)
        check("copy", dray_copy(mover, targets[n], page, PAGE, (uint64_t)n));
    right &= dray_wait_outcomes(mover, &outcome, 1, DRAY_WAIT_POLICY_YIELD, 5 * MILLISECOND) == -ETIMEDOUT;
    check("withdraw", withdrawn = dray_withdraw(mover));
    right &= withdrawn > 0 && withdrawn < COPIES;
    for (n = 0; n < withdrawn; n++) {
        check("wait", dray_wait_outcomes(mover, &outcome, 1, DRAY_WAIT_POLICY_YIELD, 30000000000));
        right &= outcome.completion.status == 0 && outcome.completion.withdrawn == 1;
        right &= outcome.completion.queue_was_full == 0 && outcome.completion.queue_lost == DRAY_QUEUE_LOST_REASON_NONE;
        /* So that what is written later is seen. */
        memset(targets[outcome.completion.user_data], 1, PAGE);
    }
    right &= dray_wait_outcomes(mover, &outcome, 1, DRAY_WAIT_POLICY_YIELD, 5 * MILLISECOND) == -ETIMEDOUT;
    supply(fault, page, bytes);
    for (n = withdrawn; n < COPIES; n++) {
        check("wait", dray_wait_outcomes(mover, &outcome, 1, DRAY_WAIT_POLICY_YIELD, 30000000000));
        right &= outcome.completion.status == 1 && outcome.completion.withdrawn == 0;
    }
    for (n = 0; n < COPIES; n++)
        found += memcmp(targets[n], bytes, PAGE) == 0;
    right &= found == COPIES - withdrawn;
    check("close", dray_close(mover));
    close(fault);
    return right;
}

struct late {
    int fault;
    void *page;
};

/* Supplies the page long after the device has missed it. */
static void *supply_late(void *argument) {
    struct late *late = (struct late *)argument;
    struct timespec pause = {0, 50 * MILLISECOND};
    struct uffd_msg event;

    /* The device has begun, and the time runs. */
    if (read(late->fault, &event, sizeof event) != sizeof event)
        exit(1);
    nanosleep(&pause, NULL);
    supply(late->fault, late->page, bytes);
    return NULL;
}

/* A list of pages ends with what the device has begun: nothing is in flight then, and the rest is not copied. */
static int lists(void) {
    static unsigned char others[3 * PAGE], target[5 * PAGE];
    struct dray_options options;
    struct dray_mover *mover = NULL;
    struct dray_page pages[3];
    struct dray_page_state states[3];
    struct dray_page_list_options how;
    struct dray_page_list_report report;
    struct dray_page_list_statistics statistics;
    struct late late;
    pthread_t thread;
    int n, right;

    memset(&options, 0, sizeof options);
    memset(&how, 0, sizeof how);
    memset(&report, 0, sizeof report);
    memset(&statistics, 0, sizeof statistics);
    options.size = sizeof options;
    options.backend = DRAY_BACKEND_VIRTUAL;
    /* One copy after the other. */
    options.slots = 1;
    how.size = sizeof how;
    how.dsa_copy_threshold = 1;
    how.timeout_ns = 5 * MILLISECOND;
    report.size = sizeof report;
    report.states = states;
    statistics.size = sizeof statistics;
    late.page = missing_page(&late.fault);
    for (n = 0; n < 3; n++) {
        pages[n].source = n == 0 ? late.page : others + n * PAGE;
        pages[n].destination = target + 2 * n * PAGE;
        pages[n].bytes = PAGE;
    }
    memset(target, 1, sizeof target);
    check("open", dray_open(&options, &mover));
    if (pthread_create(&thread, NULL, supply_late, &late) != 0)
        exit(1);
    right = dray_copy_page_list_with_report(mover, pages, 3, &how, &statistics, &report) == -ETIMEDOUT;
    pthread_join(thread, NULL);
    right &= states[0].not_copied_bytes == 0 && memcmp(target, bytes, PAGE) == 0;
    for (n = 1; n < 3; n++)
        right &= states[n].not_copied_bytes == PAGE && states[n].has_fault == 0 && target[2 * n * PAGE] == 1;
    right &= statistics.bytes == 3 * PAGE && statistics.device_bytes == PAGE && statistics.descriptors == 1;
    /* Nothing is in flight: the mover takes the rest of the list. */
    how.timeout_ns = 0;
    right &= dray_copy_page_list(mover, pages + 1, 2, &how, &statistics) == 0 && statistics.device_bytes == 2 * PAGE;
    right &= target[2 * PAGE] == 0 && target[4 * PAGE] == 0;
    check("close", dray_close(mover));
    close(late.fault);
    return right;
}

int main(int argc, char **argv) {
    struct dray_mover *mover = open_mover(argc, argv);
    int fault, right;
    void *page = missing_page(&fault);

    /* The core would wait for the page itself. */
    if (page == NULL || argc < 2 || atoi(argv[1]) != DRAY_BACKEND_VIRTUAL)
        return result(mover, "deadline", 1);
    close(fault);
    memset(bytes, 0x5a, sizeof bytes);
    right = waits(mover);
    right &= withdraws();
    right &= lists();
    return result(mover, "deadline", right);
}
