//! Records calls for a survey. Nothing here allocates or locks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::calls::Call;
use crate::site::place;
use crate::survey::{Seen, SurveyFile, cycles};

/// Pages that are remembered: 16 MiB to 256 MiB of buffers, as they are used.
const PAGES: usize = 1 << 16;
/// Of so many calls, the recording of one is timed.
const TIMED: u64 = 64;

/// The recorder of a process.
pub(crate) struct Recorder {
    file: SurveyFile,
    pages: Box<[AtomicU64]>,
    last: AtomicU64,
    calls: AtomicU64,
    /// The process whose map of memory `site` addresses are in.
    process: AtomicU32,
}

impl Recorder {
    pub(crate) fn new(file: SurveyFile) -> Recorder {
        file.begun();
        Recorder {
            file,
            pages: (0..PAGES).map(|_| AtomicU64::new(0)).collect(),
            last: AtomicU64::new(cycles()),
            calls: AtomicU64::new(0),
            process: AtomicU32::new(std::process::id()),
        }
    }

    /// Whether the page was an operand's, of which it is one now.
    fn again(&self, address: usize) -> bool {
        let page = (address >> 12) as u64;
        let at = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        self.pages[at as usize % PAGES].swap(page, Ordering::Relaxed) == page
    }

    pub(crate) fn record(
        &self,
        call: Call,
        to: usize,
        from: Option<usize>,
        len: usize,
        site: usize,
    ) {
        let begin = cycles();
        let gap = begin.saturating_sub(self.last.swap(begin, Ordering::Relaxed));
        let again = self.again(to) & from.is_none_or(|from| self.again(from));
        let seen = Seen {
            call,
            to,
            from,
            len,
            again,
            gap,
        };
        let process = self.process.load(Ordering::Relaxed);
        self.file
            .record(process, site, &seen, |path| place(site, path));
        if self
            .calls
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(TIMED)
        {
            self.file.timed(cycles().saturating_sub(begin));
        }
    }
}
