// Every operation without exceptions: calls return codes. On the backend that the first argument names.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dray.hpp>

static int failed = 0;

static void expect(int line, bool right) {
    if (!right) {
        std::fprintf(stderr, "line %d: wrong (%s)\n", line, dray_last_error());
        failed = 1;
    }
}

#define EXPECT(right) expect(__LINE__, (right))

static dray::completion finish(dray::nothrow_mover &mover) {
    dray::completion done;
    EXPECT(mover.wait(&done, 1, dray::wait_policy::yield, std::chrono::seconds(30)).value() == 1);
    return done;
}

int main(int argc, char **argv) {
    alignas(4096) static unsigned char a[4096], b[4096], c[4096];
    alignas(8) static unsigned char record[8192], fields[8 * 520];
    dray::options options(argc > 1 ? static_cast<dray::backend>(std::atoi(argv[1])) : dray::backend::any);
    dray::nothrow_mover mover;

    char digits[] = "123456789";
    // Pages that are not present are page faults of a device.
    for (unsigned char *buffer : {a, b, c})
        std::memset(buffer, 0, sizeof a);
    std::memset(record, 0, sizeof record);
    std::memset(fields, 0, sizeof fields);
    // What is closed has a code.
    EXPECT(mover.noop().value() == -EINVAL && mover.get() == nullptr && mover.note().empty());
    options.slots = 1u << 30;
    dray::code refused = mover.open(options);
    EXPECT(!refused.ok() && refused.value() == -EINVAL && std::strstr(dray_last_error(), "slots") != nullptr);
    EXPECT(std::strcmp(refused.text(), dray_strerror(-EINVAL)) == 0);
    options.slots = 8;
    EXPECT(mover.open(options).ok() && mover.slots().value() == 8 && !mover.note().empty());

    EXPECT(mover.noop(5).ok() && finish(mover).user_data() == 5);
    EXPECT(mover.fill(a, 0x0101010101010101, sizeof a).ok() && finish(mover).ok() && a[4095] == 1);
    EXPECT(mover.copy(b, a, sizeof a).ok() && finish(mover).ok() && std::memcmp(a, b, sizeof a) == 0);
    EXPECT(mover.compare(a, b, sizeof a).ok() && finish(mover).equal());
    EXPECT(mover.compare_pattern(a, 0x0101010101010101, sizeof a).ok() && finish(mover).equal());
    EXPECT(mover.dualcast(b, c, a, sizeof a).ok() && finish(mover).ok());
    EXPECT(mover.crc32c(digits, 9).ok() && finish(mover).crc32c() == 0xe3069283);
    EXPECT(mover.copy_crc32c(c, digits, 9).ok() && finish(mover).crc32c() == 0xe3069283);
    dray::code has = mover.crc64(digits, 9);
    EXPECT(has.ok() ? finish(mover).crc64() == 0xae8b14860a799888 : has.value() == -ENOTSUP);
    has = mover.copy_crc64(c, digits, 9);
    EXPECT(has.ok() ? finish(mover).crc64() == 0xae8b14860a799888 : has.value() == -ENOTSUP);
    std::memset(b, 0, sizeof b);
    EXPECT(mover.create_delta(b, a, sizeof a, record, sizeof record).ok());
    std::uint32_t bytes = finish(mover).delta_bytes();
    EXPECT(mover.apply_delta(b, sizeof b, record, bytes).ok() && finish(mover).ok());
    EXPECT(std::memcmp(a, b, sizeof a) == 0);
    dray::dif how(512);
    EXPECT(mover.dif_insert(fields, a, sizeof a, how).ok() && finish(mover).destination_tags().reference == 8);
    EXPECT(mover.dif_check(fields, sizeof fields, how).ok() && finish(mover).ok());
    EXPECT(mover.dif_update(record, fields, sizeof fields, how).ok() && finish(mover).ok());
    EXPECT(mover.dif_strip(b, fields, sizeof fields, how).ok() && finish(mover).ok());
    has = mover.dix_generate(record, a, sizeof a, how);
    EXPECT(has.ok() ? finish(mover).ok() && std::memcmp(record, fields + 512, 8) == 0 : has.value() == -ENOTSUP);
    EXPECT(mover.cache_flush(a, sizeof a).ok() && finish(mover).ok());
    EXPECT(mover.next_flags(dray::flag::cache_control | dray::flag::strict_ordering).ok());
    EXPECT(mover.fill(a, 7, sizeof a).ok() && finish(mover).ok());

    dray::nothrow_batch batch;
    EXPECT(mover.begin_batch(batch).ok() && mover.fill(a, 0, sizeof a, 1).ok() && batch.fence().ok());
    EXPECT(mover.copy(c, a, sizeof a, 2).ok() && batch.submit().value() == 2);
    EXPECT(finish(mover).ok() && finish(mover).ok() && c[0] == 0);

    // A batch without operations is over: its object ends no other.
    {
        dray::nothrow_batch empty;
        EXPECT(mover.begin_batch(empty).ok() && empty.submit().value() == -ENOENT);
        EXPECT(mover.begin_batch(batch).ok() && mover.noop().ok());
    }
    EXPECT(mover.noop().ok() && batch.submit().value() == 2);
    EXPECT(finish(mover).ok() && finish(mover).ok());

    dray_page page = {a, c, sizeof a}, none = {a, c, 0};
    std::memset(a, 9, sizeof a);
    EXPECT(mover.copy_page_list(&page, 1).ok() && std::memcmp(a, c, sizeof a) == 0);
    EXPECT(mover.copy_page_list(&none, 1).value() == -EINVAL);

    // A size has all its bits.
    EXPECT(mover.copy(b, a, (std::size_t{1} << 32) + 8).value() == -ENOTSUP);
    // No place for results, nothing in flight, all slots taken.
    EXPECT(mover.poll(nullptr, 1).value() == -EINVAL);
    dray::completion done;
    EXPECT(mover.wait(&done, 1).value() == -ENOENT);
    while (mover.noop().ok())
        ;
    EXPECT(mover.noop().value() == -EAGAIN);
    // Moved with work in flight: the work goes along, and what was there before is closed.
    dray::nothrow_mover other;
    EXPECT(other.open(dray::options(dray::backend::cpu)).ok());
    other = std::move(mover);
    EXPECT(mover.get() == nullptr && mover.submit().value() == -EINVAL);
    for (int n = 0; n < 8; n++)
        EXPECT(finish(other).ok());
    EXPECT(other.close().ok() && other.slots().value() == -EINVAL);

    dray::nothrow_channels queues;
    dray::channels_options several(dray::backend::virtual_device);
    dray::outcome outcome;
    several.virtual_queues = 2;
    EXPECT(queues.open(several).ok() && queues.copy(c, a, sizeof a).ok());
    EXPECT(queues.wait_outcomes(&outcome, 1, dray::wait_policy::yield, std::chrono::seconds(30)).value() == 1);
    EXPECT(outcome.completion().ok() && outcome.device_bytes() == sizeof a);
    EXPECT(!outcome.completion().withdrawn() && outcome.moved() == 0);
    dray_excluded_queue excluded;
    EXPECT(queues.excluded_queues(&excluded, 1).value() == 0);
    EXPECT(queues.excluded_queues(nullptr, 1).value() == -EINVAL);
    dray_page_state state;
    dray::page_list_report report(&state);
    EXPECT(queues.copy_page_list(&page, 1, dray::page_list_options(), report).ok() && state.not_copied_bytes == 0);
    EXPECT(queues.copy_page_list(&none, 1, dray::page_list_options(), report).value() == -EINVAL);
    std::printf("no exceptions: %s\n", failed ? "wrong" : "right");
    return failed;
}
