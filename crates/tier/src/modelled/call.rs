//! What one call that migrates pages takes, by who copies and in what order.

use super::MigrationParameters;

/// Base pages of a huge page.
const BASE_PAGES: u64 = 512;
/// `dsa_copy_threshold`: lists of fewer base pages are copied by a core.
const COPY_THRESHOLD: u64 = 12;
/// `limit_mt_num`: threads that copy.
const THREADS: f64 = 4.0;
/// Pages from which a batch from user space flushes all translations at once.
const KNEE: u64 = 34;

/// Who migrates pages, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum System {
    /// The kernel: page after page, copied by one core.
    Kernel,
    /// The kernel, page after page; the devices copy pages of 2 MiB.
    HugeDsa,
    /// The kernel, all pages of a call together; several threads copy.
    ConcurrentThreads,
    /// The kernel, all pages of a call together; the devices copy.
    ConcurrentDsa,
    /// `dray tier` from user space, copied by one core.
    UserCore,
    /// `dray tier` from user space; the devices copy.
    UserDsa,
}

/// Pages of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Pages {
    /// Pages of 2 MiB.
    pub huge: u64,
    /// Pages of 4 KiB.
    pub base: u64,
}

impl Pages {
    /// Their bytes.
    pub fn bytes(self) -> u64 {
        (self.huge * BASE_PAGES + self.base) * 4096
    }
}

/// A time that grows with a number: `first` for the first of them, `each` for every further one, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Linear {
    /// Of one.
    pub first: f64,
    /// Of each further one.
    pub each: f64,
}

impl Linear {
    /// For so many.
    pub fn of(self, count: u64) -> f64 {
        match count {
            0 => 0.0,
            n => self.first + self.each * (n - 1) as f64,
        }
    }
}

/// What copies take.
pub trait Copies {
    /// Time for one core to copy these pages, in ns.
    fn by_core(&self, pages: Pages) -> f64;
    /// Time for the devices to copy these pages, in ns.
    fn by_device(&self, pages: Pages) -> f64;
    /// Bytes a nanosecond that no number of cores exceeds.
    fn ceiling(&self) -> f64;
}

/// Times of copies that grow with the number of pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyTimes {
    /// A core, pages of 4 KiB.
    pub core_base: Linear,
    /// A core, pages of 2 MiB.
    pub core_huge: Linear,
    /// The devices, pages of 4 KiB in batches.
    pub device_base: Linear,
    /// The devices, pages of 2 MiB, each spread over all of them.
    pub device_huge: Linear,
    /// Bytes a nanosecond that no number of cores exceeds.
    pub ceiling: f64,
}

impl Copies for CopyTimes {
    fn by_core(&self, pages: Pages) -> f64 {
        self.core_base.of(pages.base) + self.core_huge.of(pages.huge)
    }

    fn by_device(&self, pages: Pages) -> f64 {
        self.device_base.of(pages.base) + self.device_huge.of(pages.huge)
    }

    fn ceiling(&self) -> f64 {
        self.ceiling
    }
}

/// Time of a call in ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TimeOfCall {
    /// Copying.
    pub copy: f64,
    /// All else.
    pub rest: f64,
}

impl TimeOfCall {
    /// Both together.
    pub fn total(self) -> f64 {
        self.copy + self.rest
    }
}

impl System {
    /// Time of one call for these pages.
    pub fn call(self, pages: Pages, p: &MigrationParameters, copies: &dyn Copies) -> TimeOfCall {
        let (huge, base) = (pages.huge as f64, pages.base as f64);
        let only = |huge, base| Pages { huge, base };
        let kernel = |page: f64| p.call + page * base + p.huge_page * huge;
        let user = || {
            let page = match pages.base >= KNEE {
                true => p.move_page,
                false => p.move_page_few,
            };
            page * base + p.move_huge_page * huge
        };
        // Short lists stay with the core.
        let device = || match pages.huge * BASE_PAGES + pages.base >= COPY_THRESHOLD {
            true => copies.by_device(pages),
            false => copies.by_core(pages),
        };
        let (copy, rest) = match self {
            System::Kernel => (copies.by_core(pages), kernel(p.page)),
            // One after another: each huge page waits for its own copy.
            System::HugeDsa => (
                copies.by_core(only(0, pages.base)) + huge * copies.by_device(only(1, 0)),
                kernel(p.page),
            ),
            System::ConcurrentThreads => {
                let together =
                    (copies.by_core(pages) / THREADS).max(pages.bytes() as f64 / copies.ceiling());
                // One page is one thread's.
                match pages.huge + pages.base {
                    1 if pages.base == 1 => (copies.by_core(pages), kernel(p.page_together)),
                    _ => (together + p.thread_start, kernel(p.page_together)),
                }
            }
            System::ConcurrentDsa => (device(), kernel(p.page_together)),
            System::UserCore => (copies.by_core(pages), user()),
            System::UserDsa => (device(), user()),
        };
        match pages {
            Pages { huge: 0, base: 0 } => TimeOfCall::default(),
            _ => TimeOfCall { copy, rest },
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const TIMES: CopyTimes = CopyTimes {
        core_base: Linear {
            first: 500.0,
            each: 500.0,
        },
        core_huge: Linear {
            first: 240_000.0,
            each: 240_000.0,
        },
        device_base: Linear {
            first: 1000.0,
            each: 40.0,
        },
        device_huge: Linear {
            first: 20_000.0,
            each: 18_000.0,
        },
        ceiling: 100.0,
    };

    #[test]
    fn dsa_migrates_faster_than_threads_and_threads_than_one_core() {
        let p = MigrationParameters::built_in();
        let most = Pages {
            huge: 24,
            base: 1024,
        };
        let time = |system: System| system.call(most, &p, &TIMES).total();
        assert!(time(System::ConcurrentDsa) < time(System::ConcurrentThreads));
        assert!(time(System::ConcurrentThreads) < time(System::Kernel));
        assert!(time(System::HugeDsa) < time(System::Kernel));
        assert!(time(System::UserDsa) < time(System::ConcurrentDsa));
    }

    #[test]
    fn a_single_base_page_gains_nothing_from_a_device() {
        let p = MigrationParameters::built_in();
        let one = Pages { huge: 0, base: 1 };
        let copy = |system: System| system.call(one, &p, &TIMES).copy;
        assert_eq!(copy(System::ConcurrentDsa), copy(System::Kernel));
        assert_eq!(copy(System::HugeDsa), copy(System::Kernel));
        let none = Pages::default();
        assert_eq!(System::Kernel.call(none, &p, &TIMES), TimeOfCall::default());
    }
}
