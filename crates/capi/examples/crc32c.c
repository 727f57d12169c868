/* CRC32C of a buffer, of a buffer in two parts, and as the instruction CRC32 computes it. */
#include "example.h"

static char digits[] = "123456789";

static uint32_t crc(struct dray_mover *mover, const char *data, size_t bytes, uint32_t seed) {
    check("crc32c", dray_crc32c(mover, data, bytes, seed, 0));
    return (uint32_t)finish(mover).crc;
}

/* The register after so many bytes, bit by bit. */
static uint32_t by_bits(uint32_t crc_register, const char *data, size_t bytes) {
    size_t bit;

    for (bit = 0; bit < 8 * bytes; bit++) {
        crc_register ^= (uint32_t)(data[bit / 8] >> bit % 8) & 1;
        crc_register = (crc_register >> 1) ^ (0x82f63b78 & (0 - (crc_register & 1)));
    }
    return crc_register;
}

int main(int argc, char **argv) {
    struct dray_mover *mover = open_mover(argc, argv);
    uint32_t first;
    int right;

    right = crc(mover, digits, 9, 0) == 0xe3069283;
    first = crc(mover, digits, 4, 0);
    right &= crc(mover, digits + 4, 5, first) == 0xe3069283;
    right &= by_bits(0, digits, 9) == 0x58e3fa20;
    right &= ~crc(mover, digits, 9, 0xffffffff) == by_bits(0, digits, 9);
    first = by_bits(0, digits, 4);
    right &= ~crc(mover, digits + 4, 5, ~first) == by_bits(0, digits, 9);
    return result(mover, "crc32c", right);
}
