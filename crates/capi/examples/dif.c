/* Adds integrity fields, checks them, makes new ones, takes them away, and makes them apart from the data. */
#include "example.h"
#include <errno.h>

int main(int argc, char **argv) {
    static unsigned char data[8 * 512], with_fields[8 * 520], updated[8 * 520], back[8 * 512];
    static uint64_t fields[8];
    struct dray_dif dif;
    int checked, code;
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    present(with_fields, sizeof with_fields);
    present(updated, sizeof updated);
    present(back, sizeof back);
    present(fields, sizeof fields);
    memset(data, 5, sizeof data);
    memset(&dif, 0, sizeof dif);
    dif.size = sizeof dif;
    dif.block_bytes = 512;
    dif.source.reference = dif.destination.reference = 9;
    check("dif_insert", dray_dif_insert(mover, with_fields, data, sizeof data, &dif, 0));
    done = finish(mover);
    checked = done.status == 1 && done.destination.reference == 17;
    check("dif_check", dray_dif_check(mover, with_fields, sizeof with_fields, &dif, 0));
    done = finish(mover);
    checked = checked && done.status == 1;
    dif.destination.reference = 100;
    check("dif_update", dray_dif_update(mover, updated, with_fields, sizeof with_fields, &dif, 0));
    done = finish(mover);
    checked = checked && done.status == 1;
    dif.source.reference = 100;
    check("dif_strip", dray_dif_strip(mover, back, updated, sizeof updated, &dif, 0));
    done = finish(mover);
    checked = checked && done.status == 1;
    /* The fields alone are those that stand between the blocks; a device of version 2 makes them. */
    code = dray_dix_generate(mover, fields, data, sizeof data, &dif, 0);
    if (code == 0) {
        unsigned n;

        checked = checked && finish(mover).status == 1;
        for (n = 0; n < 8; n++)
            checked = checked && memcmp(&fields[n], &updated[n * 520 + 512], 8) == 0;
    } else {
        checked = checked && code == -ENOTSUP;
    }
    return result(mover, "dif", checked && memcmp(back, data, sizeof back) == 0);
}
