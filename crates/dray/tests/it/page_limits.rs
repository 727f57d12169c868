//! Lists of pages in a process that is at one of its limits.

use std::process::Command;

use dray::CpuMover;
use dray::pages::{PageCopy, PageListOptions, copy_page_lists};

use crate::memory::{Guarded, PAGE};

/// More than the caches of a core hold.
const PAGES: usize = 1024;

/// Set in the process that has the limit.
const CHILD: &str = "DRAY_TEST_PAGE_LIMITS";

/// Runs `limited` in a process of its own, in which the test `name` is the only one.
fn in_child(name: &str, limited: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return limited();
    }
    let test = std::env::current_exe().expect("this program");
    let name = format!("page_limits::{name}");
    let ended = Command::new(test)
        .args(["--exact", &name, "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .expect("a process");
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{}: {text}", ended.status);
    assert!(text.contains("1 passed"), "{text}");
}

fn limits(most: u64) -> libc::rlimit {
    libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    }
}

fn copy(source: &Guarded, target: &Guarded) {
    let list = [PageCopy {
        source: source.address(),
        destination: target.address(),
        bytes: source.len() as u64,
    }];
    let none: &mut [CpuMover] = &mut [];
    // SAFETY: memory of the caller.
    let counts = unsafe { copy_page_lists(none, &list, &PageListOptions::default()) };
    let counts = counts.expect("pages that can be accessed");
    assert_eq!(counts.below_threshold_bytes, source.len() as u64);
    assert!(**source == **target);
}

#[test]
fn without_further_threads_the_calling_one_copies_all() {
    in_child("without_further_threads_the_calling_one_copies_all", || {
        let (source, target) = (Guarded::noise(PAGES, 1), Guarded::new(PAGES));
        let sizes = std::fs::read_to_string("/proc/self/statm").expect("this process");
        let pages = sizes.split(' ').next().and_then(|pages| pages.parse().ok());
        let bytes = pages.map_or(0, |pages: u64| pages * PAGE as u64);
        // Room for a few allocations, and not for the stack of a thread.
        let most = limits(bytes + (1 << 20));
        // SAFETY: reads the structure.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &most) }, 0);
        assert!(std::thread::Builder::new().spawn(|| ()).is_err());
        copy(&source, &target);
    });
}

#[test]
fn a_limit_of_file_sizes_is_none_of_copies() {
    in_child("a_limit_of_file_sizes_is_none_of_copies", || {
        let none = limits(0);
        // SAFETY: reads the structure.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &none) }, 0);
        copy(&Guarded::noise(PAGES, 2), &Guarded::new(PAGES));
    });
}
