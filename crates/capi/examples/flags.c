/* Flags of one operation: how a CRC is computed, whether the device waits for pages, where it writes to. */
#include "example.h"
#include <errno.h>

/* CRC32C of "123456789", with the flags that were given to the mover. */
static uint32_t crc_of_digits(struct dray_mover *mover) {
    char digits[] = "123456789";

    check("crc32c", dray_crc32c(mover, digits, 9, 0, 0));
    return (uint32_t)finish(mover).crc;
}

int main(int argc, char **argv) {
    static unsigned char source[4096], target[4096];
    struct dray_mover *mover = open_mover(argc, argv);
    uint32_t plain, bypassed;
    int right, code;

    memset(source, 3, sizeof source);
    memset(target, 4, sizeof target);
    plain = crc_of_digits(mover);
    check("flags", dray_next_flags(mover, DRAY_FLAG_CRC_BYPASS_INVERSION));
    /* A call that fails leaves them to the next one. */
    right = dray_crc32c(mover, NULL, 9, 0, 0) == -EINVAL;
    bypassed = crc_of_digits(mover);
    right &= plain == 0xe3069283 && bypassed != plain && crc_of_digits(mover) == plain;
    check("flags", dray_next_flags(mover, DRAY_FLAG_CACHE_CONTROL | DRAY_FLAG_DESTINATION_READBACK));
    check("copy", dray_copy(mover, target, source, sizeof source, 0));
    right &= finish(mover).status == 1 && memcmp(source, target, sizeof source) == 0;

    /* A queue of this machine need not allow it. */
    code = dray_next_flags(mover, DRAY_FLAG_BLOCK_ON_FAULT);
    right &= code == 0 || (code == -ENOTSUP && strstr(dray_last_error(), "block_on_fault") != NULL);
    if (code == 0) {
        check("fill", dray_fill(mover, target, 5, sizeof target, 0));
        right &= finish(mover).status == 1 && target[0] == 5;
    }
    /* The completion record is the mover's. */
    right &= dray_next_flags(mover, 1 << 3) == -EINVAL;
    return result(mover, "flags", right);
}
