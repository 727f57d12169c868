// Rounds of operations through dray.hpp, timed: what `dray bench` compiles and loads for its cases of api:cpp.
// The structures are those of mod.rs.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dray.hpp>
#include <memory>

namespace {

// Without a completion for so long, a queue is given up.
constexpr std::chrono::seconds stalled_after(10);

// Buffers at equal distances, used in turn.
struct ring {
    std::uint64_t base, stride, count;

    void *at(std::uint64_t index) const {
        std::uint64_t turn = index < count ? index : index % count;
        return reinterpret_cast<void *>(base + turn * stride);
    }
};

// In the order of `CppOp`.
enum operation : std::uint32_t {
    move, fill, compare, compare_pattern, create_delta, apply_delta, dualcast, crc, copy_crc, cache_flush, nop,
};

struct work {
    std::uint32_t op;
    std::uint32_t backend;
    // Name of a work queue, or null.
    const char *queue;
    std::uint64_t pattern;
    std::uint32_t bytes;
    // Of a delta record.
    std::uint32_t record_bytes;
    // Descriptors in flight at most, and operations in one; a round is all of them.
    std::uint32_t depth;
    std::uint32_t batch;
    // 1: a round waits for the one before it.
    std::uint32_t sync;
    std::uint32_t cache_control;
    ring src, dst, dst2;
};

struct loop_result {
    std::uint64_t elapsed_ns;
    std::uint64_t rounds;
    std::uint64_t failed;
    // In flight when nothing had completed for ten seconds.
    std::uint64_t stalled;
    // Status of the first operation that failed.
    std::uint32_t status;
    std::uint32_t reserved;
};

static_assert(sizeof(work) == 120 && sizeof(loop_result) == 40, "as in mod.rs");

using time = std::chrono::steady_clock;

std::uint64_t ns(time::duration span) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(span).count());
}

class loop {
  public:
    explicit loop(const work &what) : what_(what), mover_(opened(what)) {}

    // Runs so many rounds, or fewer if `sample` says so after one. `before` is called before each round of a
    // synchronous loop, unmeasured. Without `sample` the clock is read at the beginning and the end alone.
    void run(std::uint64_t rounds, void (*before)(void *), int (*sample)(void *, std::uint64_t), void *context,
             loop_result &result) {
        const std::uint64_t round = std::uint64_t(what_.depth) * what_.batch, total = rounds * round;
        std::uint64_t issued = 0, ended = 0, last = round;
        bool stopping = false;
        dray::completion seen[64];
        time::time_point waiting{};

        if (before != nullptr)
            before(context);
        time::time_point begin = time::now();
        const time::time_point start = begin;
        while (ended < issued || (!stopping && issued < total)) {
            const std::uint64_t limit = what_.sync != 0 ? (ended / round + 1) * round : total;
            while (!stopping && issued < limit && issued - ended + what_.batch <= round) {
                if (what_.batch > 1) {
                    dray::batch batch = mover_.begin_batch();
                    for (std::uint32_t n = 0; n < what_.batch; n++)
                        enqueue(issued + n);
                    batch.submit();
                } else {
                    enqueue(issued);
                }
                issued += what_.batch;
            }
            mover_.submit();
            const int count = mover_.poll(seen, 64);
            for (int n = 0; n < count; n++) {
                if (seen[n].ok())
                    continue;
                if (result.failed++ == 0)
                    result.status = static_cast<std::uint32_t>(seen[n].status());
                stopping = true;
            }
            ended += static_cast<std::uint64_t>(count);
            if (ended >= last) {
                const std::uint64_t over = (ended - last) / round + 1;
                last += over * round;
                result.rounds += over;
                if (sample != nullptr) {
                    const time::time_point now = time::now();
                    // Several rounds may have ended at once.
                    for (std::uint64_t n = 0; n < over; n++)
                        stopping |= sample(context, ns(now - begin) / over) != 0;
                    begin = now;
                }
                if (what_.sync != 0 && before != nullptr && !stopping && ended < total) {
                    before(context);
                    begin = time::now();
                }
            }
            if (count > 0) {
                waiting = time::time_point{};
                continue;
            }
            const time::time_point now = time::now();
            if (waiting == time::time_point{})
                waiting = now;
            if (now - waiting >= stalled_after) {
                result.stalled = issued - ended;
                break;
            }
        }
        result.elapsed_ns = ns(time::now() - start);
    }

  private:
    static dray::mover opened(const work &what) {
        return dray::mover(static_cast<dray::backend>(what.backend), 2 * what.depth * what.batch, what.queue);
    }

    void enqueue(std::uint64_t index) {
        void *src = what_.src.at(index), *dst = what_.dst.at(index), *dst2 = what_.dst2.at(index);

        if (what_.cache_control != 0)
            mover_.next_flags(dray::flag::cache_control);
        switch (what_.op) {
        case move:
            return mover_.copy(dst, src, what_.bytes);
        case fill:
            return mover_.fill(dst, what_.pattern, what_.bytes);
        case compare:
            return mover_.compare(src, dst, what_.bytes);
        case compare_pattern:
            return mover_.compare_pattern(src, what_.pattern, what_.bytes);
        case create_delta:
            return mover_.create_delta(src, dst, what_.bytes, dst2, what_.record_bytes);
        case apply_delta:
            return mover_.apply_delta(dst, what_.bytes, src, what_.record_bytes);
        case dualcast:
            return mover_.dualcast(dst, dst2, src, what_.bytes);
        case crc:
            return mover_.crc32c(src, what_.bytes);
        case copy_crc:
            return mover_.copy_crc32c(dst, src, what_.bytes);
        case cache_flush:
            return mover_.cache_flush(dst, what_.bytes);
        default:
            return mover_.noop();
        }
    }

    work what_;
    dray::mover mover_;
};

} // namespace

// A loop, or null and why there is none.
extern "C" void *dray_bench_open(const work *what, char *text, std::size_t bytes) {
    try {
        return new loop(*what);
    } catch (const std::exception &error) {
        std::snprintf(text, bytes, "%s", error.what());
        return nullptr;
    }
}

// 0, or 1 and what went wrong.
extern "C" int dray_bench_run(void *opened, std::uint64_t rounds, void (*before)(void *),
                              int (*sample)(void *, std::uint64_t), void *context, loop_result *result, char *text,
                              std::size_t bytes) {
    *result = loop_result{};
    try {
        static_cast<loop *>(opened)->run(rounds, before, sample, context, *result);
        return 0;
    } catch (const std::exception &error) {
        std::snprintf(text, bytes, "%s", error.what());
        return 1;
    }
}

// Waits for what is in flight.
extern "C" void dray_bench_close(void *opened) { delete static_cast<loop *>(opened); }
