/* dray.hpp: libdray for C++17, header only. Errors are exceptions of the type dray::error; what fails
 * without one is a completion. A mover belongs to one thread at a time; buffers belong to it until their
 * operation has ended. */

#ifndef DRAY_HPP
#define DRAY_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dray.h"

namespace dray {

/// A negative code of libdray.
class error : public std::runtime_error {
  public:
    explicit error(int code)
        : std::runtime_error(std::string(dray_strerror(code)) + ": " + dray_last_error()), code_(code) {}

    /// The code, below 0.
    int code() const noexcept { return code_; }

  private:
    int code_;
};

/// Who is to execute operations.
enum class backend : std::uint32_t {
    hardware = DRAY_BACKEND_HARDWARE,
    virtual_device = DRAY_BACKEND_VIRTUAL,
    cpu = DRAY_BACKEND_CPU,
    any = DRAY_BACKEND_ANY,
};

/// Who has executed an operation.
enum class executor : std::uint32_t {
    hardware = DRAY_EXECUTOR_HARDWARE,
    virtual_device = DRAY_EXECUTOR_VIRTUAL,
    cpu = DRAY_EXECUTOR_CPU,
};

/// What a thread does while it waits.
enum class wait_policy : std::uint32_t {
    spin = DRAY_WAIT_POLICY_SPIN,
    pause = DRAY_WAIT_POLICY_PAUSE,
    umwait = DRAY_WAIT_POLICY_UMWAIT,
    yield = DRAY_WAIT_POLICY_YIELD,
};

/// An operation that has ended.
class completion {
  public:
    completion() noexcept : raw_() {}

    /// Status 1: all of it is done.
    bool ok() const noexcept { return raw_.status == 1; }
    /// Status of the completion record; 0: not executed.
    int status() const noexcept { return raw_.status; }
    /// What the operation was given.
    std::uint64_t user_data() const noexcept { return raw_.user_data; }
    /// Who has executed it.
    executor by() const noexcept { return static_cast<executor>(raw_.executor); }
    /// Of a comparison: there is no difference.
    bool equal() const noexcept { return ok() && raw_.result == 0; }
    /// Offset of a difference, bytes done before a fault.
    std::uint32_t bytes_completed() const noexcept { return raw_.bytes_completed; }
    std::uint32_t crc32c() const noexcept { return static_cast<std::uint32_t>(raw_.crc); }
    std::uint64_t crc64() const noexcept { return raw_.crc; }
    std::uint32_t delta_bytes() const noexcept { return raw_.delta_bytes; }
    /// All of it.
    const dray_completion &raw() const noexcept { return raw_; }

  private:
    friend class mover;
    friend class outcome;
    dray_completion raw_;
};

/// How integrity fields are checked and made.
struct dif : dray_dif {
    explicit dif(std::uint32_t bytes_of_a_block) noexcept : dray_dif() {
        size = sizeof(dray_dif);
        block_bytes = bytes_of_a_block;
    }
};

/// A batch that has begun. What is enqueued on its mover until `submit` is handed over together; without
/// `submit` it is forgotten.
class batch {
  public:
    batch(batch &&other) noexcept : mover_(std::exchange(other.mover_, nullptr)) {}
    batch &operator=(batch &&) = delete;
    batch(const batch &) = delete;
    batch &operator=(const batch &) = delete;
    ~batch() {
        if (mover_ != nullptr)
            dray_batch_cancel(mover_);
    }

    /// The next operation starts when all before it have ended.
    void fence() { check(dray_batch_fence(mover_)); }

    /// Enqueues the batch: how many operations it has.
    int submit() {
        int count = check(dray_batch_end(mover_));
        mover_ = nullptr;
        return count;
    }

  private:
    friend class mover;
    explicit batch(dray_mover *mover) : mover_(mover) { check(dray_batch_begin(mover)); }
    static int check(int code) {
        if (code < 0)
            throw error(code);
        return code;
    }
    dray_mover *mover_;
};

/// Executes memory operations. Closed at the end of its scope, which waits for what is in flight.
class mover {
  public:
    /// `queue` names a work queue, such as "wq0.1"; nullptr: the first that is free.
    explicit mover(backend who = backend::any, std::uint32_t slots = 0, const char *queue = nullptr) {
        dray_options options{};
        options.size = sizeof options;
        options.backend = static_cast<std::uint32_t>(who);
        options.slots = slots;
        options.queue = queue;
        check(dray_open(&options, &mover_));
    }
    mover(mover &&other) noexcept : mover_(std::exchange(other.mover_, nullptr)) {}
    mover &operator=(mover &&other) noexcept {
        std::swap(mover_, other.mover_);
        return *this;
    }
    mover(const mover &) = delete;
    mover &operator=(const mover &) = delete;
    ~mover() { dray_close(mover_); }

    /// Operations that can be enqueued or in flight at once.
    int slots() const { return check(dray_slots(mover_)); }
    /// Whether operations with this opcode are executed.
    bool supports(std::uint8_t opcode) const { return check(dray_supports(mover_, opcode)) == 1; }

    void noop(std::uint64_t id = 0) { check(dray_noop(mover_, id)); }
    void copy(void *to, const void *from, std::uint32_t len, std::uint64_t id = 0) {
        check(dray_copy(mover_, to, from, len, id));
    }
    void dualcast(void *first, void *second, const void *from, std::uint32_t len, std::uint64_t id = 0) {
        check(dray_dualcast(mover_, first, second, from, len, id));
    }
    void fill(void *to, std::uint64_t pattern, std::uint32_t len, std::uint64_t id = 0) {
        check(dray_fill(mover_, to, pattern, len, id));
    }
    void compare(const void *first, const void *second, std::uint32_t len, std::uint64_t id = 0) {
        check(dray_compare(mover_, first, second, len, id));
    }
    void compare_pattern(const void *from, std::uint64_t pattern, std::uint32_t len, std::uint64_t id = 0) {
        check(dray_compare_pattern(mover_, from, pattern, len, id));
    }
    void crc32c(const void *from, std::uint32_t len, std::uint32_t seed = 0, std::uint64_t id = 0) {
        check(dray_crc32c(mover_, from, len, seed, id));
    }
    void copy_crc32c(void *to, const void *from, std::uint32_t len, std::uint32_t seed = 0, std::uint64_t id = 0) {
        check(dray_copy_crc32c(mover_, to, from, len, seed, id));
    }
    void crc64(const void *from, std::uint32_t len, std::uint64_t seed = 0, std::uint64_t id = 0) {
        check(dray_crc64(mover_, from, len, seed, id));
    }
    void copy_crc64(void *to, const void *from, std::uint32_t len, std::uint64_t seed = 0, std::uint64_t id = 0) {
        check(dray_copy_crc64(mover_, to, from, len, seed, id));
    }
    void create_delta(const void *first, const void *second, std::uint32_t len, void *record,
                      std::uint32_t max_bytes, std::uint64_t id = 0) {
        check(dray_create_delta(mover_, first, second, len, record, max_bytes, id));
    }
    void apply_delta(void *to, std::uint32_t len, const void *record, std::uint32_t record_bytes,
                     std::uint64_t id = 0) {
        check(dray_apply_delta(mover_, to, len, record, record_bytes, id));
    }
    void dif_check(const void *from, std::uint32_t len, const dif &how, std::uint64_t id = 0) {
        check(dray_dif_check(mover_, from, len, &how, id));
    }
    void dif_insert(void *to, const void *from, std::uint32_t len, const dif &how, std::uint64_t id = 0) {
        check(dray_dif_insert(mover_, to, from, len, &how, id));
    }
    void dif_strip(void *to, const void *from, std::uint32_t len, const dif &how, std::uint64_t id = 0) {
        check(dray_dif_strip(mover_, to, from, len, &how, id));
    }
    void dif_update(void *to, const void *from, std::uint32_t len, const dif &how, std::uint64_t id = 0) {
        check(dray_dif_update(mover_, to, from, len, &how, id));
    }
    void cache_flush(void *buffer, std::uint32_t len, std::uint64_t id = 0) {
        check(dray_cache_flush(mover_, buffer, len, id));
    }

    /// Begins a batch; one at a time.
    dray::batch begin_batch() { return dray::batch(mover_); }

    /// Hands over what was enqueued: whether all of it was.
    bool submit() { return check(dray_submit(mover_)) == 0; }
    /// Takes back what no queue has accepted: how many operations.
    int withdraw() { return check(dray_withdraw(mover_)); }

    /// What has ended, at most `most` operations.
    std::vector<completion> poll(std::size_t most = 64) {
        std::vector<completion> ended(most);
        ended.resize(static_cast<std::size_t>(check(dray_poll(mover_, &ended.data()->raw_, most))));
        return ended;
    }

    /// Submits, and waits for one operation to end. `timeout` 0: for ever.
    completion wait(wait_policy how = wait_policy::pause,
                    std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
        completion done;
        check(dray_wait(mover_, &done.raw_, 1, static_cast<std::uint32_t>(how),
                        static_cast<std::uint64_t>(timeout.count())));
        return done;
    }

    /// For calls of dray.h.
    dray_mover *get() const noexcept { return mover_; }

  protected:
    struct empty {};
    explicit mover(empty) noexcept {}
    static int check(int code) {
        if (code < 0)
            throw error(code);
        return code;
    }
    dray_mover *mover_ = nullptr;
};

/// How several queues are used as one; 0 is the default of each.
struct channels_options : dray_channels_options {
    explicit channels_options(dray::backend who = dray::backend::any) noexcept : dray_channels_options() {
        size = sizeof(dray_channels_options);
        backend = static_cast<std::uint32_t>(who);
    }
};

/// An operation of channels that has ended, and who did what of it.
class outcome {
  public:
    outcome() noexcept : raw_() {}

    /// How it ended.
    dray::completion completion() const noexcept {
        dray::completion done;
        done.raw_ = raw_.completion;
        return done;
    }
    std::uint64_t device_bytes() const noexcept { return raw_.device_bytes; }
    std::uint64_t core_bytes() const noexcept { return raw_.core_bytes; }
    /// Queues that it was striped over; 0 if no device had any of it.
    std::uint32_t stripes() const noexcept { return raw_.stripes; }
    /// It travelled in a batch with others that were enqueued singly.
    bool gathered() const noexcept { return raw_.gathered != 0; }
    /// Every queue was full, and it was not to wait.
    bool queue_was_full() const noexcept { return raw_.queue_was_full != 0; }
    /// A DRAY_CORE_REASON.
    std::uint32_t core_reason() const noexcept { return raw_.core_reason; }
    /// All of it.
    const dray_outcome &raw() const noexcept { return raw_; }

  private:
    friend class channels;
    dray_outcome raw_;
};

/// Several work queues as one mover: large operations are striped over them, small ones gathered into
/// batches.
class channels : public mover {
  public:
    explicit channels(const channels_options &options = channels_options()) : mover(empty{}) {
        check(dray_open_channels(&options, &mover_));
    }

    /// What has ended, at most `most` operations, with who did what of each.
    std::vector<outcome> poll_outcomes(std::size_t most = 64) {
        std::vector<outcome> ended(most);
        ended.resize(static_cast<std::size_t>(check(dray_poll_outcomes(mover_, &ended.data()->raw_, most))));
        return ended;
    }
};

static_assert(sizeof(outcome) == sizeof(dray_outcome), "an array of one is an array of the other");
static_assert(sizeof(completion) == sizeof(dray_completion), "an array of one is an array of the other");

} // namespace dray

#endif
