/* Calls on memory whose page faults stay unanswered: the device holds their descriptors.
 *
 * held compare: the fault of the device stays unanswered until the core has the same one; prints "right".
 * held copy: nothing answers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES (128u << 10)
/* Here are no page faults of the kernel for this program: nothing can be held. */
#define IMPOSSIBLE 77

static int faults;
static char *pages;

/* Answers with zeros once a thread of this program has the fault, too. */
static void *answer(void *unused) {
    struct uffd_msg event;
    for (int seen = 0; seen < 2; seen++) {
        if (read(faults, &event, sizeof event) != sizeof event) abort();
    }
    struct uffdio_zeropage zero = {.range = {(unsigned long)pages, BYTES}};
    if (ioctl(faults, UFFDIO_ZEROPAGE, &zero) != 0) abort();
    return unused;
}

int main(int count, char **arguments) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (faults < 0) return errno == EPERM || errno == ENOSYS ? IMPOSSIBLE : 1;
    struct uffdio_api api = {.api = UFFD_API};
    if (ioctl(faults, UFFDIO_API, &api) != 0) return 1;
    int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, anonymous, -1, 0);
    struct uffdio_register area = {.range = {(unsigned long)pages, BYTES},
                                   .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (pages == MAP_FAILED || ioctl(faults, UFFDIO_REGISTER, &area) != 0) return 1;
    char *zeros = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, anonymous | MAP_POPULATE, -1, 0);
    if (zeros == MAP_FAILED || count != 2) return 1;
    zeros[BYTES - 1] = 1;
    if (strcmp(arguments[1], "copy") == 0) {
        memcpy(pages, zeros, BYTES);
        return 1;
    }
    pthread_t answering;
    pthread_create(&answering, NULL, answer, NULL);
    int result = memcmp(pages, zeros, BYTES);
    pthread_join(answering, NULL);
    puts(result < 0 ? "right" : "wrong");
    return result >= 0;
}
