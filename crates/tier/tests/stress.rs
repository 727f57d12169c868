//! No write is ever lost: threads check what they wrote while the pages under them move, and while
//! they drop, remap and unmap memory and fork.
//!
//! `DRAY_TIER_MOVES` is how many pages each case moves; 200 000 without it. The whole is
//! `DRAY_TIER_MOVES=10000000 cargo test --release -p dray-tier --test stress -- --nocapture`.

mod common;

use std::thread;

use common::{Case, run};
use dray_tier::copier::{Cores, VirtualCopier};
use dray_tier::sys::{HUGE, PAGE, memory};
use dray_tier::{Config, Engine, Order, Outcome, Piece, Release};

fn check(name: &str, case: Case) {
    let outcome = run(&case);
    println!("{name}: {outcome:?}");
    assert_eq!(outcome.lost, 0, "{name}");
    assert!(outcome.moved >= case.moves, "{name}: {outcome:?}");
    assert!(outcome.checked > 0, "{name}");
    if case.huge && outcome.moved_huge == 0 {
        assert!(!common::has_huge_pages(), "{name}: {outcome:?}");
        println!("{name}: the kernel gives no huge pages here, base pages have moved");
    }
}

fn config(order: Order, release: Release) -> Config {
    Config {
        order,
        release,
        ..Config::default()
    }
}

#[test]
fn strict_order_loses_nothing() {
    for release in [Release::Kernel, Release::safe(), Release::Reuse] {
        let config = config(Order::Strict, release);
        check("strict", Case::new(config, || Box::new(Cores::new(1))));
    }
}

/// While the kernel compacts memory it must try again within calls, and since Linux 6.18 it does not count
/// pages that it has moved after that.
#[test]
fn compaction_loses_nothing() {
    for order in [Order::Strict, Order::SharedRead] {
        let case = Case {
            compacts: true,
            hints: order == Order::Strict,
            ..Case::new(config(order, Release::safe()), || Box::new(Cores::new(1)))
        };
        check("compaction", case);
    }
}

#[test]
fn shared_read_loses_nothing() {
    let config = config(Order::SharedRead, Release::safe());
    check("shared-read", Case::new(config, || Box::new(Cores::new(1))));
}

#[test]
fn several_cores_lose_nothing() {
    let config = config(Order::Strict, Release::Reuse);
    check("two cores", Case::new(config, || Box::new(Cores::new(2))));
}

#[test]
fn a_virtual_device_loses_nothing() {
    let config = config(Order::Strict, Release::safe());
    check(
        "virtual",
        Case::new(config, || {
            Box::new(VirtualCopier::start(2).expect("threads"))
        }),
    );
}

#[test]
fn huge_pages_lose_nothing() {
    let config = config(Order::Strict, Release::Kernel);
    let case = Case {
        huge: true,
        ..Case::new(config, || Box::new(Cores::new(1)))
    };
    check("huge", case);
}

#[test]
fn hints_lose_nothing() {
    let config = config(Order::Strict, Release::safe());
    let case = Case {
        hints: true,
        ..Case::new(config, || Box::new(Cores::new(1)))
    };
    check("hints", case);
}

#[test]
fn hints_on_huge_pages_lose_nothing() {
    let config = config(Order::Strict, Release::Kernel);
    let case = Case {
        hints: true,
        huge: true,
        ..Case::new(config, || Box::new(Cores::new(1)))
    };
    check("huge hints", case);
}

#[test]
fn a_copier_that_fails_loses_nothing() {
    let config = config(Order::Strict, Release::safe());
    let case = Case::new(config, || Box::new(common::Failing::default()));
    let moves = case.moves;
    let outcome = run(&case);
    println!("failing: {outcome:?}");
    assert_eq!(outcome.lost, 0);
    assert!(outcome.moved >= moves && outcome.copy_failed > 0);
}

#[test]
fn the_test_detects_writes_lost_without_protection() {
    let config = Config {
        unprotected: true,
        ..config(Order::Strict, Release::Kernel)
    };
    let case = Case {
        churn: false,
        ..Case::new(config, || Box::new(Cores::new(1)))
    };
    let outcome = run(&case);
    println!("negative control: {outcome:?}");
    assert!(outcome.lost > 0, "the test would not see a lost write");
}

/// Pages of a mapping that are there, by mincore(2).
fn present(start: u64, pages: u64) -> usize {
    let mut there = vec![0u8; pages as usize];
    let address = std::ptr::with_exposed_provenance_mut(start as usize);
    // SAFETY: a mapping of this test, and a byte for each of its pages.
    let answer = unsafe { libc::mincore(address, (pages * PAGE) as usize, there.as_mut_ptr()) };
    assert_eq!(answer, 0);
    there.iter().filter(|byte| **byte & 1 == 1).count()
}

/// In `dray tier` the engine's files are in a table of its own: the thread that forks has none of them.
#[test]
fn quiet_puts_hints_back_without_the_engine_s_files() {
    const PAGES: u64 = 100;
    let config = config(Order::Strict, Release::Kernel);
    let engine = Engine::new(config, Box::new(Cores::new(1))).expect("root on Linux 6.8");
    let start = memory::reserve(PAGES * PAGE, PAGE).expect("memory");
    let word =
        |page: u64| std::ptr::with_exposed_provenance_mut::<u64>((start + page * PAGE) as usize);
    for page in 0..PAGES {
        // SAFETY: memory of this test.
        unsafe { word(page).write_volatile(page + 1) };
    }
    let pages: Vec<u64> = (0..PAGES).map(|page| start + page * PAGE).collect();
    thread::scope(|scope| {
        let server = scope.spawn(|| engine.serve());
        let stops = engine.stops();
        for _ in 0..2 {
            engine
                .register(start, start + PAGES * PAGE)
                .expect("memory that can be registered");
            assert_eq!(engine.arm_hints(&pages), PAGES);
            assert_eq!(present(start, PAGES), 0);
            let asking = scope.spawn(|| {
                // SAFETY: this thread alone gets a table of files of its own.
                assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
                // SAFETY: which is emptied.
                let alone = unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) };
                assert_eq!(alone, 0);
                let quiet = engine.quiet();
                let there = present(start, PAGES);
                drop(quiet);
                there
            });
            assert_eq!(asking.join().expect("a thread"), PAGES as usize);
        }
        drop(stops);
        server.join().expect("the server");
    });
    for page in 0..PAGES {
        // SAFETY: as above.
        assert_eq!(unsafe { word(page).read_volatile() }, page + 1);
    }
    assert_eq!(engine.take_vanished(), 0);
    // SAFETY: this test's, and nothing uses it any more.
    unsafe { memory::unmap(start, PAGES * PAGE) };
}

/// While the layout changes no page can be protected, and then none may be copied: a write would be lost.
#[test]
fn pages_that_cannot_be_protected_are_not_copied() {
    const PAGES: u64 = 128;
    let config = config(Order::SharedRead, Release::Kernel);
    let engine = Engine::new(config, Box::new(Cores::new(1))).expect("root on Linux 6.8");
    let start = memory::reserve(2 * PAGES * PAGE, PAGE).expect("memory");
    let end = start + 2 * PAGES * PAGE;
    memory::advise(start, end - start, libc::MADV_POPULATE_WRITE).expect("memory");
    engine
        .register(start, end)
        .expect("memory that can be registered");
    let piece = Piece {
        start,
        len: PAGES * PAGE,
        huge: false,
    };
    thread::scope(|scope| {
        // The call waits in the kernel until its event is read, which does not happen yet.
        let dropping = scope.spawn(|| {
            // SAFETY: the test's own memory, without references into it.
            unsafe { memory::empty(start + PAGES * PAGE, PAGE) }.expect("it is ours");
        });
        // It cannot end before; if it has ended, it has failed.
        while !engine.is_layout_changing() && !dropping.is_finished() {
            thread::yield_now();
        }
        let report = engine.migrate(&[piece], 1);
        // From here on no thread waits, whatever is found.
        let server = scope.spawn(|| engine.serve());
        let stops = engine.stops();
        dropping.join().expect("a thread");
        drop(stops);
        server.join().expect("the server");
        assert_eq!(report.outcomes.get(Outcome::Changing), PAGES);
        assert_eq!(report.copied.core, 0);
    });
    // SAFETY: this test's, and nothing uses it any more.
    unsafe { memory::unmap(start, end - start) };
}

/// A batch has pages that were never touched: a copy would wait for each of them.
#[test]
fn absent_pages_do_not_block_a_batch() {
    const PAGES: u64 = 64;
    let config = config(Order::SharedRead, Release::Kernel);
    let engine = Engine::new(config, Box::new(Cores::new(1))).expect("root on Linux 6.8");
    let start = memory::reserve(PAGES * PAGE, PAGE).expect("memory");
    let word =
        |page: u64| std::ptr::with_exposed_provenance_mut::<u64>((start + page * PAGE) as usize);
    let touched = |page: u64| page.is_multiple_of(3);
    for page in (0..PAGES).filter(|page| touched(*page)) {
        // SAFETY: memory of this test.
        unsafe { word(page).write_volatile(page + 1) };
    }
    engine
        .register(start, start + PAGES * PAGE)
        .expect("memory that can be registered");
    let piece = Piece {
        start,
        len: PAGES * PAGE,
        huge: false,
    };
    let report = thread::scope(|scope| {
        let server = scope.spawn(|| engine.serve());
        let stops = engine.stops();
        let report = engine.migrate(&[piece], 1);
        drop(stops);
        server.join().expect("the server");
        report
    });
    let there = (0..PAGES).filter(|page| touched(*page)).count() as u64;
    assert_eq!(report.outcomes.get(Outcome::Moved), there);
    assert_eq!(report.outcomes.get(Outcome::Gone), PAGES - there);
    drop(engine);
    for page in 0..PAGES {
        let expected = if touched(page) { page + 1 } else { 0 };
        // SAFETY: as above.
        assert_eq!(unsafe { word(page).read_volatile() }, expected);
    }
    // SAFETY: this test's, and nothing uses it any more.
    unsafe { memory::unmap(start, PAGES * PAGE) };
}

/// The test disables huge pages in its process, so it runs in a process of its own.
#[test]
fn a_huge_page_without_a_huge_frame_is_not_moved() {
    const NAME: &str = "a_huge_page_without_a_huge_frame_is_not_moved";
    if std::env::var_os("DRAY_TIER_ALONE").is_none() {
        let itself = std::env::current_exe().expect("this test");
        let mut alone = std::process::Command::new(itself);
        alone.args(["--exact", NAME]).env("DRAY_TIER_ALONE", "1");
        assert!(alone.status().expect("it starts").success());
        return;
    }
    const PAGES: u64 = HUGE / PAGE;
    let config = config(Order::Strict, Release::Kernel);
    let engine = Engine::new(config, Box::new(Cores::new(1))).expect("root on Linux 6.8");
    let start = memory::reserve(HUGE, HUGE).expect("memory");
    memory::advise(start, HUGE, libc::MADV_HUGEPAGE).expect("it is ours");
    let word =
        |page: u64| std::ptr::with_exposed_provenance_mut::<u64>((start + page * PAGE) as usize);
    for page in 0..PAGES {
        // SAFETY: memory of this test.
        unsafe { word(page).write_volatile(page + 1) };
    }
    // SAFETY: from now on this process gets base pages alone.
    let refused = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    assert_eq!(refused, 0);
    engine
        .register(start, start + HUGE)
        .expect("memory that can be registered");
    let piece = |huge| Piece {
        start,
        len: HUGE,
        huge,
    };
    let (stays, moves) = thread::scope(|scope| {
        let server = scope.spawn(|| engine.serve());
        let stops = engine.stops();
        let stays = engine.migrate(&[piece(true)], 1);
        // What the manager does then: base pages find frames.
        let moves = engine.migrate(&[piece(false)], 1);
        drop(stops);
        server.join().expect("the server");
        (stays, moves)
    });
    assert_eq!(stays.outcomes.get(Outcome::NoHugeFrame), PAGES);
    assert_eq!(moves.outcomes.get(Outcome::Moved), PAGES);
    for page in 0..PAGES {
        // SAFETY: as above.
        assert_eq!(unsafe { word(page).read_volatile() }, page + 1);
    }
    // SAFETY: this test's, and nothing uses it any more.
    unsafe { memory::unmap(start, HUGE) };
}
