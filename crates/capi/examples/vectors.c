/* Lists of segments on both sides, which end where they like; copy and CRC of the same bytes as one operation. */
#include "example.h"
#include <errno.h>
#include <sys/uio.h>

static int run(struct dray_mover *mover, const struct dray_request *request, struct dray_outcome *done) {
    struct dray_op op = {{0}};

    check("start", dray_start(mover, &op, request));
    return dray_op_wait(&op, done, 0) == 1;
}

int main(int argc, char **argv) {
    struct dray_mover *mover = open_mover(argc, argv);
    char one[] = "123", two[] = "456789", first[5] = "", second[5] = "";
    struct iovec from[3] = {{one, 3}, {NULL, 0}, {two, 6}}, to[2] = {{first, 4}, {second, 5}};
    struct dray_request request;
    struct dray_outcome done;
    struct dray_op op = {{0}};
    int right;

    check("share", dray_share(mover));
    memset(&request, 0, sizeof request);
    request.size = sizeof request;
    request.operation = DRAY_OPERATION_COPY_CRC32C;
    request.sources = (const struct dray_vector *)from;
    request.source_count = 3;
    request.destinations = (const struct dray_vector *)to;
    request.destination_count = 2;
    right = run(mover, &request, &done) && done.completion.status == 1;
    right &= done.completion.crc == 0xe3069283u && done.device_bytes + done.core_bytes == 9;
    right &= memcmp(first, "1234", 4) == 0 && memcmp(second, "56789", 5) == 0;

    /* What an operation does not give is 0, and why it was the core has a text. */
    right &= done.completion.delta_bytes == 0 && done.completion.source.reference == 0;
    right &= strlen(dray_core_reason_name(done.core_reason)) > 0;
    right &= strcmp(dray_queue_lost_name(done.completion.queue_lost), "the queue executes") == 0;

    /* As _mm_crc32_u8 leaves it, from a register of 0. */
    request.operation = DRAY_OPERATION_CRC32C;
    request.value = dray_crc32c_register(0);
    right &= run(mover, &request, &done);
    right &= dray_crc32c_register((uint32_t)done.completion.crc) == 0x58e3fa20u;

    request.operation = DRAY_OPERATION_COMPARE;
    right &= run(mover, &request, &done) && done.completion.result == 0;
    second[4] = 'x';
    right &= run(mover, &request, &done) && done.completion.result == 1;
    /* A device says where the bytes that it compares at a time begin. */
    right &= done.completion.bytes_completed <= 8;

    to[1].iov_len = 4;
    right &= dray_start(mover, &op, &request) == -EINVAL && strstr(dray_last_error(), "9 bytes") != NULL;
    return result(mover, "vectors", right);
}
