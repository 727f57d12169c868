/* Adds integrity fields, checks them, makes new ones, and takes them away. */
#include "example.h"

int main(int argc, char **argv) {
    static unsigned char data[8 * 512], with_fields[8 * 520], updated[8 * 520], back[8 * 512];
    struct dray_dif dif;
    int checked;
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

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
    return result(mover, "dif", done.status == 1 && checked && memcmp(back, data, sizeof back) == 0);
}
