/* What is wrong has a code and a text, and changes nothing. */
#include "example.h"
#include <errno.h>
#include <pthread.h>

#define EXPECT(call, expected)                                                           \
    do {                                                                                 \
        int code = (call);                                                               \
        if (code != -(expected)) {                                                       \
            fprintf(stderr, "%s: %d (%s)\n", #call, code, dray_last_error());            \
            return 1;                                                                    \
        }                                                                                \
    } while (0)

static struct dray_mover *shared;
static int busy;

/* Opens and uses the same mover as main. */
static void *other(void *nothing) {
    int n;

    for (n = 0; n < 20000; n++) {
        struct dray_completion done;
        int code = dray_poll(shared, &done, 1);
        if (code == -EBUSY)
            __atomic_fetch_add(&busy, 1, __ATOMIC_RELAXED);
        else if (code < 0)
            return &busy;
    }
    return nothing;
}

int main(int argc, char **argv) {
    static unsigned char buffer[64];
    struct { struct dray_options options; char later[16]; } newer;
    struct dray_options options;
    struct dray_completion done;
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_mover *never = NULL;
    struct dray_dif dif;
    pthread_t thread;
    void *failed;
    int n;

    present(buffer, sizeof buffer);
    memset(&options, 0, sizeof options);
    EXPECT(dray_open(NULL, &never), EINVAL);
    EXPECT(dray_open(&options, &never), EINVAL);
    options.size = sizeof options;
    EXPECT(dray_open(&options, NULL), EINVAL);
    options.backend = 77;
    EXPECT(dray_open(&options, &never), EINVAL);
    options.backend = DRAY_BACKEND_HARDWARE;
    options.queue = "wq77.77";
    EXPECT(dray_open(&options, &never), ENODEV);
    /* A later version's options: what this library does not know must be 0. */
    memset(&newer, 0, sizeof newer);
    newer.options.size = sizeof newer;
    newer.options.backend = DRAY_BACKEND_CPU;
    check("newer", dray_open(&newer.options, &never));
    check("close", dray_close(never));
    newer.later[3] = 1;
    EXPECT(dray_open(&newer.options, &never), EINVAL);

    EXPECT(dray_submit(NULL), EINVAL);
    EXPECT(dray_copy(NULL, buffer, buffer, 1, 0), EINVAL);
    EXPECT(dray_copy(mover, NULL, buffer, 1, 0), EINVAL);
    EXPECT(dray_copy(mover, buffer, NULL, 1, 0), EINVAL);
    EXPECT(dray_fill(mover, buffer, 1, 0, 0), EINVAL);
    EXPECT(dray_crc32c(mover, NULL, 1, 0, 0), EINVAL);
    /* Sizes have all their bits: this is no copy of 8 bytes. */
    EXPECT(dray_copy(mover, buffer, buffer + 32, ((size_t)1 << 32) + 8, 0), ENOTSUP);
    EXPECT(dray_create_delta(mover, buffer, buffer, 8, buffer, (size_t)1 << 32, 0), ENOTSUP);
    EXPECT(dray_copy(mover, buffer, buffer + 32, SIZE_MAX, 0), ENOTSUP);
    EXPECT(dray_dif_check(mover, buffer, 64, NULL, 0), EINVAL);
    memset(&dif, 0, sizeof dif);
    dif.size = sizeof dif;
    dif.block_bytes = 513;
    EXPECT(dray_dif_check(mover, buffer, 64, &dif, 0), EINVAL);
    EXPECT(dray_wait(mover, &done, 0, DRAY_WAIT_POLICY_YIELD, 0), EINVAL);
    EXPECT(dray_wait(mover, NULL, 1, DRAY_WAIT_POLICY_YIELD, 0), EINVAL);
    EXPECT(dray_wait(mover, &done, 1, 99, 0), EINVAL);
    /* Nothing is in flight: a wait would have no end. */
    EXPECT(dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 1000000), ENOENT);
    EXPECT(dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 0), ENOENT);
    EXPECT(dray_batch_end(mover), ENOENT);
    EXPECT(dray_batch_fence(mover), ENOENT);
    check("begin", dray_batch_begin(mover));
    EXPECT(dray_batch_begin(mover), EALREADY);
    check("cancel", dray_batch_cancel(mover));

    /* Overlapping and uneven operands: the status of the specification. */
    check("copy_crc32c", dray_copy_crc32c(mover, buffer + 1, buffer, 32, 0, 0));
    check("wait", dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 0));
    if (done.status != 0x16)
        return 1;
    /* No executor takes these, so that they are refused at once. */
    EXPECT(dray_create_delta(mover, buffer, buffer + 8, 9, buffer + 32, 80, 0), EINVAL);
    EXPECT(dray_dualcast(mover, buffer, buffer + 8, buffer + 16, 8, 0), EINVAL);
    dif.block_bytes = 512;
    EXPECT(dray_dif_insert(mover, buffer, buffer, 500, &dif, 0), EINVAL);

    /* All slots taken. */
    for (n = 0; (n = dray_noop(mover, 0)) == 0;)
        ;
    if (n != -EAGAIN)
        return 1;
    while ((n = dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 30000000000)) == 1)
        ;
    if (n != -ENOENT)
        return 1;

    /* Two threads: one of them gets an error, nothing is lost. */
    shared = mover;
    if (pthread_create(&thread, NULL, other, NULL) != 0)
        return 1;
    for (n = 0; n < 20000; n++) {
        int code = dray_slots(mover);
        if (code != -EBUSY && code != 128)
            return 1;
    }
    pthread_join(thread, &failed);
    if (failed != NULL)
        return 1;

    /* A handle that was closed is known as such. */
    check("close", dray_close(mover));
    EXPECT(dray_copy(mover, buffer, buffer, 1, 0), EBADF);
    EXPECT(dray_close(mover), EBADF);
    printf("bad input: right\n");
    return 0;
}
