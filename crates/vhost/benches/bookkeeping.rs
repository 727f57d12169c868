//! What a packet costs the core in the calls of a queue, in time stamp counter ticks: synchronous,
//! and asynchronous with a mover that has made each copy when it is asked first. The difference is
//! the bookkeeping; how much of it is the `Mover` trait's is shown by a mover behind that trait.
//!
//! The guest is played by the same thread, outside of what is timed. Printed: quartiles over bursts
//! of 32, which interruptions of a busy machine leave nearly alone. The ways take turns.
//!
//! `cargo bench -p dray-vhost --bench bookkeeping`

#![allow(missing_docs, unreachable_pub, dead_code)]

#[path = "../tests/it/driver.rs"]
mod driver;
#[path = "../tests/it/guest.rs"]
mod guest;
#[path = "bookkeeping/immediate.rs"]
mod immediate;

use dray_vhost::copy::{CopyEngine, MoverCopier};
use dray_vhost::net::Packet;
use dray_vhost::protocol::features as f;

use driver::Kind;
use guest::{BASE, BUFFERS, Guest, Setup};
use immediate::{Immediate, ImmediateMover};

const BURST: usize = 32;
const BURSTS: usize = 500;
const ROUNDS: usize = 8;
/// Buffers of the guest: two rings of 256, of 2 KiB each.
const BUFFER_BYTES: u64 = 2 * 256 * (2048 + 64);

fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reading the counter has no effect.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// How packets are copied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyMethod {
    Synchronous,
    /// By an engine of ours, at submission.
    Engine,
    /// The same behind the `Mover` trait.
    Mover,
    /// No bytes are copied.
    Nothing,
}

impl CopyMethod {
    const ALL: [CopyMethod; 4] = [
        CopyMethod::Synchronous,
        CopyMethod::Engine,
        CopyMethod::Mover,
        CopyMethod::Nothing,
    ];

    fn name(self) -> &'static str {
        match self {
            CopyMethod::Synchronous => "synchronous",
            CopyMethod::Engine => "asynchronous",
            CopyMethod::Mover => "asynchronous, Mover trait",
            CopyMethod::Nothing => "asynchronous, nothing copied",
        }
    }

    fn engine(self) -> Option<Box<dyn CopyEngine>> {
        match self {
            CopyMethod::Synchronous => None,
            CopyMethod::Engine => Some(Box::new(Immediate::new(true))),
            CopyMethod::Mover => Some(Box::new(MoverCopier::new(
                ImmediateMover::default(),
                "immediate",
            ))),
            CopyMethod::Nothing => Some(Box::new(Immediate::new(false))),
        }
    }
}

/// A guest, and the ticks of each burst from it and to it.
struct Trial {
    guest: Guest,
    found: [Vec<u64>; 2],
}

impl Trial {
    fn new(kind: Kind, way: CopyMethod) -> Trial {
        let setup = Setup::new(kind, 256).with(f::MRG_RXBUF | f::IN_ORDER);
        let mut guest = Guest::new(setup, way.engine().into_iter().collect());
        // A driver uses the buffers of its rings again and again.
        guest.buffers_end = BASE + BUFFERS + BUFFER_BYTES;
        guest.fills = false;
        Trial {
            guest,
            found: [Vec::new(), Vec::new()],
        }
    }

    fn round(&mut self, size: usize) {
        let guest = &mut self.guest;
        let bytes = vec![1; size];
        let mut out: Vec<Packet> = Vec::with_capacity(BURST);
        for _ in 0..BURSTS {
            for _ in 0..BURST {
                assert!(guest.transmit(&bytes, 4096, false) && guest.provide(&[2048], false));
            }
            let start = ticks();
            guest.poll_from_guest(&mut out, BURST);
            if guest.asynchronous {
                guest.poll_from_guest(&mut out, 0);
            }
            self.found[0].push(ticks() - start);
            assert_eq!(out.len(), BURST);
            let start = ticks();
            let sent = guest.deliver(&mut out);
            if guest.asynchronous {
                guest.poll_to_guest();
            }
            self.found[1].push(ticks() - start);
            assert_eq!(sent, BURST);
            guest.rings[1].reclaim(&guest.memory);
            while guest.received().is_some() {}
        }
    }

    /// Quartiles of ticks per packet.
    fn quartiles(self) -> [[f64; 3]; 2] {
        self.found.map(|mut of| {
            // The first round warms up.
            of.drain(..BURSTS);
            of.sort_unstable();
            [1, 2, 3].map(|quarter| of[of.len() * quarter / 4] as f64 / BURST as f64)
        })
    }
}

fn main() {
    println!(
        "ticks per packet: lower quartile / median / upper quartile of {} bursts of {BURST}",
        ROUNDS * BURSTS
    );
    println!(
        "{:8} {:>5}  {:28} {:>20} {:>20}",
        "ring", "bytes", "calls", "from guest", "to guest"
    );
    let show = |of: [f64; 3]| format!("{:.0} / {:.0} / {:.0}", of[0], of[1], of[2]);
    for kind in [Kind::Split, Kind::Packed] {
        let ring = format!("{kind:?}").to_lowercase();
        for size in [64, 512, 1518] {
            let mut trials = CopyMethod::ALL.map(|way| Trial::new(kind, way));
            for _ in 0..=ROUNDS {
                trials.iter_mut().for_each(|trial| trial.round(size));
            }
            let found = trials.map(Trial::quartiles);
            for (way, [from, to]) in CopyMethod::ALL.iter().zip(found) {
                let name = way.name();
                println!(
                    "{ring:8} {size:>5}  {name:28} {:>20} {:>20}",
                    show(from),
                    show(to)
                );
            }
            let [synchronous, engine, mover, _] = found.map(|both| both.map(|of| of[1]));
            println!(
                "{ring:8} {size:>5}  bookkeeping: ours {:.0} from and {:.0} to the guest; the Mover \
                 trait's {:.0} and {:.0}",
                engine[0] - synchronous[0],
                engine[1] - synchronous[1],
                mover[0] - engine[0],
                mover[1] - engine[1]
            );
        }
    }
}
