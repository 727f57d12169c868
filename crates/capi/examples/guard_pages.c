/* Memory that cannot be read or written: a page fault in the completion, and nothing written beside. */
#include "example.h"
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

/* The middle one of three pages; the others cannot be accessed. */
static unsigned char *guarded(int protection) {
    unsigned char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED)
        exit(1);
    memset(pages + PAGE, 0x11, PAGE);
    if (mprotect(pages, PAGE, PROT_NONE) != 0 || mprotect(pages + 2 * PAGE, PAGE, PROT_NONE) != 0 ||
        mprotect(pages + PAGE, PAGE, protection) != 0)
        exit(1);
    return pages + PAGE;
}

/* One operation, which must end with a page fault of this kind at this address. */
static int faults(struct dray_mover *mover, int enqueued, const void *address, int write) {
    struct dray_completion done;

    check("enqueue", enqueued);
    check("wait", dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 30000000000));
    return done.status == 3 && done.write_fault == write &&
           (done.fault_address & ~4095ull) == ((uintptr_t)address & ~4095ull);
}

static struct dray_mover *open_checked(uint32_t backend) {
    struct dray_options options;
    struct dray_mover *mover = NULL;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.backend = backend;
    options.checked = 1;
    check("open", dray_open(&options, &mover));
    return mover;
}

/* The same of several queues: what a device has not done the core tries, and it looks as well. */
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

static int is_right(struct dray_mover *mover) {
    unsigned char *open = guarded(PROT_READ | PROT_WRITE);
    unsigned char *read_only = guarded(PROT_READ);
    int right = 1, n;

    right &= faults(mover, dray_copy(mover, read_only, open, PAGE, 1), read_only, 1);
    right &= faults(mover, dray_fill(mover, read_only, 7, PAGE, 2), read_only, 1);
    right &= faults(mover, dray_copy(mover, open, open + PAGE, 64, 3), open + PAGE, 0);
    right &= faults(mover, dray_crc32c(mover, open - 64, 64, 0, 4), open - PAGE, 0);
    right &= faults(mover, dray_copy(mover, open + PAGE, read_only, 64, 5), open + PAGE, 1);
    right &= faults(mover, dray_copy(mover, (void *)8, read_only, 64, 6), (void *)8, 1);
    right &= faults(mover, dray_compare(mover, open, (void *)(~0ull - 4095), 64, 7),
                    (void *)(~0ull - 4095), 0);
    for (n = 0; n < PAGE; n++)
        right &= read_only[n] == 0x11 && open[n] == 0x11;

    /* The last byte before a page that is not there is the last one written. */
    check("fill", dray_fill(mover, open, 0x2222222222222222, PAGE, 8));
    right &= finish(mover).status == 1 && open[0] == 0x22 && open[PAGE - 1] == 0x22;
    check("copy", dray_copy(mover, open + PAGE - 7, read_only + PAGE - 7, 7, 9));
    right &= finish(mover).status == 1 && open[PAGE - 8] == 0x22 && open[PAGE - 7] == 0x11;
    return right;
}

int main(int argc, char **argv) {
    uint32_t backend = argc > 1 ? (uint32_t)atoi(argv[1]) : (uint32_t)DRAY_BACKEND_CPU;
    struct dray_mover *mover = open_checked(backend);
    int right = is_right(mover);

    check("close", dray_close(mover));
    mover = open_channels(backend);
    right &= is_right(mover);
    return result(mover, "guard_pages", right);
}
