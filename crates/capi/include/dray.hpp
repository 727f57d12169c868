/* dray.hpp: libdray for C++14 and later, header only. Two sets of classes have the same functions:
 *
 *   dray::mover, dray::channels                  errors are exceptions of the type dray::error
 *   dray::nothrow_mover, dray::nothrow_channels  functions return a dray::code; for -fno-exceptions
 *
 * How an operation ends is in its completion, never an error of a function. A mover belongs to one thread at
 * a time, or is shared by threads (share), which start operations with handles (dray::operation); buffers belong to it until their operation has ended. */

#ifndef DRAY_HPP
#define DRAY_HPP

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "dray.h"
#include "dray_types.hpp"

#if defined(__cpp_exceptions)
#include <vector>
#endif

namespace dray {

/// A batch that has begun. What is enqueued on its mover until `submit` is handed over together; without
/// `submit` it is forgotten.
template <class Errors> class basic_batch {
  public:
    /// None.
    basic_batch() noexcept = default;
    basic_batch(basic_batch &&other) noexcept : mover_(std::exchange(other.mover_, nullptr)) {}
    basic_batch &operator=(basic_batch &&other) noexcept {
        if (this != &other) {
            cancel();
            mover_ = std::exchange(other.mover_, nullptr);
        }
        return *this;
    }
    basic_batch(const basic_batch &) = delete;
    basic_batch &operator=(const basic_batch &) = delete;
    ~basic_batch() { cancel(); }

    /// The next operation starts when all before it have ended.
    auto fence() { return Errors::done(dray_batch_fence(mover_)); }

    /// Enqueues the batch: how many operations it has. If it fails for want of slots (-EAGAIN) the batch
    /// stays, for another try. One without operations (-ENOENT) is over.
    auto submit() {
        int count = dray_batch_end(mover_);
        if (count >= 0 || count == -ENOENT)
            mover_ = nullptr;
        return Errors::number(count);
    }

  private:
    template <class> friend class basic_mover;
    explicit basic_batch(dray_mover *mover) noexcept : mover_(mover) {}
    void cancel() noexcept {
        if (mover_ != nullptr)
            dray_batch_cancel(mover_);
    }
    dray_mover *mover_ = nullptr;
};

/// Executes memory operations. Closed when it is destroyed, which waits for what is in flight.
template <class Errors> class basic_mover {
  public:
    using batch = basic_batch<Errors>;

    basic_mover(basic_mover &&other) noexcept : mover_(std::exchange(other.mover_, nullptr)) {}
    basic_mover &operator=(basic_mover &&other) noexcept {
        if (this != &other) {
            dray_close(mover_);
            mover_ = std::exchange(other.mover_, nullptr);
        }
        return *this;
    }
    basic_mover(const basic_mover &) = delete;
    basic_mover &operator=(const basic_mover &) = delete;
    ~basic_mover() { dray_close(mover_); }

    /// Waits for what is in flight, and closes it. Later calls are errors (-EINVAL).
    auto close() { return Errors::done(dray_close(std::exchange(mover_, nullptr))); }
    /// Operations that can be enqueued or in flight at once.
    auto slots() const { return Errors::number(dray_slots(mover_)); }
    /// Whether operations with this opcode are executed: 1 or 0.
    auto supports(std::uint8_t opcode) const { return Errors::number(dray_supports(mover_, opcode)); }
    /// What happened when it was opened, a line for each work queue that was tried; "" if it is closed.
    std::string note() const {
        int bytes = dray_note(mover_, nullptr, 0);
        std::string text(bytes < 0 ? 0 : static_cast<std::size_t>(bytes) + 1, '\0');
        if (bytes >= 0) {
            dray_note(mover_, &text[0], text.size());
            text.pop_back();
        }
        return text;
    }

    auto noop(std::uint64_t id = 0) { return Errors::done(dray_noop(mover_, id)); }
    auto copy(void *to, const void *from, std::size_t len, std::uint64_t id = 0) {
        return Errors::done(dray_copy(mover_, to, from, len, id));
    }
    auto dualcast(void *first, void *second, const void *from, std::size_t len, std::uint64_t id = 0) {
        return Errors::done(dray_dualcast(mover_, first, second, from, len, id));
    }
    auto fill(void *to, std::uint64_t pattern, std::size_t len, std::uint64_t id = 0) {
        return Errors::done(dray_fill(mover_, to, pattern, len, id));
    }
    auto compare(const void *first, const void *second, std::size_t len, std::uint64_t id = 0) {
        return Errors::done(dray_compare(mover_, first, second, len, id));
    }
    auto compare_pattern(const void *from, std::uint64_t pattern, std::size_t len, std::uint64_t id = 0) {
        return Errors::done(dray_compare_pattern(mover_, from, pattern, len, id));
    }
    auto crc32c(const void *from, std::size_t len, std::uint32_t seed = 0, std::uint64_t id = 0) {
        return Errors::done(dray_crc32c(mover_, from, len, seed, id));
    }
    auto copy_crc32c(void *to, const void *from, std::size_t len, std::uint32_t seed = 0, std::uint64_t id = 0) {
        return Errors::done(dray_copy_crc32c(mover_, to, from, len, seed, id));
    }
    auto crc64(const void *from, std::size_t len, std::uint64_t seed = 0, std::uint64_t id = 0) {
        return Errors::done(dray_crc64(mover_, from, len, seed, id));
    }
    auto copy_crc64(void *to, const void *from, std::size_t len, std::uint64_t seed = 0, std::uint64_t id = 0) {
        return Errors::done(dray_copy_crc64(mover_, to, from, len, seed, id));
    }
    auto create_delta(const void *first, const void *second, std::size_t len, void *record,
                      std::size_t max_bytes, std::uint64_t id = 0) {
        return Errors::done(dray_create_delta(mover_, first, second, len, record, max_bytes, id));
    }
    auto apply_delta(void *to, std::size_t len, const void *record, std::size_t record_bytes,
                     std::uint64_t id = 0) {
        return Errors::done(dray_apply_delta(mover_, to, len, record, record_bytes, id));
    }
    auto dif_check(const void *from, std::size_t len, const dif &how, std::uint64_t id = 0) {
        return Errors::done(dray_dif_check(mover_, from, len, &how, id));
    }
    auto dif_insert(void *to, const void *from, std::size_t len, const dif &how, std::uint64_t id = 0) {
        return Errors::done(dray_dif_insert(mover_, to, from, len, &how, id));
    }
    auto dif_strip(void *to, const void *from, std::size_t len, const dif &how, std::uint64_t id = 0) {
        return Errors::done(dray_dif_strip(mover_, to, from, len, &how, id));
    }
    auto dif_update(void *to, const void *from, std::size_t len, const dif &how, std::uint64_t id = 0) {
        return Errors::done(dray_dif_update(mover_, to, from, len, &how, id));
    }
    auto dix_generate(void *to, const void *from, std::size_t len, const dif &how, std::uint64_t id = 0) {
        return Errors::done(dray_dix_generate(mover_, to, from, len, &how, id));
    }
    auto cache_flush(void *buffer, std::size_t len, std::uint64_t id = 0) {
        return Errors::done(dray_cache_flush(mover_, buffer, len, id));
    }
    /// A descriptor of 64 bytes, such as a `dsa_hw_desc` of linux/idxd.h.
    auto enqueue_descriptor(const void *descriptor, std::uint64_t id = 0) {
        return Errors::done(dray_enqueue_descriptor(mover_, descriptor, id));
    }
    /// Flags of the next operation that is enqueued.
    auto next_flags(flag flags) { return Errors::done(dray_next_flags(mover_, static_cast<std::uint32_t>(flags))); }

    /// Begins a batch; one at a time.
    auto begin_batch(batch &begun) {
        int done = dray_batch_begin(mover_);
        if (done == 0)
            begun = batch(mover_);
        return Errors::done(done);
    }

    /// Hands over what was enqueued: 0, or 1 if something is left to submit later.
    auto submit() { return Errors::number(dray_submit(mover_)); }
    /// Takes back what no queue has accepted: how many operations.
    auto withdraw() { return Errors::number(dray_withdraw(mover_)); }

    /// What has ended, at most `count` operations: how many there were.
    auto poll(completion *into, std::size_t count) {
        return Errors::number(dray_poll(mover_, raw(into), count));
    }
    /// The same of channels, with who did what of each.
    auto poll_outcomes(outcome *into, std::size_t count) {
        return Errors::number(dray_poll_outcomes(mover_, raw(into), count));
    }
    /// Submits, and waits for an operation to end: how many have. `timeout` 0: for ever.
    auto wait(completion *into, std::size_t count, wait_policy how = wait_policy::pause,
              std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
        return Errors::number(dray_wait(mover_, raw(into), count, static_cast<std::uint32_t>(how), ns(timeout)));
    }
    /// The same of channels, with who did what of each.
    auto wait_outcomes(outcome *into, std::size_t count, wait_policy how = wait_policy::pause,
                       std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
        auto policy = static_cast<std::uint32_t>(how);
        return Errors::number(dray_wait_outcomes(mover_, raw(into), count, policy, ns(timeout)));
    }

    /// Copies a list of pages, and returns when all is copied. `statistics` nullptr: none.
    auto copy_page_list(const dray_page *pages, std::size_t count,
                        const page_list_options &how = page_list_options(),
                        page_list_statistics *statistics = nullptr) {
        return Errors::done(dray_copy_page_list(mover_, pages, count, &how, statistics));
    }

    /// The same with the state of each entry, and who has copied how much.
    auto copy_page_list(const dray_page *pages, std::size_t count, const page_list_options &how,
                        page_list_report &report, page_list_statistics *statistics = nullptr) {
        return Errors::done(dray_copy_page_list_with_report(mover_, pages, count, &how, statistics, &report));
    }

    /// Queues that get nothing more: how many there are. At most `count` are written.
    auto excluded_queues(dray_excluded_queue *into, std::size_t count) const {
        return Errors::number(dray_excluded_queues(mover_, into, count));
    }

    /// From now on threads share it: they start operations with handles (basic_operation).
    auto share() { return Errors::done(dray_share(mover_)); }
    /// A descriptor for poll and epoll that is readable while `ended` has handles to give.
    auto event_fd() const { return Errors::number(dray_event_fd(mover_)); }
    /// Handles that were started as `listed` and have ended: how many, at most `count`.
    auto ended(dray_op **into, std::size_t count) { return Errors::number(dray_ended(mover_, into, count)); }

    /// For calls of dray.h; NULL if it is closed.
    dray_mover *get() const noexcept { return mover_; }

  protected:
    basic_mover() noexcept = default;
    template <class T> static auto raw(T *into) noexcept { return into == nullptr ? nullptr : &into->raw_; }
    /// A timeout below 0 is over at once.
    static std::uint64_t ns(std::chrono::nanoseconds timeout) noexcept {
        return timeout.count() < 0 ? 1 : static_cast<std::uint64_t>(timeout.count());
    }
    dray_mover *mover_ = nullptr;
};

/// One operation of a mover that threads share, and how it has ended. When it is destroyed its operation is cancelled if it
/// was not begun, and waited for: the buffers are the caller's then. One that was started as `listed` must have been given by
/// `ended` before.
template <class Errors> class basic_operation {
  public:
    basic_operation() noexcept : raw_() {}
    basic_operation(const basic_operation &) = delete;
    basic_operation &operator=(const basic_operation &) = delete;
    ~basic_operation() { dray_op_release(&raw_); }

    /// Starts an operation; the handle is free, or its operation has ended.
    auto start(const basic_mover<Errors> &on, const request &what) {
        return Errors::done(dray_start(on.get(), &raw_, &what));
    }
    /// Whether it has ended, 1 or 0, and how.
    auto poll(outcome *into = nullptr) const { return Errors::number(dray_op_poll(&raw_, raw(into))); }
    /// Sleeps until it has ended. `timeout` 0: for ever.
    auto wait(outcome *into = nullptr,
              std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) const {
        auto ns = timeout.count() < 0 ? 1 : static_cast<std::uint64_t>(timeout.count());
        return Errors::number(dray_op_wait(&raw_, raw(into), ns));
    }
    /// Takes it back, if the mover has not begun it.
    auto cancel() { return Errors::done(dray_op_cancel(&raw_)); }
    /// Cancels or waits, so that handle and buffers are the caller's.
    auto release() { return Errors::done(dray_op_release(&raw_)); }
    /// For calls of dray.h, and to compare with what `ended` gives.
    dray_op *get() noexcept { return &raw_; }

  private:
    static dray_outcome *raw(outcome *into) noexcept { return into == nullptr ? nullptr : &into->raw_; }
    dray_op raw_;
};

using nothrow_operation = basic_operation<returning>;

/// Work queues of this machine, none of which is opened: how many there are. At most `count` are written.
inline code queues(dray_queue *into, std::size_t count) noexcept { return code(dray_queues(into, count)); }

/// A mover whose calls return codes. It is closed until it is opened.
class nothrow_mover : public basic_mover<returning> {
  public:
    nothrow_mover() noexcept = default;
    /// Opens it; what it was is closed first.
    code open(const options &how = options()) noexcept {
        *this = nothrow_mover();
        return code(dray_open(&how, &mover_));
    }
};

/// Several work queues as one mover, whose calls return codes.
class nothrow_channels : public basic_mover<returning> {
  public:
    nothrow_channels() noexcept = default;
    /// Opens them; what it was is closed first.
    code open(const channels_options &how = channels_options()) noexcept {
        *this = nothrow_channels();
        return code(dray_open_channels(&how, &mover_));
    }
};

using nothrow_batch = basic_batch<returning>;

#if defined(__cpp_exceptions)
using batch = basic_batch<throwing>;
using operation = basic_operation<throwing>;

/// A mover whose errors are exceptions.
class mover : public basic_mover<throwing> {
  public:
    explicit mover(const options &how) { throwing::done(dray_open(&how, &mover_)); }
    /// `queue` names a work queue, such as "wq0.1"; nullptr: the first that is free.
    explicit mover(backend who = backend::any, std::uint32_t slots = 0, const char *queue = nullptr) {
        options how(who);
        how.slots = slots;
        how.queue = queue;
        throwing::done(dray_open(&how, &mover_));
    }

    /// Hands over what was enqueued: whether all of it was.
    bool submit() { return basic_mover::submit() == 0; }

    using basic_mover::begin_batch;
    using basic_mover::excluded_queues;
    using basic_mover::poll;
    using basic_mover::wait;

    /// Begins a batch; one at a time.
    dray::batch begin_batch() {
        dray::batch begun;
        begin_batch(begun);
        return begun;
    }
    /// Queues that get nothing more.
    std::vector<dray_excluded_queue> excluded_queues() const {
        std::vector<dray_excluded_queue> excluded(static_cast<std::size_t>(excluded_queues(nullptr, 0)));
        if (!excluded.empty())
            excluded_queues(excluded.data(), excluded.size());
        return excluded;
    }
    /// What has ended, at most `most` operations.
    std::vector<completion> poll(std::size_t most = 64) {
        return ended<completion>(most, [this](completion *into, std::size_t count) { return poll(into, count); });
    }
    /// Submits, and waits for one operation to end. `timeout` 0: for ever.
    completion wait(wait_policy how = wait_policy::pause,
                    std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
        completion done;
        wait(&done, 1, how, timeout);
        return done;
    }

  protected:
    struct closed {};
    explicit mover(closed) noexcept {}
    /// What `take` writes to an array of `most`.
    template <class T, class Take> static std::vector<T> ended(std::size_t most, Take take) {
        std::vector<T> all(most);
        all.resize(static_cast<std::size_t>(take(all.data(), most)));
        return all;
    }
};

/// Several work queues as one mover: large operations are striped over them, small ones gathered into
/// batches.
class channels : public mover {
  public:
    explicit channels(const channels_options &how = channels_options()) : mover(closed()) {
        throwing::done(dray_open_channels(&how, &mover_));
    }

    using basic_mover::poll_outcomes;
    using basic_mover::wait_outcomes;

    /// What has ended, at most `most` operations, with who did what of each.
    std::vector<outcome> poll_outcomes(std::size_t most = 64) {
        return ended<outcome>(most, [this](outcome *into, std::size_t count) { return poll_outcomes(into, count); });
    }
    /// Submits, and waits for one operation to end. `timeout` 0: for ever.
    outcome wait_outcome(wait_policy how = wait_policy::pause,
                         std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
        outcome done;
        wait_outcomes(&done, 1, how, timeout);
        return done;
    }
};
#endif

} // namespace dray

#endif
