/* Records where two buffers differ, and applies the record to a third. */
#include "example.h"

int main(int argc, char **argv) {
    static uint64_t old_data[512], new_data[512], replica[512], record[1024];
    uint32_t bytes;
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    present(old_data, sizeof old_data);
    present(new_data, sizeof new_data);
    present(replica, sizeof replica);
    present(record, sizeof record);
    new_data[100] = 7;
    check("create_delta", dray_create_delta(mover, old_data, new_data, sizeof old_data, record, sizeof record, 0));
    done = finish(mover);
    bytes = done.delta_bytes;
    check("apply_delta", dray_apply_delta(mover, replica, sizeof replica, record, bytes, 0));
    done = finish(mover);
    return result(mover, "delta", done.status == 1 && bytes == 10 && memcmp(replica, new_data, sizeof replica) == 0);
}
