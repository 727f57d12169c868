/*
 * Copies, fills and sums while the core goes on, by submit and poll.
 *
 *     cc submit.c $(pkg-config --cflags --libs dray-dto)
 *     LD_LIBRARY_PATH=... ./a.out
 *
 * Prints what was submitted; without a shared work queue the core does all of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dto.h"

#define BYTES (1 << 18)
#define COUNT 8

static int wrong, submitted;

static void expect(int is, const char *what)
{
    if (!is) {
        printf("wrong: %s\n", what);
        wrong = 1;
    }
}

/* Whether the operation is done by the device; else the caller does it. */
static int done(int answer, dto_async_op *op)
{
    int state;
    if (answer != DTO_ASYNC_SUBMITTED)
        return 0;
    ++submitted;
    while ((state = dto_async_poll(op)) == DTO_ASYNC_PENDING)
        ;
    expect(state == DTO_ASYNC_DONE && dto_async_poll(op) == DTO_ASYNC_DONE, "an operation that is done, twice");
    return 1;
}

int main(void)
{
    static dto_async_op op;
    unsigned char *from = (unsigned char *)malloc(BYTES), *to = (unsigned char *)malloc(BYTES);
    void *sources[COUNT], *destinations[COUNT];
    size_t sizes[COUNT], n;
    dto_batch_op *batch = dto_batch_op_new();

    for (n = 0; n < BYTES; ++n)
        from[n] = (unsigned char)(n * n >> 3);
    /* The destination's pages are not there: the core finishes. */
    if (!done(dto_submit_memcpy(&op, to, from, BYTES, DTO_SUBMIT_CC), &op))
        memcpy(to, from, BYTES);
    expect(!memcmp(from, to, BYTES), "a copy");
    if (!done(dto_submit_memset(&op, to, 0x1a5, BYTES - 3, DTO_SUBMIT_BOF), &op))
        memset(to, 0x1a5, BYTES - 3);
    expect(to[0] == 0xa5 && to[BYTES - 4] == 0xa5 && to[BYTES - 3] == from[BYTES - 3], "a fill");
    if (done(dto_submit_crc(&op, "123456789", 9, 0), &op))
        expect(dto_async_crc_val(&op) == 0xe3069283u, "a sum");
    if (done(dto_submit_memcpy_crc(&op, to, "123456789", 9, DTO_SUBMIT_CC), &op))
        expect(dto_async_crc_val(&op) == 0xe3069283u && !memcmp(to, "123456789", 9), "a sum of a copy");

    expect(dto_submit_memcpy(&op, to, from, 0, 0) == DTO_ASYNC_FALLBACK, "no bytes");
    expect(dto_async_poll(&op) == DTO_ASYNC_FAILED, "a poll of what was not submitted");
    expect(dto_submit_memcpy((dto_async_op *)(void *)((char *)&op + 8), to, from, 64, 0) == DTO_ASYNC_FALLBACK,
           "an operation that is not aligned");
    for (n = 0; n < COUNT; ++n) {
        sources[n] = from + n * 4096;
        destinations[n] = to + n * 4096;
        sizes[n] = 4096 - n;
    }
    memset(to, 0, COUNT * 4096);
    expect(dto_submit_batch_copy(batch, destinations, sources, sizes, 1, 0) == DTO_ASYNC_FALLBACK, "a batch of one");
    expect(dto_batch_poll(batch) == DTO_ASYNC_FAILED, "a poll of a batch that was not submitted");
    if (dto_submit_batch_copy(batch, destinations, sources, sizes, COUNT, 0) == DTO_ASYNC_SUBMITTED) {
        ++submitted;
        while (dto_batch_poll(batch) == DTO_ASYNC_PENDING)
            ;
        for (n = 0; n < COUNT; ++n)
            expect(!memcmp(sources[n], destinations[n], sizes[n]), "a copy of a batch");
        expect(to[COUNT * 4096 - 1] == 0, "and nothing behind it");
    }
    dto_batch_op_free(batch);
    free(from);
    free(to);
    printf("%d submitted, %s\n", submitted, wrong ? "some are wrong" : "all right");
    return wrong;
}
