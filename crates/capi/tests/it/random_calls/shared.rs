//! Random calls of several threads on one mover that they share.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Barrier;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use dray_c::{
    Mover, Op, Outcome, Request, Vector, dray_close, dray_ended, dray_event_fd, dray_noop,
    dray_op_cancel, dray_op_poll, dray_op_release, dray_op_wait, dray_share, dray_start,
};

use super::arguments::{Areas, Random};
use super::{descriptor, dif, is_documented, open};

const HANDLES: usize = 6;
const SEGMENTS: usize = 3;

/// A handle, and the lists that its operation may name.
struct One {
    op: Op,
    lists: [[Vector; SEGMENTS]; 2],
}

fn request(random: &mut Random, areas: &Areas, one: &mut One) -> Request {
    let buffers = [(); 3].map(|()| areas.buffer(random));
    let mut list = |n: usize| {
        let list = &mut one.lists[n];
        for segment in list.iter_mut() {
            *segment = Vector {
                base: areas.buffer(random),
                bytes: random.of(&[0, 64, 64, 4096]),
            };
        }
        match random.below(4) {
            0 => (list.as_ptr(), random.below(SEGMENTS + 1)),
            _ => (null(), 0),
        }
    };
    let (sources, destinations) = (list(0), list(1));
    let codes = [
        0x00, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x10, 0x11, 0x110, 0x111, 0x12, 0x13, 0x14,
        0x15, 0x17, 0x20, 0x77,
    ];
    Request {
        size: if random.rarely(16) {
            8
        } else {
            size_of::<Request>()
        },
        operation: random.of(&codes),
        flags: if random.rarely(8) {
            random.of(&[1 << 8, u32::MAX])
        } else {
            0
        },
        user_data: random.next(),
        source: buffers[0],
        destination: buffers[1],
        second: buffers[2],
        bytes: if sources.1 + destinations.1 > 0 {
            0
        } else {
            random.length()
        },
        second_bytes: random.length(),
        value: random.of(&[0, 0, 5, u64::MAX]),
        dif: null(),
        sources: sources.0,
        source_count: sources.1,
        destinations: destinations.0,
        destination_count: destinations.1,
        listed: if random.rarely(16) {
            2
        } else {
            random.below(2) as u32
        },
        reserved: random.rarely(16).into(),
    }
}

/// Starts an operation with a handle that is its own.
fn start(mover: *mut Mover, random: &mut Random, areas: &Areas, one: &mut One) -> i32 {
    // SAFETY: a handle. What it had is over then, and its lists may be written, unless it is in the list of the mover.
    if unsafe { dray_op_release(&raw mut one.op) } == -libc::EALREADY {
        return -libc::EALREADY;
    }
    let mut request = request(random, areas, one);
    let dif = dif(random);
    request.dif = if random.rarely(4) {
        null()
    } else {
        &raw const dif
    };
    let at = [areas.buffer(random); 3];
    let raw = descriptor(random, at, request.bytes & 0xffff);
    if random.rarely(8) && request.sources.is_null() && request.destinations.is_null() {
        request.operation = 0x200;
        request.source = raw.as_ptr().cast::<c_void>();
    }
    // SAFETY: the mover looks at addresses; handle and lists stay.
    unsafe { dray_start(mover, &raw mut one.op, &raw const request) }
}

fn calls(mover: *mut Mover, seed: u64, closes: bool, started: &AtomicU32, open: &Barrier) {
    let mut random = Random(seed);
    let areas = Areas::new(6);
    let empty = Vector {
        base: null_mut(),
        bytes: 0,
    };
    let new = || One {
        op: Op { opaque: [0; 32] },
        lists: [[empty; SEGMENTS]; 2],
    };
    // They stay for ever: another thread may still be given one.
    let all: &mut [One] = Vec::leak((0..HANDLES).map(|_| new()).collect());
    for n in 0..200 {
        // All threads have made most of their calls, and make the rest beside the close.
        if n == 150 {
            open.wait();
        }
        if closes && n == 150 {
            // SAFETY: open.
            is_documented("close", unsafe { dray_close(mover) }, &[]);
        }
        let one = random.below(HANDLES);
        let op = &raw mut all[one].op;
        let mut done = std::mem::MaybeUninit::<Outcome>::uninit();
        let into = if random.rarely(4) {
            null_mut()
        } else {
            done.as_mut_ptr()
        };
        let timeout = 1 + random.next() % 100_000;
        let of_look = [libc::ENOENT, libc::EIO];
        match random.below(8) {
            0..=2 => {
                let code = start(mover, &mut random, &areas, &mut all[one]);
                started.fetch_add((code == 0).into(), Ordering::Relaxed);
                let codes = [libc::EINVAL, libc::EALREADY, libc::ENOTSUP, libc::EBADF];
                is_documented("start", code, &codes);
            }
            // SAFETY: a handle, and a place or none, here and below.
            3 => is_documented("poll", unsafe { dray_op_poll(op, into) }, &of_look),
            4 => {
                let codes = [libc::ENOENT, libc::EIO, libc::ETIMEDOUT];
                // SAFETY: as above.
                is_documented("wait", unsafe { dray_op_wait(op, into, timeout) }, &codes);
            }
            // SAFETY: as above.
            5 => is_documented("cancel", unsafe { dray_op_cancel(op) }, &[libc::EALREADY]),
            6 => {
                let mut taken = [null_mut(); 4];
                let count = random.below(5);
                // SAFETY: a place for four.
                let code = unsafe { dray_ended(mover, taken.as_mut_ptr(), count) };
                is_documented("ended", code, &[libc::EINVAL, libc::EBADF]);
            }
            _ => {
                let codes = [libc::EBUSY, libc::EBADF];
                // SAFETY: opened.
                is_documented("noop", unsafe { dray_noop(mover, 1) }, &codes);
                // SAFETY: opened.
                is_documented("event", unsafe { dray_event_fd(mover) }, &[libc::EBADF]);
            }
        }
    }
}

#[test]
fn random_calls_of_threads_return_documented_codes() {
    let seeds = std::env::var("DRAY_CAPI_SEEDS").ok();
    let seeds = seeds.map_or(20, |seeds| seeds.parse().expect("a number of seeds"));
    let started = AtomicU32::new(0);
    for seed in 0..seeds {
        println!("seed {seed}");
        let mover = open(&mut Random(seed));
        // SAFETY: opened.
        assert_eq!(unsafe { dray_share(mover) }, 0);
        let (mover, open) = (AtomicPtr::new(mover), Barrier::new(3));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (mover, started, open) = (&mover, &started, &open);
                scope.spawn(move || {
                    let mover = mover.load(Ordering::Relaxed);
                    calls(mover, seed << 8 | thread, thread == 0, started, open);
                });
            }
        });
    }
    let started = started.into_inner();
    assert!(started > 20 * seeds as u32, "{started} operations");
}
