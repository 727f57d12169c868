//! Frames that something else refers to, and frames that are used again.

use std::io::Read;
use std::thread;

use dray_tier::copier::Cores;
use dray_tier::mechanism::BASE_SLOTS;
use dray_tier::sys::{PAGE, memory, references};
use dray_tier::{Config, Engine, Order, Outcome, Piece, Release};

const PAGES: u64 = 256;

fn fill(start: u64, pages: u64, round: u64) {
    for page in 0..pages {
        let word: *mut u64 = std::ptr::with_exposed_provenance_mut((start + page * PAGE) as usize);
        for at in 0..PAGE as usize / 8 {
            let word = word.wrapping_add(at);
            // SAFETY: memory of the test.
            unsafe { word.write_volatile((page << 32) + round) };
        }
    }
}

/// Moves pages of which some are in pipes there and back, while the program goes on writing them; pipes whose content
/// was not what was put in them, and pages in the pipes of all rounds.
fn spliced_and_moved(order: Order, release: Release) -> (usize, usize) {
    const ROUNDS: u64 = 6;
    let config = Config {
        order,
        release,
        ..Config::default()
    };
    let engine = Engine::new(config, Box::new(Cores::new(1))).expect("root on Linux 6.8");
    let start = memory::reserve(PAGES * PAGE, PAGE).expect("memory");
    memory::advise(start, PAGES * PAGE, libc::MADV_NOHUGEPAGE).expect("it is ours");
    let piece = Piece {
        start,
        len: PAGES * PAGE,
        huge: false,
    };
    let mut pipes = Vec::new();
    thread::scope(|scope| {
        let server = scope.spawn(|| engine.serve());
        let stops = engine.stops();
        engine
            .register(start, start + PAGES * PAGE)
            .expect("memory that can be registered");
        for round in 1..=ROUNDS {
            fill(start, PAGES, round);
            for page in [0, 1, PAGES / 2, PAGES - 1] {
                // SAFETY: a page of the test's own, of words that nothing refers to.
                let ends = unsafe { references::spliced(start + page * PAGE) }.expect("a pipe");
                pipes.push((page, round, ends));
            }
            for to in [1, 0] {
                let report = engine.migrate(&[piece], to);
                // The kernel may be moving one of them itself.
                assert!(report.outcomes.get(Outcome::Moved) > 0, "{report:?}");
            }
            // What is in a pipe is what was in the page when it was put there, or what the program has written since:
            // these frames have left the program, so nothing that it writes now may be seen.
            fill(start, PAGES, 1000 + round);
            for to in [1, 0] {
                engine.migrate(&[piece], to);
            }
        }
        drop(stops);
        server.join().expect("the server");
    });
    let count = pipes.len();
    let wrong = pipes
        .into_iter()
        .filter_map(|(page, round, (mut reads, writes))| {
            drop(writes);
            let mut bytes = Vec::new();
            reads.read_to_end(&mut bytes).expect("a page");
            let expected = ((page << 32) + round).to_ne_bytes();
            let whole =
                bytes.len() == PAGE as usize && bytes.chunks(8).all(|word| word == expected);
            (!whole).then_some(())
        });
    let wrong = wrong.count();
    // SAFETY: this test's, and nothing uses it any more.
    unsafe { memory::unmap(start, PAGES * PAGE) };
    (wrong, count)
}

/// Frames that are reused without a check change the contents of a pipe, which shows that the test detects it.
#[test]
fn pages_spliced_into_a_pipe_keep_their_contents() {
    for order in [Order::Strict, Order::SharedRead] {
        for release in [Release::Kernel, Release::safe()] {
            let (wrong, count) = spliced_and_moved(order, release);
            assert_eq!((wrong, count), (0, 24), "{order:?} {release:?}");
        }
        let (wrong, _) = spliced_and_moved(order, Release::Reuse);
        assert!(wrong > 0, "the test would not see it: {order:?}");
    }
}

/// On a kernel that reports references to frames no new frames are allocated. Pages move in batches up to the largest.
#[test]
fn free_frames_are_reused() {
    if !references::can_be_checked() {
        dray_skip::skip("this kernel does not say what refers to frames");
        return;
    }
    let config = Config {
        release: Release::Checked,
        ..Config::default()
    };
    for pages in [1, 34, 510, 511, 512, BASE_SLOTS] {
        let engine = Engine::new(config, Box::new(Cores::new(1))).expect("root on Linux 6.8");
        let start = memory::reserve(pages * PAGE, PAGE).expect("memory");
        memory::advise(start, pages * PAGE, libc::MADV_NOHUGEPAGE).expect("it is ours");
        fill(start, pages, 7);
        let piece = Piece {
            start,
            len: pages * PAGE,
            huge: false,
        };
        let faults = thread::scope(|scope| {
            let server = scope.spawn(|| engine.serve());
            let stops = engine.stops();
            engine
                .register(start, start + pages * PAGE)
                .expect("memory that can be registered");
            let faults: Vec<(bool, u64)> = (0..12)
                .map(|round| {
                    let before = faults();
                    let report = engine.migrate(&[piece], round % 2);
                    let all = report.outcomes.get(Outcome::Moved) == pages;
                    (all, faults() - before)
                })
                .collect();
            drop(stops);
            server.join().expect("the server");
            faults
        });
        for page in 0..pages {
            let word: *const u64 =
                std::ptr::with_exposed_provenance((start + page * PAGE) as usize);
            // SAFETY: memory of the test.
            assert_eq!(unsafe { word.read_volatile() }, (page << 32) + 7);
        }
        // SAFETY: this test's, and nothing uses it any more.
        unsafe { memory::unmap(start, pages * PAGE) };
        // The kernel may be moving a page or a frame at the time of the check, but not each time.
        let reused = faults
            .iter()
            .skip(2)
            .filter(|(all, faults)| *all && *faults < pages)
            .count();
        assert!(reused > 0, "{pages} pages: {faults:?} new frames");
    }
}

/// Page faults of this thread: each new frame is one.
fn faults() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the place is written to.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: all zeros, or what the call has written.
    unsafe { usage.assume_init() }.ru_minflt as u64
}
