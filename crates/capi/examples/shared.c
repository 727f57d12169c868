/* Threads that share a mover: 80 000 operations from four of them, each awaited by its handle, none refused; an event loop;
 * cancel and time-out. */
#include "example.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>

enum { THREADS = 4, AT_ONCE = 32, BYTES = 256 };

static struct dray_mover *mover;
/* Of each thread; the second argument. */
static size_t ops = 20000;

static struct dray_request copy_of(void *to, const void *from, size_t bytes) {
    struct dray_request request;

    memset(&request, 0, sizeof request);
    request.size = sizeof request;
    request.operation = DRAY_OPERATION_COPY_CRC32C;
    request.source = from;
    request.destination = to;
    request.bytes = bytes;
    return request;
}

/* Copies with a CRC, waits for each, and counts what is wrong. */
static void *copies(void *argument) {
    unsigned char seed = *(unsigned char *)argument;
    struct dray_op handles[AT_ONCE];
    unsigned char from[AT_ONCE][BYTES], to[AT_ONCE][BYTES];
    size_t wrong = 0, n, round;

    memset(handles, 0, sizeof handles);
    memset(to, 0, sizeof to);
    for (round = 0; round < ops / AT_ONCE; round++) {
        for (n = 0; n < AT_ONCE; n++) {
            struct dray_request request = copy_of(to[n], from[n], BYTES);

            memset(from[n], (int)(seed + round + n), BYTES);
            request.user_data = n;
            wrong += dray_start(mover, &handles[n], &request) != 0;
        }
        for (n = 0; n < AT_ONCE; n++) {
            struct dray_outcome done;

            wrong += dray_op_wait(&handles[n], &done, 0) != 1 || done.completion.status != 1;
            wrong += done.completion.user_data != n || memcmp(from[n], to[n], BYTES) != 0;
        }
    }
    return (void *)wrong;
}

/* Two threads may wait for one handle. */
static void *waits(void *op) {
    return dray_op_wait((struct dray_op *)op, NULL, 0) == 1 ? NULL : op;
}

static int threads_share(void) {
    static unsigned char seeds[THREADS] = {0, 50, 100, 150};
    pthread_t threads[THREADS];
    int right = 1, n;

    for (n = 0; n < THREADS; n++)
        right &= pthread_create(&threads[n], NULL, copies, &seeds[n]) == 0;
    for (n = 0; n < THREADS; n++) {
        void *wrong;

        right &= pthread_join(threads[n], &wrong) == 0 && wrong == NULL;
    }
    return right;
}

static int event_loop(void) {
    static struct dray_op handles[8];
    static unsigned char from[8][64], to[8][64];
    struct pollfd event;
    size_t n, ended = 0;
    int right = 1;

    event.fd = dray_event_fd(mover);
    event.events = POLLIN;
    right &= event.fd >= 0;
    for (n = 0; n < 8; n++) {
        struct dray_request request = copy_of(to[n], from[n], 64);

        request.listed = 1;
        memset(from[n], (int)n + 1, 64);
        check("start", dray_start(mover, &handles[n], &request));
    }
    while (ended < 8) {
        struct dray_op *taken[3];
        int count;

        right &= poll(&event, 1, 30000) == 1;
        count = dray_ended(mover, taken, 3);
        check("ended", count);
        for (n = 0; n < (size_t)count; n++)
            right &= dray_op_poll(taken[n], NULL) == 1;
        ended += (size_t)count;
    }
    right &= poll(&event, 1, 0) == 0;
    return right && memcmp(from, to, sizeof from) == 0;
}

/* Whatever became of it, handle and buffers are ours after the release. */
static int cancelled_or_done(void) {
    struct dray_op op = {{0}};
    unsigned char from[64] = {7}, to[64] = {0};
    struct dray_request request = copy_of(to, from, sizeof from);
    struct dray_outcome done;
    int right, waited, cancelled;

    right = dray_op_poll(&op, NULL) == -ENOENT && dray_op_release(&op) == 0;
    check("start", dray_start(mover, &op, &request));
    cancelled = dray_op_cancel(&op);
    right &= cancelled == 0 || cancelled == -EALREADY;
    waited = dray_op_wait(&op, &done, 1);
    right &= waited == 1 || waited == -ETIMEDOUT;
    right &= dray_op_release(&op) == 0 && dray_op_poll(&op, &done) == 1;
    if (cancelled == 0)
        return right && done.completion.withdrawn == 1 && to[0] == 0;
    return right && done.completion.status == 1 && to[0] == 7;
}

int main(int argc, char **argv) {
    static struct dray_op op;
    unsigned char byte[2] = {1, 0};
    struct dray_request request = copy_of(byte + 1, byte, 1);
    pthread_t threads[2];
    int right, n;

    if (argc > 2)
        ops = (size_t)atoi(argv[2]);
    mover = open_mover(argc, argv);
    right = dray_start(mover, &op, &request) == -ENOTSUP;
    check("share", dray_share(mover));
    right &= dray_noop(mover, 0) == -EBUSY && dray_share(mover) == -EBUSY;
    right &= threads_share() && event_loop();
    for (n = 0; n < 100; n++)
        right &= cancelled_or_done();
    check("start", dray_start(mover, &op, &request));
    for (n = 0; n < 2; n++)
        right &= pthread_create(&threads[n], NULL, waits, &op) == 0;
    for (n = 0; n < 2; n++) {
        void *failed;

        right &= pthread_join(threads[n], &failed) == 0 && failed == NULL;
    }
    n = result(mover, "shared", right && byte[1] == 1);
    return n || dray_start(mover, &op, &request) != -EBADF || dray_event_fd(mover) != -EBADF;
}
