/* A completion that does not come: the deadline says so, the operation stays in flight, and completes once
 * when the device can go on. Here it waits for a page that this program supplies late. */
#include "example.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define MILLISECOND 1000000

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

int main(int argc, char **argv) {
    static unsigned char bytes[PAGE], target[PAGE];
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;
    int fault, n, right = 1;
    void *page = missing_page(&fault);

    /* The core would wait for the page itself. */
    if (page == NULL || argc < 2 || atoi(argv[1]) != DRAY_BACKEND_VIRTUAL)
        return result(mover, "deadline", 1);
    memset(bytes, 0x5a, sizeof bytes);
    check("copy", dray_copy(mover, target, page, PAGE, 3));
    for (n = 0; n < 3; n++)
        right &= dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 5 * MILLISECOND) == -ETIMEDOUT;
    /* The device has it: nothing can be taken back, and nothing has been written. */
    right &= dray_withdraw(mover) == 0 && target[0] == 0 && target[PAGE - 1] == 0;
    supply(fault, page, bytes);
    done = finish(mover);
    right &= done.user_data == 3 && done.status == 1 && memcmp(target, bytes, PAGE) == 0;
    right &= dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 5 * MILLISECOND) == -ENOENT;
    return result(mover, "deadline", right);
}
