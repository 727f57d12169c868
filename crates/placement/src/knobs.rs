//! Knobs by the names that others gave them, with their defaults.

/// Environment variables of DTO.
pub mod dto {
    /// Bytes from which on calls are offloaded.
    pub const MIN_BYTES: &str = "DTO_MIN_BYTES";
    /// Its default, in the code of DTO.
    pub const DEFAULT_MIN_BYTES: u64 = 65536;
    /// Share of a call that the CPU does meanwhile, 0 to 1.
    pub const CPU_SIZE_FRACTION: &str = "DTO_CPU_SIZE_FRACTION";
    /// The two above follow the load.
    pub const AUTO_ADJUST_KNOBS: &str = "DTO_AUTO_ADJUST_KNOBS";
    /// How a thread waits for the device.
    pub const WAIT_METHOD: &str = "DTO_WAIT_METHOD";
    /// Cycles of one UMWAIT.
    pub const UMWAIT_DELAY: &str = "DTO_UMWAIT_DELAY";
    /// Which work queue a call goes to, by node.
    pub const IS_NUMA_AWARE: &str = "DTO_IS_NUMA_AWARE";
    /// Names of work queues.
    pub const WQ_LIST: &str = "DTO_WQ_LIST";
    /// Whether memcpy, memmove, memset and memcmp are taken.
    pub const CALLS: [&str; 4] = [
        "DTO_DSA_MEMCPY",
        "DTO_DSA_MEMMOVE",
        "DTO_DSA_MEMSET",
        "DTO_DSA_MEMCMP",
    ];
    /// Destinations go to the cache.
    pub const CACHE_CONTROL: &str = "DTO_DSA_CC";
    /// Moves whose buffers overlap go to the device.
    pub const OVERLAPPING_MEMMOVE_ACTION: &str = "DTO_OVERLAPPING_MEMMOVE_ACTION";
    /// Everything goes to the C library.
    pub const USESTDC_CALLS: &str = "DTO_USESTDC_CALLS";
    /// The library prints a histogram at exit.
    pub const COLLECT_STATS: &str = "DTO_COLLECT_STATS";
    /// Beginning of the name of the file with the histogram.
    pub const LOG_FILE: &str = "DTO_LOG_FILE";
    /// What the library says.
    pub const LOG_LEVEL: &str = "DTO_LOG_LEVEL";
}

/// Controls of kernels-with-dsa, by which lists of pages are copied.
pub mod kernel {
    /// Channels at most.
    pub const LIMIT_CHANS: &str = "limit_chans";
    /// Its default.
    pub const DEFAULT_CHANS: u64 = 8;
    /// CPU threads that copy.
    pub const LIMIT_MT_NUM: &str = "limit_mt_num";
    /// Its default.
    pub const DEFAULT_MT_NUM: u64 = 4;
    /// Base pages from which on a device copies a list.
    pub const DSA_COPY_THRESHOLD: &str = "dsa_copy_threshold";
    /// Its default.
    pub const DEFAULT_THRESHOLD: u64 = 12;
}
