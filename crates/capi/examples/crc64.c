/* CRC-64 of a buffer, where the mover has it. */
#include "example.h"

int main(int argc, char **argv) {
    char digits[] = "123456789";
    unsigned char target[9];
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    if (dray_crc64(mover, digits, 9, 0, 0) != 0) {
        /* A device of version 1 refuses it by name. */
        printf("crc64: %s\n", dray_last_error());
        check("close", dray_close(mover));
        return 0;
    }
    done = finish(mover);
    check("copy_crc64", dray_copy_crc64(mover, target, digits, 9, 0, 0));
    done = finish(mover);
    return result(mover, "crc64", done.status == 1 && done.crc == 0xae8b14860a799888 && memcmp(target, digits, 9) == 0);
}
