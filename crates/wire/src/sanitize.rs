//! How programs are watched.

/// Environment variable that says how: [`THREAD`], or nothing.
pub const SANITIZE_VARIABLE: &str = "DRAY_SANITIZE";

/// By ThreadSanitizer, which programs without it are refused for.
pub const THREAD: &str = "thread";
