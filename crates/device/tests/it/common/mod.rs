//! A device to test, and what runs it step by step.

pub(crate) mod in_place;
pub(crate) mod manual_runner;
pub(crate) mod oracle;
pub(crate) mod profile;

use proptest::test_runner::{Config, FileFailurePersistence};

/// A property tried `n` times; what fails is kept beside the test's source, to be tried first.
pub(crate) fn cases(n: u32) -> Config {
    Config {
        cases: n,
        max_global_rejects: 4 * n,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..Config::default()
    }
}
