/*
 * The submit and poll API that is proposed for Intel's DTO (pull request 34), by dray.
 *
 * Programs written for it are compiled with this header and linked with -ldray_dto. An operation lies in the caller's
 * memory, aligned to 64 bytes, and may be polled by any thread. From a submission on until its end nothing of it, and
 * nothing that it names, may be changed or freed.
 *
 * What a device ends at a page fault, or refuses, the core finishes in the poll that finds it: DTO_ASYNC_FAILED is not
 * returned for memory that the process can access.
 */
#ifndef DTO_H
#define DTO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dto_async_op {
    unsigned char opaque[192] __attribute__((aligned(64)));
} dto_async_op;

/* What is written goes to the cache, where the device can. */
#define DTO_SUBMIT_CC (1u << 0)
/* The device waits for pages. Here the core finishes in any case: of no effect. */
#define DTO_SUBMIT_BOF (1u << 1)

/* Of a submission: it is under way, or nothing was done (no shared work queue, none with room, no bytes, more than the
 * work queues take, an operation that is not aligned to 32 bytes, DTO_USESTDC_CALLS=1). */
#define DTO_ASYNC_SUBMITTED 0
#define DTO_ASYNC_FALLBACK (-1)

/* Of a poll. What is not DTO_ASYNC_PENDING stays; DTO_ASYNC_FAILED also where nothing was submitted, and in a child by
 * fork(2) of the process that submitted. */
#define DTO_ASYNC_PENDING 0
#define DTO_ASYNC_DONE 1
#define DTO_ASYNC_FAILED (-1)

int dto_submit_memcpy(dto_async_op *op, void *dest, const void *src, size_t n, unsigned int flags);
int dto_submit_memset(dto_async_op *op, void *dest, int c, size_t n, unsigned int flags);
/* With the CRC-32C of the data, as the header of the proposal has it: of "123456789" it is e3069283, and not what
 * _mm_crc32 leaves, of which the text of the proposal speaks. */
int dto_submit_memcpy_crc(dto_async_op *op, void *dest, const void *src, size_t n, unsigned int flags);
int dto_submit_crc(dto_async_op *op, const void *src, size_t n, unsigned int flags);

int dto_async_poll(dto_async_op *op);
/* After DTO_ASYNC_DONE. */
uint32_t dto_async_crc_val(const dto_async_op *op);

/* 2 to DTO_BATCH_MAX copies as one descriptor, by one thread at a time. DTO_ASYNC_DONE: all are done. */
#define DTO_BATCH_MAX 64
typedef struct dto_batch_op dto_batch_op;

dto_batch_op *dto_batch_op_new(void);
/* Waits for a batch that is under way. */
void dto_batch_op_free(dto_batch_op *op);
int dto_submit_batch_copy(dto_batch_op *op, void **dst, void **src, size_t *sizes, int count, unsigned int flags);
int dto_batch_poll(dto_batch_op *op);

#ifdef __cplusplus
}
#endif

#endif /* DTO_H */
