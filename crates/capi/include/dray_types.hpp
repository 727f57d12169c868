/* dray_types.hpp: options, results and errors of dray.hpp. Include that. */

#ifndef DRAY_TYPES_HPP
#define DRAY_TYPES_HPP

#include <cstddef>
#include <cstdint>
#include <string>

#include "dray.h"

#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

/* Of C++14 compilers, those that warn of attributes of C++17 get none. */
#if __cplusplus >= 201703L
#define DRAY_NODISCARD [[nodiscard]]
#else
#define DRAY_NODISCARD
#endif

namespace dray {

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

/// Why the core has executed an operation, or a part of it.
enum class core_reason : std::uint32_t {
    none = DRAY_CORE_REASON_NONE,
    chosen = DRAY_CORE_REASON_CHOSEN,
    below_threshold = DRAY_CORE_REASON_BELOW_THRESHOLD,
    faster = DRAY_CORE_REASON_FASTER,
    tried = DRAY_CORE_REASON_TRIED,
    no_device = DRAY_CORE_REASON_NO_DEVICE,
    queue_full = DRAY_CORE_REASON_QUEUE_FULL,
    page_fault = DRAY_CORE_REASON_PAGE_FAULT,
    queue_lost = DRAY_CORE_REASON_QUEUE_LOST,
};

/// Who must execute all operations of channels: else they fail.
enum class require : std::uint32_t {
    any = DRAY_REQUIRE_ANY,
    device = DRAY_REQUIRE_DEVICE,
    hardware = DRAY_REQUIRE_HARDWARE,
};

/// Who executes an operation, as far as that is free.
enum class choice : std::uint32_t {
    threshold = DRAY_CHOICE_THRESHOLD,
    device = DRAY_CHOICE_DEVICE,
    core = DRAY_CHOICE_CORE,
    cost_model = DRAY_CHOICE_COST_MODEL,
    learned = DRAY_CHOICE_LEARNED,
};

/// What becomes of an operation that met a page that was not present.
enum class page_fault : std::uint32_t {
    touch_and_resume = DRAY_PAGE_FAULT_TOUCH_AND_RESUME,
    finish_on_core = DRAY_PAGE_FAULT_FINISH_ON_CORE,
    block_on_fault = DRAY_PAGE_FAULT_BLOCK_ON_FAULT,
    /// `return` of C, which is a word of the language.
    return_fault = DRAY_PAGE_FAULT_RETURN,
};

/// What becomes of an operation when every queue that could take it is full.
enum class full_queue : std::uint32_t {
    wait = DRAY_FULL_QUEUE_WAIT,
    core = DRAY_FULL_QUEUE_CORE,
    error = DRAY_FULL_QUEUE_ERROR,
};

/// What becomes of the operations of a queue that is disabled or reset, or whose device ends.
enum class lost_queue_policy : std::uint32_t {
    other = DRAY_LOST_QUEUE_POLICY_OTHER,
    core = DRAY_LOST_QUEUE_POLICY_CORE,
    error = DRAY_LOST_QUEUE_POLICY_ERROR,
};

/// Why a queue executes nothing more.
enum class queue_lost_reason : std::uint32_t {
    none = DRAY_QUEUE_LOST_REASON_NONE,
    disabled = DRAY_QUEUE_LOST_REASON_DISABLED,
    device_ended = DRAY_QUEUE_LOST_REASON_DEVICE_ENDED,
    refused = DRAY_QUEUE_LOST_REASON_REFUSED,
    other = DRAY_QUEUE_LOST_REASON_OTHER,
};

/// Sizes of a page list's entries that are counted apart.
enum class page_size : std::uint32_t {
    base = DRAY_PAGE_SIZE_BASE,
    large = DRAY_PAGE_SIZE_LARGE,
};

/// Why it was this executor that copied bytes of a page list.
enum class page_reason : std::uint32_t {
    offloaded = DRAY_PAGE_REASON_OFFLOADED,
    below_threshold = DRAY_PAGE_REASON_BELOW_THRESHOLD,
    no_device = DRAY_PAGE_REASON_NO_DEVICE,
    page_fault = DRAY_PAGE_REASON_PAGE_FAULT,
    not_executed = DRAY_PAGE_REASON_NOT_EXECUTED,
    device_error = DRAY_PAGE_REASON_DEVICE_ERROR,
};

/// What a thread does while it waits.
enum class wait_policy : std::uint32_t {
    spin = DRAY_WAIT_POLICY_SPIN,
    pause = DRAY_WAIT_POLICY_PAUSE,
    umwait = DRAY_WAIT_POLICY_UMWAIT,
    yield = DRAY_WAIT_POLICY_YIELD,
};

/// What the operation of a handle does.
enum class operation_code : std::uint32_t {
    noop = DRAY_OPERATION_NOOP,
    copy = DRAY_OPERATION_COPY,
    fill = DRAY_OPERATION_FILL,
    compare = DRAY_OPERATION_COMPARE,
    compare_pattern = DRAY_OPERATION_COMPARE_PATTERN,
    create_delta = DRAY_OPERATION_CREATE_DELTA,
    apply_delta = DRAY_OPERATION_APPLY_DELTA,
    dualcast = DRAY_OPERATION_DUALCAST,
    crc32c = DRAY_OPERATION_CRC32C,
    copy_crc32c = DRAY_OPERATION_COPY_CRC32C,
    crc64 = DRAY_OPERATION_CRC64,
    copy_crc64 = DRAY_OPERATION_COPY_CRC64,
    dif_check = DRAY_OPERATION_DIF_CHECK,
    dif_insert = DRAY_OPERATION_DIF_INSERT,
    dif_strip = DRAY_OPERATION_DIF_STRIP,
    dif_update = DRAY_OPERATION_DIF_UPDATE,
    dix_generate = DRAY_OPERATION_DIX_GENERATE,
    cache_flush = DRAY_OPERATION_CACHE_FLUSH,
    descriptor = DRAY_OPERATION_DESCRIPTOR,
};

/// Flags of one operation.
enum class flag : std::uint32_t {
    none = 0,
    block_on_fault = DRAY_FLAG_BLOCK_ON_FAULT,
    cache_control = DRAY_FLAG_CACHE_CONTROL,
    strict_ordering = DRAY_FLAG_STRICT_ORDERING,
    destination_readback = DRAY_FLAG_DESTINATION_READBACK,
    crc_bypass_inversion = DRAY_FLAG_CRC_BYPASS_INVERSION,
    crc_bypass_data_reflection = DRAY_FLAG_CRC_BYPASS_DATA_REFLECTION,
};

constexpr flag operator|(flag a, flag b) noexcept {
    return static_cast<flag>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}

/// What a call of the nothrow classes gives: a number of 0 or more, or an error code below 0.
class DRAY_NODISCARD code {
  public:
    constexpr explicit code(int value) noexcept : value_(value) {}

    constexpr bool ok() const noexcept { return value_ >= 0; }
    /// The number, or the code.
    constexpr int value() const noexcept { return value_; }
    /// What the code means.
    const char *text() const noexcept { return dray_strerror(ok() ? 0 : value_); }

  private:
    int value_;
};

#if defined(__cpp_exceptions)
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

/// Errors are exceptions.
struct throwing {
    static int number(int code) {
        if (code < 0)
            throw error(code);
        return code;
    }
    static void done(int code) { number(code); }
};
#endif

/// Errors are what calls return.
struct returning {
    static code number(int value) noexcept { return code(value); }
    static code done(int value) noexcept { return code(value); }
};

/// An operation that has ended.
class completion {
  public:
    completion() noexcept : raw_() {}

    /// Status 1: all of it is done.
    bool ok() const noexcept { return raw_.status == 1; }
    /// Status of the completion record; 0: not executed.
    int status() const noexcept { return raw_.status; }
    /// What the status is called and means.
    const char *status_name() const noexcept { return dray_status_name(raw_.status); }
    /// What the operation was given.
    std::uint64_t user_data() const noexcept { return raw_.user_data; }
    /// Who has executed it.
    executor by() const noexcept { return static_cast<executor>(raw_.executor); }
    /// Why the core has executed any of it.
    dray::core_reason core_reason() const noexcept { return static_cast<dray::core_reason>(raw_.core_reason); }
    /// The same as a text.
    const char *core_reason_name() const noexcept { return dray_core_reason_name(raw_.core_reason); }
    /// Every queue was full, and it was not to wait.
    bool queue_was_full() const noexcept { return raw_.queue_was_full != 0; }
    /// Why its queue has not executed it, and nothing else has either.
    dray::queue_lost_reason queue_lost() const noexcept {
        return static_cast<dray::queue_lost_reason>(raw_.queue_lost);
    }
    /// The same as a text.
    const char *queue_lost_name() const noexcept { return dray_queue_lost_name(raw_.queue_lost); }
    /// It, or a part of it, was taken back.
    bool withdrawn() const noexcept { return raw_.withdrawn != 0; }
    /// Submissions of its descriptors that a queue without room did not accept.
    std::uint32_t retries() const noexcept { return raw_.retries; }
    /// Of a comparison: there is no difference.
    bool equal() const noexcept { return ok() && raw_.result == 0; }
    /// Offset of a difference, bytes done before a fault.
    std::uint32_t bytes_completed() const noexcept { return raw_.bytes_completed; }
    std::uint32_t crc32c() const noexcept { return static_cast<std::uint32_t>(raw_.crc); }
    std::uint64_t crc64() const noexcept { return raw_.crc; }
    std::uint32_t delta_bytes() const noexcept { return raw_.delta_bytes; }
    /// Of a page fault (status 3).
    std::uint64_t fault_address() const noexcept { return raw_.fault_address; }
    bool write_fault() const noexcept { return raw_.write_fault != 0; }
    /// Tags of the integrity field after the last one checked, or made.
    const dray_tags &source_tags() const noexcept { return raw_.source; }
    const dray_tags &destination_tags() const noexcept { return raw_.destination; }
    /// The register of the instruction CRC32, of a CRC32C.
    std::uint32_t crc32c_register() const noexcept { return dray_crc32c_register(crc32c()); }
    /// All of it.
    const dray_completion &raw() const noexcept { return raw_; }

  private:
    template <class Errors> friend class basic_mover;
    friend class outcome;
    dray_completion raw_;
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
    /// Stripes of it that queues have accepted; 0 if no device had any of it.
    std::uint32_t stripes() const noexcept { return raw_.stripes; }
    /// Page faults after which the device went on.
    std::uint32_t resumed_faults() const noexcept { return raw_.resumed_faults; }
    /// It travelled in a batch with others that were enqueued singly.
    bool gathered() const noexcept { return raw_.gathered != 0; }
    /// Every queue was full, and it was not to wait.
    bool queue_was_full() const noexcept { return raw_.queue_was_full != 0; }
    /// Times that it, or a part of it, went to another executor because its queue was lost, up to 255.
    int moved() const noexcept { return raw_.moved; }
    /// Why the core has executed any of it.
    dray::core_reason core_reason() const noexcept { return static_cast<dray::core_reason>(raw_.core_reason); }
    /// All of it.
    const dray_outcome &raw() const noexcept { return raw_; }

  private:
    template <class Errors> friend class basic_mover;
    template <class Errors> friend class basic_operation;
    dray_outcome raw_;
};

static_assert(sizeof(outcome) == sizeof(dray_outcome), "an array of one is an array of the other");
static_assert(sizeof(completion) == sizeof(dray_completion), "an array of one is an array of the other");

/// How a mover is opened; 0 is the default of each.
struct options : dray_options {
    explicit options(dray::backend who = dray::backend::any) noexcept : dray_options() {
        size = sizeof(dray_options);
        backend = static_cast<std::uint32_t>(who);
    }
};

/// How several queues are used as one; 0 is the default of each.
struct channels_options : dray_channels_options {
    explicit channels_options(dray::backend who = dray::backend::any) noexcept : dray_channels_options() {
        size = sizeof(dray_channels_options);
        backend = static_cast<std::uint32_t>(who);
    }

    /// Sets the field that holds words of this kind; returns these options.
    channels_options &set(dray::require word) noexcept {
        require = static_cast<std::uint32_t>(word);
        return *this;
    }
    channels_options &set(dray::choice word) noexcept {
        choice = static_cast<std::uint32_t>(word);
        return *this;
    }
    channels_options &set(dray::page_fault word) noexcept {
        page_fault = static_cast<std::uint32_t>(word);
        return *this;
    }
    channels_options &set(dray::full_queue word) noexcept {
        full_queue = static_cast<std::uint32_t>(word);
        return *this;
    }
    channels_options &set(dray::lost_queue_policy word) noexcept {
        lost_queue = static_cast<std::uint32_t>(word);
        return *this;
    }
};

/// How a list of pages is copied; 0 is the default of each.
struct page_list_options : dray_page_list_options {
    page_list_options() noexcept : dray_page_list_options() { size = sizeof(dray_page_list_options); }
};

/// Who has copied what of a list of pages.
struct page_list_statistics : dray_page_list_statistics {
    page_list_statistics() noexcept : dray_page_list_statistics() { size = sizeof(dray_page_list_statistics); }
};

/// Where the states of a page list's entries go, and the rows of who has copied how much.
struct page_list_report : dray_page_list_report {
    /// `states_of_entries` has as many as the list, or is nullptr.
    explicit page_list_report(dray_page_state *states_of_entries = nullptr) noexcept : dray_page_list_report() {
        size = sizeof(dray_page_list_report);
        states = states_of_entries;
    }
    page_list_report(dray_page_state *states_of_entries, dray_page_list_row *rows_made, std::size_t most_rows) noexcept
        : page_list_report(states_of_entries) {
        rows = rows_made;
        max_rows = most_rows;
    }
};

/// How integrity fields are checked and made.
struct dif : dray_dif {
    explicit dif(std::uint32_t bytes_of_a_block) noexcept : dray_dif() {
        size = sizeof(dray_dif);
        block_bytes = bytes_of_a_block;
    }
};

/// What an operation with a handle is to do; its fields are those of dray_request.
struct request : dray_request {
    explicit request(operation_code what) noexcept : dray_request() {
        size = sizeof(dray_request);
        operation = static_cast<std::uint32_t>(what);
    }
    static request copy(void *to, const void *from, std::size_t len) noexcept {
        request made(operation_code::copy);
        made.destination = to;
        made.source = from;
        made.bytes = len;
        return made;
    }
    static request crc32c(const void *from, std::size_t len, std::uint32_t seed = 0) noexcept {
        request made(operation_code::crc32c);
        made.source = from;
        made.bytes = len;
        made.value = seed;
        return made;
    }
};

} // namespace dray

#undef DRAY_NODISCARD

#endif
