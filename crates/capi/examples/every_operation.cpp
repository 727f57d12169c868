// Every operation by dray.hpp, on the backend that the first argument names.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dray.hpp>

static int failed = 0;

static void expect(const char *what, bool right) {
    if (!right) {
        std::fprintf(stderr, "%s: wrong\n", what);
        failed = 1;
    }
}

int main(int argc, char **argv) {
    auto who = argc > 1 ? static_cast<dray::backend>(std::atoi(argv[1])) : dray::backend::any;
    dray::mover mover(who, 16);
    alignas(4096) static unsigned char a[4096], b[4096], c[4096];
    alignas(8) static unsigned char record[8192], fields[8 * 520];
    char digits[] = "123456789";
    // Pages that are not present are page faults of a device.
    for (auto *buffer : {a, b, c})
        std::memset(buffer, 0, sizeof a);
    std::memset(record, 0, sizeof record);
    std::memset(fields, 0, sizeof fields);
    auto wait = [&] { return mover.wait(dray::wait_policy::yield, std::chrono::seconds(30)); };

    mover.noop(5);
    expect("noop", wait().user_data() == 5);
    mover.fill(a, 0x0101010101010101, sizeof a);
    expect("fill", wait().ok() && a[4095] == 1);
    mover.copy(b, a, sizeof a);
    expect("copy", wait().ok() && std::memcmp(a, b, sizeof a) == 0);
    mover.compare(a, b, sizeof a);
    expect("compare", wait().equal());
    b[7] = 0;
    mover.compare(a, b, sizeof a);
    auto different = wait();
    expect("compare", different.ok() && !different.equal() && different.bytes_completed() == 7);
    mover.compare_pattern(a, 0x0101010101010101, sizeof a);
    expect("compare_pattern", wait().equal());
    mover.dualcast(b, c, a, sizeof a);
    expect("dualcast", wait().ok() && std::memcmp(b, c, sizeof b) == 0);
    mover.crc32c(digits, 9);
    expect("crc32c", wait().crc32c() == 0xe3069283);
    mover.copy_crc32c(c, digits, 9);
    expect("copy_crc32c", wait().crc32c() == 0xe3069283 && std::memcmp(c, digits, 9) == 0);
    try {
        mover.crc64(digits, 9);
        expect("crc64", wait().crc64() == 0xae8b14860a799888);
        mover.copy_crc64(c, digits, 9);
        expect("copy_crc64", wait().crc64() == 0xae8b14860a799888);
    } catch (const dray::error &error) {
        // A device of version 1 has none.
        expect("crc64", error.code() == -ENOTSUP);
    }
    mover.fill(b, 0, sizeof b);
    expect("fill", wait().ok());
    mover.create_delta(b, a, sizeof a, record, sizeof record);
    auto delta = wait();
    expect("create_delta", delta.ok() && delta.delta_bytes() == 5120);
    mover.apply_delta(b, sizeof b, record, delta.delta_bytes());
    expect("apply_delta", wait().ok() && std::memcmp(a, b, sizeof a) == 0);
    dray::dif how(512);
    mover.dif_insert(fields, a, sizeof a, how);
    expect("dif_insert", wait().ok());
    mover.dif_check(fields, sizeof fields, how);
    expect("dif_check", wait().ok());
    mover.dif_update(record, fields, sizeof fields, how);
    expect("dif_update", wait().ok() && std::memcmp(record, fields, sizeof fields) == 0);
    mover.dif_strip(b, fields, sizeof fields, how);
    expect("dif_strip", wait().ok() && std::memcmp(a, b, sizeof a) == 0);
    try {
        mover.dix_generate(record, a, sizeof a, how);
        expect("dix_generate", wait().ok() && std::memcmp(record, fields + 512, 8) == 0);
    } catch (const dray::error &error) {
        expect("dix_generate", error.code() == -ENOTSUP);
    }
    mover.next_flags(dray::flag::crc_bypass_inversion);
    mover.crc32c(digits, 9);
    expect("flags", wait().crc32c() != 0xe3069283);
    mover.cache_flush(a, sizeof a);
    expect("cache_flush", wait().ok());
    {
        auto batch = mover.begin_batch();
        mover.fill(a, 0, sizeof a, 1);
        batch.fence();
        mover.copy(c, a, sizeof a, 2);
        expect("batch", batch.submit() == 2);
    }
    expect("batch", wait().ok() && wait().ok() && c[0] == 0);
    {
        auto forgotten = mover.begin_batch();
        mover.noop();
    }
    try {
        mover.copy(nullptr, a, 1);
        expect("null", false);
    } catch (const dray::error &error) {
        expect("null", error.code() == -EINVAL);
    }
    {
        dray::channels_options options(dray::backend::virtual_device);
        options.virtual_queues = 2;
        options.stripe_bytes = 1024;
        options.set(dray::require::device).set(dray::choice::device).set(dray::page_fault::return_fault);
        options.set(dray::lost_queue_policy::error).set(dray::full_queue::core);
        // A device is required, and the core would execute what finds the queues full.
        try {
            dray::channels refused(options);
            expect("channels_options", false);
        } catch (const dray::error &error) {
            expect("channels_options", error.code() == -EINVAL);
        }
        options.set(dray::full_queue::error);
        expect("channels_options", options.require == DRAY_REQUIRE_DEVICE && options.choice == DRAY_CHOICE_DEVICE);
        expect("channels_options", options.page_fault == DRAY_PAGE_FAULT_RETURN);
        expect("channels_options", options.full_queue == DRAY_FULL_QUEUE_ERROR);
        expect("channels_options", options.lost_queue == DRAY_LOST_QUEUE_POLICY_ERROR);
        options.set(dray::page_fault::touch_and_resume).set(dray::full_queue::wait);
        dray::channels queues(options);
        static unsigned char from[65536], to[65536];
        std::memset(from, 3, sizeof from);
        queues.copy(to, from, sizeof from, 9);
        std::vector<dray::outcome> ended;
        while (ended.empty()) {
            queues.submit();
            ended = queues.poll_outcomes();
        }
        expect("channels", ended[0].completion().ok() && ended[0].completion().user_data() == 9);
        expect("channels", ended[0].stripes() == 2 && ended[0].device_bytes() == sizeof from);
        expect("channels", std::memcmp(from, to, sizeof from) == 0);
        expect("channels", ended[0].completion().queue_lost() == dray::queue_lost_reason::none && ended[0].moved() == 0);
        expect("excluded_queues", queues.excluded_queues().empty() && mover.excluded_queues().empty());
        // Nothing is in flight any more, and a wait would have no end.
        try {
            queues.wait_outcome(dray::wait_policy::yield, std::chrono::seconds(30));
            expect("wait_outcome", false);
        } catch (const dray::error &error) {
            expect("wait_outcome", error.code() == -ENOENT);
        }
        // A page list whose entries overlap themselves, and one that is copied.
        dray_page list[2] = {{from, to, 4096}, {from + 8192, to + 8192, 4096}};
        dray_page_state states[2];
        dray_page_list_row rows[16];
        dray::page_list_report report(states, rows, 16);
        dray::page_list_options how;
        how.dsa_copy_threshold = 1;
        std::memset(from, 4, sizeof from);
        queues.copy_page_list(list, 2, how, report);
        expect("report", states[0].not_copied_bytes == 0 && states[1].not_copied_bytes == 0 && report.row_count == 1);
        expect("report", static_cast<dray::page_reason>(rows[0].reason) == dray::page_reason::offloaded);
        expect("report", rows[0].bytes == 8192 && static_cast<dray::executor>(rows[0].executor) == dray::executor::virtual_device);
        list[1].destination = from + 8192 + 1;
        dray::page_list_statistics counted;
        counted.descriptors = 7;
        try {
            queues.copy_page_list(list, 2, how, report, &counted);
            expect("report", false);
        } catch (const dray::error &error) {
            expect("report", error.code() == -EINVAL && states[0].not_copied_bytes == 4096 && counted.descriptors == 0);
        }
    }
    dray_page page = {a, c, sizeof a};
    dray::page_list_statistics statistics;
    std::memset(a, 9, sizeof a);
    mover.copy_page_list(&page, 1, dray::page_list_options(), &statistics);
    expect("copy_page_list", std::memcmp(a, c, sizeof a) == 0 && statistics.below_threshold_bytes == sizeof a);
    // Work in flight goes along when a mover is moved, and a batch stays with its mover.
    static unsigned char large[1 << 20], copied[1 << 20], later[1 << 20];
    std::memset(large, 5, sizeof large);
    std::memset(copied, 0, sizeof copied);
    std::memset(later, 0, sizeof later);
    mover.copy(copied, large, sizeof large, 77);
    mover.submit();
    auto begun = mover.begin_batch();
    dray::mover moved(std::move(mover));
    moved.copy(later, large, sizeof large, 78);
    expect("moved", begun.submit() == 1 && moved.slots() == 16 && mover.get() == nullptr);
    std::uint64_t ids = 0;
    for (int n = 0; n < 2; n++) {
        dray::completion done;
        moved.wait(&done, 1, dray::wait_policy::yield, std::chrono::seconds(30));
        ids += done.ok() ? done.user_data() : 0;
    }
    expect("moved", ids == 77 + 78 && std::memcmp(later, large, sizeof large) == 0);
    try {
        mover.noop();
        expect("moved from", false);
    } catch (const dray::error &error) {
        expect("moved from", error.code() == -EINVAL);
    }
    try {
        moved.wait(dray::wait_policy::yield);
        expect("nothing in flight", false);
    } catch (const dray::error &error) {
        expect("nothing in flight", error.code() == -ENOENT);
    }
    // Another client can have the queue then.
    moved.close();
    // The destructor waits for what was submitted, also on the way of an exception.
    std::memset(copied, 1, sizeof copied);
    try {
        dray::mover scoped(who);
        auto forgotten = scoped.begin_batch();
        scoped.noop();
        forgotten = dray::batch();
        scoped.copy(copied, large, sizeof large);
        scoped.submit();
        throw 1;
    } catch (int) {
        expect("destroyed", std::memcmp(copied, large, sizeof large) == 0);
    }
    moved = dray::mover(who, 4);
    expect("assigned", moved.slots() == 4 && !moved.note().empty() && moved.poll().empty());
    // What is assigned to is closed: a dedicated queue is free for the next.
    moved = dray::mover(dray::backend::cpu, 2);
    dray::mover again(who, 8);
    expect("assigned", moved.slots() == 2 && again.slots() == 8);
    std::printf("every operation: %s\n", failed ? "wrong" : "right");
    return failed;
}
