/* What the examples share: a mover on the backend that the first argument names, and a wait. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <dray.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void check(const char *what, int code) {
    if (code < 0) {
        fprintf(stderr, "%s: %s (%s)\n", what, dray_strerror(code), dray_last_error());
        exit(1);
    }
}

static inline struct dray_mover *open_mover(int argc, char **argv) {
    struct dray_options options;
    struct dray_mover *mover = NULL;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.backend = argc > 1 ? (uint32_t)atoi(argv[1]) : (uint32_t)DRAY_BACKEND_ANY;
    check("open", dray_open(&options, &mover));
    return mover;
}

/* Makes the pages of a buffer present. A device that meets a page that the kernel has not supplied yet waits for the
 * core to do it, which takes time, or ends an operation of a batch with status 3 (a page fault). */
static inline void present(void *buffer, size_t bytes) {
    volatile unsigned char *page = (volatile unsigned char *)buffer;
    size_t n;

    for (n = 0; n < bytes; n += 4096)
        page[n] = page[n];
    page[bytes - 1] = page[bytes - 1];
}

/* The completion of the one operation in flight. */
static inline struct dray_completion finish(struct dray_mover *mover) {
    struct dray_completion done;

    check("wait", dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 30000000000));
    if (done.status != 1)
        fprintf(stderr, "status %s\n", dray_status_name(done.status));
    return done;
}

static inline int result(struct dray_mover *mover, const char *name, int right) {
    check("close", dray_close(mover));
    printf("%s: %s\n", name, right ? "right" : "wrong");
    return right ? 0 : 1;
}

#endif
