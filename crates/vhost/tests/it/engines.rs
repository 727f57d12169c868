//! Movers with random order, failures and delays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dray_spec::Status;
use dray_vhost::copy::{Copy, CopyEngine, Done};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

fn carry_out(copy: &Copy) {
    // SAFETY: the submitter guarantees that the addresses are valid until its end is polled.
    unsafe {
        std::ptr::copy_nonoverlapping(
            copy.source as *const u8,
            copy.destination as *mut u8,
            copy.len as usize,
        );
    }
}

/// Ends copies in random order, some at each poll; every `fail`-th is not made.
pub struct Shuffled {
    rng: ChaCha8Rng,
    pending: Vec<Copy>,
    room: usize,
    fail: Option<u32>,
    count: u32,
}

impl Shuffled {
    pub fn new(seed: u64, room: usize, fail: Option<u32>) -> Box<Shuffled> {
        println!("seed {seed}");
        Box::new(Shuffled {
            rng: ChaCha8Rng::seed_from_u64(seed),
            pending: Vec::new(),
            room,
            fail,
            count: 0,
        })
    }
}

impl CopyEngine for Shuffled {
    fn executor(&self) -> &'static str {
        "shuffled"
    }

    fn room(&self) -> usize {
        self.room - self.pending.len()
    }

    unsafe fn submit(&mut self, copies: &[Copy]) {
        self.pending.extend_from_slice(copies);
        assert!(
            self.pending.len() <= self.room,
            "more than there is room for"
        );
    }

    fn poll(&mut self, into: &mut [Done]) -> usize {
        let most = self.pending.len().min(into.len());
        let count = match most {
            0 => 0,
            most => self.rng.next_u32() as usize % (most + 1),
        };
        for done in &mut into[..count] {
            let at = self.rng.next_u32() as usize % self.pending.len();
            let copy = self.pending.swap_remove(at);
            self.count += 1;
            let ok = self.fail.is_none_or(|k| !self.count.is_multiple_of(k));
            if ok {
                carry_out(&copy);
            }
            *done = Done {
                token: copy.token,
                status: if ok {
                    Status::SUCCESS
                } else {
                    Status::HARDWARE_ERROR_WRITE
                },
            };
        }
        count
    }
}

/// Holds copies until it is let go.
pub struct Held {
    pending: Vec<Copy>,
    go: Arc<AtomicBool>,
}

impl Held {
    pub fn new(go: &Arc<AtomicBool>) -> Box<Held> {
        Box::new(Held {
            pending: Vec::new(),
            go: go.clone(),
        })
    }
}

impl CopyEngine for Held {
    fn executor(&self) -> &'static str {
        "held"
    }

    fn room(&self) -> usize {
        1 << 20
    }

    unsafe fn submit(&mut self, copies: &[Copy]) {
        self.pending.extend_from_slice(copies);
    }

    fn poll(&mut self, into: &mut [Done]) -> usize {
        if !self.go.load(Ordering::SeqCst) {
            return 0;
        }
        let count = self.pending.len().min(into.len());
        for (copy, done) in self.pending.drain(..count).zip(into) {
            carry_out(&copy);
            *done = Done {
                token: copy.token,
                status: Status::SUCCESS,
            };
        }
        count
    }
}
