//! Threads that check their memory while an engine moves it.

mod failing;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dray_tier::sys::{HUGE, PAGE, memory};
use dray_tier::{Config, Engine, PageCopier, Piece};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

pub(crate) use failing::Failing;

/// Pages of a thread's memory at the start.
const PAGES: u64 = 2048;
const WRITERS: u64 = 2;
/// Pages to ask for, at most, for each one that is to move. About 10 are asked for.
const MOST_ASKED: u64 = 100;
/// How long no thread may have memory.
const WITHOUT: Duration = Duration::from_secs(120);

/// What runs.
pub(crate) struct Case {
    pub(crate) config: Config,
    pub(crate) copier: fn() -> Box<dyn PageCopier>,
    /// Pages to move.
    pub(crate) moves: u64,
    /// Threads drop, remap, unmap and fork.
    pub(crate) churn: bool,
    pub(crate) huge: bool,
    pub(crate) hints: bool,
    /// The kernel compacts memory meanwhile, where that is allowed.
    pub(crate) compacts: bool,
}

impl Case {
    pub(crate) fn new(config: Config, copier: fn() -> Box<dyn PageCopier>) -> Case {
        let moves = std::env::var("DRAY_TIER_MOVES");
        Case {
            config,
            copier,
            moves: moves.map_or(200_000, |text| text.parse().expect("a number")),
            churn: true,
            huge: false,
            hints: false,
            compacts: false,
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) moved: u64,
    /// Of them in huge pages.
    pub(crate) moved_huge: u64,
    pub(crate) asked: u64,
    pub(crate) copy_failed: u64,
    pub(crate) checked: u64,
    /// Words that were not as they were written.
    pub(crate) lost: u64,
    pub(crate) changes: u64,
    pub(crate) forks: u64,
    pub(crate) hinted: u64,
    pub(crate) outcomes: Vec<(&'static str, u64)>,
}

/// Where the threads have memory now; 0 is nowhere.
struct Board {
    areas: Mutex<Vec<(u64, u64)>>,
    stop: AtomicBool,
    checked: AtomicU64,
    lost: AtomicU64,
    changes: AtomicU64,
    forks: AtomicU64,
}

/// Ends the threads, also where one of them or the engine panics: the test would wait for the others.
struct Ends<'a>(&'a Board);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Release);
    }
}

pub(crate) fn run(case: &Case) -> Outcome {
    let engine = Engine::new(case.config, (case.copier)()).expect("root on Linux 6.8");
    let board = Board {
        areas: Mutex::new(vec![(0, 0); WRITERS as usize]),
        stop: AtomicBool::new(false),
        checked: AtomicU64::new(0),
        lost: AtomicU64::new(0),
        changes: AtomicU64::new(0),
        forks: AtomicU64::new(0),
    };
    let mut outcome = Outcome::default();
    thread::scope(|scope| {
        let (engine, board) = (&engine, &board);
        let ends = Ends(board);
        let server = scope.spawn(|| engine.serve());
        let stops = engine.stops();
        let writers: Vec<_> = (0..WRITERS)
            .map(|id| scope.spawn(move || Writer::new(engine, board, id, case).run()))
            .collect();
        if case.compacts {
            scope.spawn(|| compact(board));
        }
        migrate(engine, board, case, &mut outcome);
        drop(ends);
        for writer in writers {
            writer.join().expect("a writer");
        }
        drop(stops);
        server.join().expect("the server");
    });
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    outcome.checked = read(&board.checked);
    outcome.lost = read(&board.lost);
    outcome.changes = read(&board.changes);
    outcome.forks = read(&board.forks);
    outcome
}

/// Whether the kernel gives this process a huge page.
pub(crate) fn has_huge_pages() -> bool {
    let start = memory::reserve(HUGE, HUGE).expect("memory");
    memory::advise(start, HUGE, libc::MADV_HUGEPAGE).expect("it is ours");
    memory::advise(start, HUGE, libc::MADV_POPULATE_WRITE).expect("memory");
    let smaps = std::fs::read_to_string("/proc/self/smaps").expect("this process's own");
    // SAFETY: this function's, and nothing uses it any more.
    unsafe { memory::unmap(start, HUGE) };
    let mapping = format!("{start:x}-");
    smaps
        .lines()
        .skip_while(|line| !line.starts_with(&mapping))
        .find_map(|line| line.strip_prefix("AnonHugePages:"))
        .is_some_and(|size| !size.trim_start().starts_with("0 "))
}

/// Has the kernel compact memory of which every second page was freed, until the threads end.
fn compact(board: &Board) {
    const BYTES: u64 = 32 << 20;
    while !board.stop.load(Ordering::Acquire) {
        let start = memory::reserve(BYTES, PAGE).expect("memory");
        memory::advise(start, BYTES, libc::MADV_NOHUGEPAGE).expect("it is ours");
        memory::advise(start, BYTES, libc::MADV_POPULATE_WRITE).expect("memory");
        for page in (0..BYTES / PAGE).step_by(2) {
            // SAFETY: the test's own memory, without references into it.
            unsafe { memory::empty(start + page * PAGE, PAGE) }.expect("it is ours");
        }
        let written = std::fs::write("/proc/sys/vm/compact_memory", "1");
        // SAFETY: this function's, and nothing uses it any more.
        unsafe { memory::unmap(start, BYTES) };
        if let Err(error) = written {
            println!("the kernel cannot be made to compact memory: {error}");
            return;
        }
    }
}

/// Moves pages of the threads until enough have moved.
fn migrate(engine: &Engine, board: &Board, case: &Case, outcome: &mut Outcome) {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut totals = dray_tier::mechanism::Outcomes::default();
    let mut without: Option<Instant> = None;
    while outcome.moved < case.moves {
        let areas = board.areas.lock().expect("no panic").clone();
        let (start, len) = areas[(rng.next_u64() % WRITERS) as usize];
        if len == 0 {
            // A thread has none between two mappings; one that has panicked will have none any more.
            let since = *without.get_or_insert_with(Instant::now);
            assert!(since.elapsed() < WITHOUT, "no thread has memory to move");
            thread::yield_now();
            continue;
        }
        without = None;
        let pages = len / PAGE;
        if case.hints && rng.next_u32().is_multiple_of(4) {
            let hints: Vec<u64> = (0..64)
                .map(|_| start + rng.next_u64() % pages * PAGE)
                .collect();
            match case.huge {
                true => {
                    let first = start.next_multiple_of(HUGE);
                    let huge = hints.iter().map(|page| page / HUGE * HUGE);
                    let inside: Vec<u64> = huge.filter(|page| *page >= first).collect();
                    engine.arm_huge_hints(&inside)
                }
                false => engine.arm_hints(&hints),
            };
            thread::yield_now();
            let (touched, untouched) = engine.collect_hints();
            outcome.hinted += (touched.len() + untouched.len()) as u64;
        }
        let pieces: Vec<Piece> = if case.huge {
            let first = start.next_multiple_of(HUGE);
            let count = (start + len).saturating_sub(first) / HUGE;
            let pick = (rng.next_u64() % count.max(1)) * HUGE;
            vec![Piece {
                start: first + pick,
                len: HUGE * u64::from(count > 0),
                huge: true,
            }]
        } else {
            // One long run and some single pages.
            let run = 1 + rng.next_u64() % 512.min(pages);
            let at = rng.next_u64() % (pages - run + 1);
            let mut pieces = vec![Piece {
                start: start + at * PAGE,
                len: run * PAGE,
                huge: false,
            }];
            for _ in 0..rng.next_u64() % 4 {
                let page = rng.next_u64() % pages;
                if !(at..at + run).contains(&page)
                    && pieces.iter().all(|p| p.start != start + page * PAGE)
                {
                    pieces.push(Piece {
                        start: start + page * PAGE,
                        len: PAGE,
                        huge: false,
                    });
                }
            }
            pieces
        };
        let to = (rng.next_u32() & 1) as usize;
        let mut report = engine.migrate(&pieces, to);
        if case.huge {
            outcome.moved_huge += report.outcomes.get(dray_tier::Outcome::Moved);
        }
        // What the manager does then: a machine may have no huge frame, and base pages find frames.
        if report.outcomes.get(dray_tier::Outcome::NoHugeFrame) > 0 {
            outcome.asked += report.pages;
            totals.merge(&report.outcomes);
            let base = pieces.iter().map(|piece| Piece {
                huge: false,
                ..*piece
            });
            report = engine.migrate(&base.collect::<Vec<_>>(), to);
        }
        outcome.asked += report.pages;
        totals.merge(&report.outcomes);
        outcome.moved = totals.get(dray_tier::Outcome::Moved);
        // Without an end a test that moves nothing would say nothing.
        if outcome.asked > MOST_ASKED * case.moves {
            break;
        }
    }
    outcome.copy_failed = totals.get(dray_tier::Outcome::CopyFailed);
    outcome.outcomes = totals
        .iter()
        .filter(|(_, pages)| *pages > 0)
        .map(|(outcome, pages)| (outcome.name(), pages))
        .collect();
}

/// A thread with memory of its own, and what must be in it.
struct Writer<'a> {
    engine: &'a Engine,
    board: &'a Board,
    id: u64,
    churn: bool,
    huge: bool,
    rng: ChaCha8Rng,
    start: u64,
    /// What the first word of each page is.
    expected: Vec<u64>,
}

impl Writer<'_> {
    fn new<'a>(engine: &'a Engine, board: &'a Board, id: u64, case: &Case) -> Writer<'a> {
        let mut writer = Writer {
            engine,
            board,
            id,
            churn: case.churn,
            huge: case.huge,
            rng: ChaCha8Rng::seed_from_u64(id),
            start: 0,
            expected: Vec::new(),
        };
        writer.map(PAGES);
        writer
    }

    fn len(&self) -> u64 {
        self.expected.len() as u64 * PAGE
    }

    fn publish(&self) {
        self.board.areas.lock().expect("no panic")[self.id as usize] = (self.start, self.len());
    }

    fn map(&mut self, pages: u64) {
        let len = (pages * PAGE) as usize;
        // SAFETY: new memory wherever there is room.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        if self.huge {
            // SAFETY: mapped above.
            unsafe { libc::madvise(start, len, libc::MADV_HUGEPAGE) };
        }
        self.start = start.expose_provenance() as u64;
        self.expected = vec![0; pages as usize];
        for page in 0..pages {
            self.write(page);
        }
        self.engine
            .register(self.start, self.start + self.len())
            .expect("memory that can be registered");
        self.publish();
    }

    fn word(&self, page: u64) -> *mut u64 {
        // A word of its own in each page, not always the first.
        let at = self.start + page * PAGE + page % 512 * 8;
        std::ptr::with_exposed_provenance_mut(at as usize)
    }

    fn write(&mut self, page: u64) {
        let value = self.rng.next_u64() | 1;
        self.expected[page as usize] = value;
        // SAFETY: this thread's memory.
        unsafe { self.word(page).write_volatile(value) };
    }

    fn check(&self, page: u64) -> bool {
        // SAFETY: this thread's memory.
        unsafe { self.word(page).read_volatile() == self.expected[page as usize] }
    }

    fn check_all(&mut self) {
        for page in 0..self.expected.len() as u64 {
            self.checked(page);
        }
    }

    fn checked(&mut self, page: u64) {
        self.board.checked.fetch_add(1, Ordering::Relaxed);
        if !self.check(page) {
            self.board.lost.fetch_add(1, Ordering::Relaxed);
            self.write(page);
        }
    }

    fn run(mut self) {
        while !self.board.stop.load(Ordering::Acquire) {
            for _ in 0..2000 {
                let page = self.rng.next_u64() % self.expected.len() as u64;
                self.checked(page);
                self.write(page);
            }
            if self.churn {
                self.change();
            }
        }
        self.check_all();
        self.board.areas.lock().expect("no panic")[self.id as usize] = (0, 0);
        self.unmap();
    }

    fn change(&mut self) {
        self.board.changes.fetch_add(1, Ordering::Relaxed);
        let pages = self.expected.len() as u64;
        match self.rng.next_u64() % 16 {
            0..8 => {
                let first = self.rng.next_u64() % pages;
                let count = 1 + self.rng.next_u64() % 64.min(pages - first);
                self.drop_pages(first, count);
            }
            8..12 => self.remap(pages + 256),
            12 | 13 => self.remap(pages - 128),
            14 => {
                self.check_all();
                self.unmap();
                self.map(PAGES);
            }
            _ => self.fork(),
        }
        if self.expected.len() as u64 > 3 * PAGES {
            self.remap(PAGES);
        }
    }

    fn drop_pages(&mut self, first: u64, count: u64) {
        let at = std::ptr::with_exposed_provenance_mut((self.start + first * PAGE) as usize);
        // SAFETY: this thread's memory.
        let answer = unsafe { libc::madvise(at, (count * PAGE) as usize, libc::MADV_DONTNEED) };
        assert_eq!(answer, 0);
        for page in first..first + count {
            self.expected[page as usize] = 0;
        }
        // Half of it is looked at at once.
        for page in first..first + count / 2 {
            self.checked(page);
        }
    }

    fn remap(&mut self, pages: u64) {
        let old = std::ptr::with_exposed_provenance_mut(self.start as usize);
        let (from, to) = (self.len() as usize, (pages * PAGE) as usize);
        let moves = self.rng.next_u32() & 1 == 0;
        let new = if moves {
            // SAFETY: a hole of that size: it is where the memory goes.
            let hole = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    to,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            // SAFETY: this thread's memory goes to the hole.
            unsafe { libc::mremap(old, from, to, flags, hole) }
        } else {
            // SAFETY: this thread's memory.
            unsafe { libc::mremap(old, from, to, libc::MREMAP_MAYMOVE) }
        };
        assert_ne!(new, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        self.start = new.expose_provenance() as u64;
        let before = self.expected.len() as u64;
        self.expected.resize(pages as usize, 0);
        for page in before..pages {
            // Grown memory is zero.
            self.checked(page);
            self.write(page);
        }
        self.engine
            .register(self.start, self.start + self.len())
            .expect("memory that can be registered");
        self.publish();
    }

    fn unmap(&mut self) {
        let start = std::ptr::with_exposed_provenance_mut(self.start as usize);
        // SAFETY: this thread's memory.
        assert_eq!(unsafe { libc::munmap(start, self.len() as usize) }, 0);
    }

    /// A child finds everything as it was.
    fn fork(&mut self) {
        let quiet = self.engine.quiet();
        // The C library's fork holds the locks of malloc until the server, a thread of this process that allocates, has
        // handled its event. What programs load under dray tier has memory of its own.
        // SAFETY: the child checks memory and ends.
        let child = unsafe { libc::syscall(libc::SYS_fork) } as libc::pid_t;
        if child == 0 {
            let lost = (0..self.expected.len() as u64).any(|page| !self.check(page));
            // SAFETY: it ends the child.
            unsafe { libc::_exit(i32::from(lost)) };
        }
        drop(quiet);
        for page in (0..self.expected.len() as u64).step_by(3) {
            self.write(page);
        }
        let mut status = 0;
        // SAFETY: our child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        self.board.forks.fetch_add(1, Ordering::Relaxed);
        if status != 0 {
            self.board.lost.fetch_add(1, Ordering::Relaxed);
        }
        // Those that the child shared were shared for its life; written ones are this thread's again.
        for page in 0..self.expected.len() as u64 {
            self.write(page);
        }
    }
}
