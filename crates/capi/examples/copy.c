/* Copies, compares and sums a buffer on the backend that the first argument names. */
#include <dray.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, int code) {
    fprintf(stderr, "%s: %s (%s)\n", what, dray_strerror(code), dray_last_error());
    return 1;
}

int main(int argc, char **argv) {
    char digits[] = "123456789";
    static unsigned char source[65536], target[65536];
    struct dray_options options;
    struct dray_mover *mover;
    struct dray_completion done;
    int code;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.slots = 16;
    options.backend = argc > 1 ? (uint32_t)atoi(argv[1]) : (uint32_t)DRAY_BACKEND_CPU;
    memset(source, 7, sizeof source);
    memset(target, 1, sizeof target);
    if ((code = dray_open(&options, &mover)) != 0)
        return fail("open", code);
    if ((code = dray_copy(mover, target, source, sizeof source, 42)) != 0)
        return fail("copy", code);
    if ((code = dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_PAUSE, 0)) != 1)
        return fail("wait", code);
    printf("copy %u: status %u, executor %u\n", (unsigned)done.user_data, done.status, done.executor);
    if (done.status != 1 || memcmp(source, target, sizeof source) != 0)
        return 1;
    target[4096] = 8;
    if ((code = dray_compare(mover, source, target, sizeof source, 43)) != 0)
        return fail("compare", code);
    if ((code = dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_YIELD, 0)) != 1)
        return fail("wait", code);
    printf("compare: result %u at %u\n", done.result, done.bytes_completed);
    if ((code = dray_crc32c(mover, digits, 9, 0, 44)) != 0)
        return fail("crc", code);
    if ((code = dray_wait(mover, &done, 1, DRAY_WAIT_POLICY_SPIN, 0)) != 1)
        return fail("wait", code);
    printf("crc32c: %08x\n", (unsigned)done.crc);
    /* What is wrong has a code and a text. */
    printf("null: %s\n", dray_strerror(dray_submit(NULL)));
    dray_close(mover);
    return 0;
}
