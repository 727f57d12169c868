//! What a packet costs the core in the calls of a queue, in time stamp counter ticks: synchronous,
//! and asynchronous with a mover that has made each copy when it is asked first.
//!
//! The guest is played by the same thread, outside of what is timed. Printed: quartiles over bursts
//! of 32, which interruptions of a busy machine leave nearly alone. Copies are warm in the cache.
//!
//! `cargo bench -p dray-vhost --bench bookkeeping`

#![allow(missing_docs, unreachable_pub, dead_code)]

#[path = "../tests/it/driver.rs"]
mod driver;
#[path = "../tests/it/guest.rs"]
mod guest;

use dray_vhost::copy::{Copy, CopyEngine, Done};
use dray_vhost::net::Packet;
use dray_vhost::protocol::features as f;

use driver::Kind;
use guest::{Guest, Setup};

const BURST: usize = 32;
const BURSTS: usize = 4000;

/// Makes copies when they are submitted; or none at all, to leave the bookkeeping alone.
struct Immediate {
    copies: bool,
    done: Vec<Done>,
}

impl CopyEngine for Immediate {
    fn executor(&self) -> &'static str {
        "immediate"
    }

    fn room(&self) -> usize {
        1 << 16
    }

    unsafe fn submit(&mut self, copies: &[Copy]) {
        for copy in copies {
            if self.copies {
                // SAFETY: the caller promises that the addresses are valid.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        copy.source as *const u8,
                        copy.destination as *mut u8,
                        copy.len as usize,
                    );
                }
            }
            self.done.push(Done {
                token: copy.token,
                ok: true,
            });
        }
    }

    fn poll(&mut self, into: &mut [Done]) -> usize {
        let count = self.done.len().min(into.len());
        for (place, done) in into.iter_mut().zip(self.done.drain(..count)) {
            *place = done;
        }
        count
    }
}

fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reading the counter has no effect.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Quartiles of ticks per packet, from the guest and to the guest.
fn measure(kind: Kind, size: usize, engine: Option<Immediate>) -> [[f64; 3]; 2] {
    let setup = Setup::new(kind, 256).with(f::MRG_RXBUF | f::IN_ORDER);
    let engines = engine.map(|engine| {
        let engine: Box<dyn CopyEngine> = Box::new(engine);
        engine
    });
    let mut guest = Guest::new(setup, engines.into_iter().collect());
    let bytes = vec![1; size];
    let mut out: Vec<Packet> = Vec::with_capacity(BURST);
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..BURSTS {
        for _ in 0..BURST {
            assert!(guest.transmit(&bytes, 4096, false) && guest.provide(&[2048], false));
        }
        let start = ticks();
        guest.poll_from_guest(&mut out, BURST);
        if guest.asynchronous {
            guest.poll_from_guest(&mut out, 0);
        }
        found[0].push(ticks() - start);
        assert_eq!(out.len(), BURST);
        let start = ticks();
        let sent = guest.deliver(&mut out);
        if guest.asynchronous {
            guest.poll_to_guest();
        }
        found[1].push(ticks() - start);
        assert_eq!(sent, BURST);
        guest.rings[1].reclaim(&guest.memory);
        while guest.received().is_some() {}
    }
    found.map(|mut of| {
        of.sort_unstable();
        [1, 2, 3].map(|quarter| of[of.len() * quarter / 4] as f64 / BURST as f64)
    })
}

fn main() {
    println!(
        "ticks per packet: lower quartile / median / upper quartile of {BURSTS} bursts of {BURST}"
    );
    println!(
        "{:8} {:>5}  {:28} {:>22} {:>22}",
        "ring", "bytes", "calls", "from guest", "to guest"
    );
    let show = |of: [f64; 3]| format!("{:.0} / {:.0} / {:.0}", of[0], of[1], of[2]);
    for kind in [Kind::Split, Kind::Packed] {
        for size in [64, 512, 1518] {
            let ways: [(&str, Option<bool>); 3] = [
                ("synchronous", None),
                ("asynchronous", Some(true)),
                ("asynchronous, no bytes copied", Some(false)),
            ];
            for (name, copies) in ways {
                let engine = copies.map(|copies| Immediate {
                    copies,
                    done: Vec::new(),
                });
                let [from, to] = measure(kind, size, engine);
                let ring = format!("{kind:?}").to_lowercase();
                println!(
                    "{ring:8} {size:>5}  {name:28} {:>22} {:>22}",
                    show(from),
                    show(to)
                );
            }
        }
    }
}
