/* CRC32C of a buffer. */
#include "example.h"

int main(int argc, char **argv) {
    char digits[] = "123456789";
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    check("crc32c", dray_crc32c(mover, digits, 9, 0, 0));
    done = finish(mover);
    return result(mover, "crc32c", done.status == 1 && done.crc == 0xe3069283);
}
