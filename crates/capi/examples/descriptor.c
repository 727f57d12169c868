/* A descriptor as linux/idxd.h has it. The completion record is the mover's. */
#include "example.h"
#include <errno.h>
#include <linux/idxd.h>

int main(int argc, char **argv) {
    static unsigned char source[4096], target[4096];
    struct dray_mover *mover = open_mover(argc, argv);
    struct dsa_hw_desc descriptor;
    struct dray_completion done;
    int right, bit;

    memset(source, 3, sizeof source);
    memset(target, 4, sizeof target);
    memset(&descriptor, 0, sizeof descriptor);
    descriptor.opcode = DSA_OPCODE_MEMMOVE;
    descriptor.flags = IDXD_OP_FLAG_CC | IDXD_OP_FLAG_RCR | IDXD_OP_FLAG_CRAV;
    /* Where a record would be written, if this were not replaced. */
    descriptor.completion_addr = (uintptr_t)&source[0];
    descriptor.src_addr = (uintptr_t)source;
    descriptor.dst_addr = (uintptr_t)target;
    descriptor.xfer_size = sizeof source;
    check("descriptor", dray_enqueue_descriptor(mover, &descriptor, 11));
    done = finish(mover);
    right = done.status == 1 && done.user_data == 11 && source[0] == 3 && memcmp(source, target, sizeof source) == 0;

    /* ENQCMD faults if any bit of the first word is set. */
    for (bit = 0; bit < 32; bit += 1) {
        uint32_t word = UINT32_C(1) << bit;
        memcpy(&descriptor, &word, sizeof word);
        right &= dray_enqueue_descriptor(mover, &descriptor, 0) == -EINVAL;
        right &= strstr(dray_last_error(), "first 32-bit word") != NULL;
    }
    memset(&descriptor, 0, sizeof(uint32_t));

    descriptor.opcode = DSA_OPCODE_BATCH;
    right &= dray_enqueue_descriptor(mover, &descriptor, 0) == -EINVAL;
    descriptor.opcode = 0x7e;
    right &= dray_enqueue_descriptor(mover, &descriptor, 0) == -EINVAL;
    right &= strstr(dray_last_error(), "0x7e") != NULL;
    right &= dray_enqueue_descriptor(mover, NULL, 0) == -EINVAL;
    return result(mover, "descriptor", right);
}
