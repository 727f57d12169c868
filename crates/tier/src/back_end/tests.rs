//! The same policy over each back end: the same blocks move.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::copier::Cores;
use crate::kernel::KernelBackEnd;
use crate::mechanism::{BLOCK, BLOCK_PAGES, Config, Engine, block_of};
use crate::nodes::{Source, Tiers};
use crate::policy::{POLICIES, by_index};
use crate::session::{Setup, VIRTUAL};
use crate::sys::memory;
use crate::tracking::Choice;

const BLOCKS: u64 = 32;
/// Blocks that the fast tier holds, of which one is to be free.
const FAST: u64 = 16;
const INTERVALS: u32 = 4;

fn session() -> Session {
    let setup = Setup {
        bytes: [u64::MAX; 2],
        nodes: [Some(0); 2],
        policy: 0,
        shared_read: false,
        release: crate::Release::Kernel,
        device: VIRTUAL,
        tracking: Choice::Hints,
        filters: 0,
    };
    Session::private(&setup).expect("memory")
}

/// What is seen of a block in an interval: the more, the higher its number. From the second on the first of all is
/// the hottest.
fn see(interval: u32, nth: u64, block: &mut Block) {
    block.present = u64::MAX;
    (block.heat, block.idle, block.touched) = match (interval, nth) {
        (2.., 0) => (4000, 0, 0b11),
        _ => (4 * nth as u32, 2 * (BLOCKS - nth) as u16, 0),
    };
}

/// Which blocks are in the slow tier after each interval.
fn carried_out<B: BackEnd>(
    policy: usize,
    back_end: &mut B,
    enter: impl Fn(&mut B, &dyn Fn(u64, &mut Block)),
) -> Vec<Vec<bool>> {
    let limits = Limits {
        fast: FAST * BLOCK_PAGES,
        keep_free: BLOCK_PAGES,
        slow: u64::MAX,
        promote: 4 * BLOCK_PAGES,
        ping_pong: 0,
        cooling: u32::MAX,
    };
    let mut tiering = Tiering::new(by_index(policy));
    let intervals = 1..=INTERVALS;
    intervals
        .map(|interval| {
            enter(back_end, &|nth, block| see(interval, nth, block));
            tiering.step(back_end, &limits).expect("pages can move");
            let units = back_end.units();
            assert_eq!(units.len() as u64, BLOCKS, "{}", POLICIES[policy]);
            units.iter().map(|(_, block)| block.slow != 0).collect()
        })
        .collect()
}

/// Written memory of so many blocks, in base pages.
fn written() -> u64 {
    let start = memory::reserve(BLOCKS * BLOCK, BLOCK).expect("memory");
    memory::advise(start, BLOCKS * BLOCK, libc::MADV_NOHUGEPAGE).expect("it is ours");
    for page in (start..start + BLOCKS * BLOCK).step_by(PAGE as usize) {
        let word = std::ptr::with_exposed_provenance_mut::<u64>(page as usize);
        // SAFETY: memory of this test.
        unsafe { word.write_volatile(page) };
    }
    start
}

/// Checks that all of it is as it was written, and unmaps it.
fn check(start: u64) {
    for page in (start..start + BLOCKS * BLOCK).step_by(PAGE as usize) {
        let word = std::ptr::with_exposed_provenance::<u64>(page as usize);
        // SAFETY: memory of this test.
        assert_eq!(unsafe { word.read_volatile() }, page);
    }
    // SAFETY: this test's, and nothing uses it any more.
    unsafe { memory::unmap(start, BLOCKS * BLOCK) };
}

fn by_uffd(policy: usize) -> Vec<Vec<bool>> {
    let copier = Box::new(Cores::new(1));
    let engine = Arc::new(Engine::new(Config::default(), copier).expect("root on Linux 6.8"));
    let start = written();
    let end = start + BLOCKS * BLOCK;
    engine.register(start, end).expect("its own memory");
    let mut back_end = UffdBackEnd::new(engine.clone(), session(), None, 34).expect("/proc");
    back_end.set_used(BLOCKS * BLOCK);
    let first = block_of(start);
    let slow = carried_out(policy, &mut back_end, |back_end, see| {
        back_end.engine().with_blocks(start, end, |blocks| {
            for nth in 0..BLOCKS {
                blocks.change(first + nth, |block| see(nth, block));
            }
        });
    });
    engine.stop();
    check(start);
    slow
}

/// Both tiers are node 0, which every machine has.
fn by_kernel(policy: usize) -> Vec<Vec<bool>> {
    let start = written();
    let tiers = Tiers::of(Path::new("/sys"), [vec![0], vec![0]], Source::Named);
    let session = session();
    // A busy machine has the time to move what an interval has decided.
    session.set("interval_ms=60000").expect("a knob");
    let mut back_end = KernelBackEnd::new(tiers, session, false);
    let slot = back_end.add(std::process::id() as i32).expect("/proc");
    let first = block_of(start);
    let slow = carried_out(policy, &mut back_end, |back_end, see| {
        for nth in 0..BLOCKS {
            let mut books = back_end.memory(slot).blocks.borrow_mut();
            books.change(first + nth, |block| see(nth, block));
        }
    });
    check(start);
    slow
}

#[cfg(feature = "modelled")]
fn in_virtual_time(policy: usize) -> Vec<Vec<bool>> {
    use crate::modelled::{Accesses, MigrationParameters, ModelledMemory, Pattern, System};
    const UNIT: u64 = 2 << 20;
    let pattern = Pattern {
        fast_bytes: BLOCKS * UNIT,
        bytes: BLOCKS * UNIT,
        accessed_bytes: BLOCKS * UNIT,
        allocation_s: 0,
        huge_percent: 0,
        threads: 1,
    };
    let copies = &crate::modelled::TIMES;
    let mut back_end = ModelledMemory::new(
        pattern,
        Arc::new(Accesses::of(&pattern)),
        System::UserCore,
        &MigrationParameters::built_in(),
        [copies, copies],
    );
    back_end.allocate(BLOCKS);
    carried_out(policy, &mut back_end, |back_end, see| {
        for (nth, block) in &mut back_end.blocks {
            see(*nth, block);
        }
    })
}

#[test]
fn every_policy_moves_the_same_blocks_with_each_back_end() {
    for (policy, name) in POLICIES.iter().enumerate() {
        let slow = by_uffd(policy);
        assert_eq!(slow, by_kernel(policy), "{name}");
        #[cfg(feature = "modelled")]
        assert_eq!(slow, in_virtual_time(policy), "{name}");
        let count = |interval: usize| slow[interval].iter().filter(|slow| **slow).count() as u64;
        match *name {
            "none" => assert!(slow.iter().flatten().all(|slow| !slow), "{slow:?}"),
            "rotate" => assert_eq!([count(0), slow[0][0].into()], [2, 1], "{slow:?}"),
            // Room is made with the coldest; then the first is hot and takes the place of the coldest that is left.
            _ => {
                let coldest = |nth: usize| nth as u64 <= BLOCKS - FAST;
                assert!(
                    (0..BLOCKS as usize).all(|nth| slow[0][nth] == coldest(nth)),
                    "{name}: {slow:?}"
                );
                let next = (BLOCKS - FAST + 1) as usize;
                assert!(!slow[1][0] && slow[1][next], "{name}: {slow:?}");
                assert_eq!(count(1), count(0), "{name}");
            }
        }
    }
}

#[test]
fn counts_are_halved_once_every_cooling_intervals() {
    let mut tiering = Tiering::new(by_index(3));
    let mut memory = Nothing;
    let limits = Limits::of(session(), 0, Duration::ZERO);
    let cooling = limits.cooling;
    assert!(cooling > 1);
    for interval in 1..=3 * cooling {
        assert_eq!(
            tiering.cools(&limits),
            interval % cooling == 0,
            "{interval}"
        );
        tiering.step(&mut memory, &limits).expect("nothing moves");
        assert_eq!(tiering.interval(), interval);
    }
}

/// No memory.
struct Nothing;

impl BackEnd for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn used(&self) -> [u64; 2] {
        [0; 2]
    }

    fn units(&mut self) -> Cow<'_, [(u64, Block)]> {
        Cow::Borrowed(&[])
    }

    fn migrate(&mut self, _: Reason, _: &[u64], _: &Room) -> Result<(), TierError> {
        Ok(())
    }
}
