/* Copies a buffer and takes its CRC32C. */
#include "example.h"

int main(int argc, char **argv) {
    char digits[] = "123456789";
    char target[9];
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    check("copy_crc32c", dray_copy_crc32c(mover, target, digits, 9, 0, 0));
    done = finish(mover);
    return result(mover, "copy_crc32c", done.status == 1 && done.crc == 0xe3069283 && memcmp(target, digits, 9) == 0);
}
