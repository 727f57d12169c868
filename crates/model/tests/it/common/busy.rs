//! Keeps a mover's slots full of operations that a closure names, and digests what it sees.

use dray::{Application, Completion, Mover, Next, Operation, Progress};
use dray_clock::Time;
use dray_model::CoreTime;

/// The application; `next` gives operation number n.
pub(crate) struct Busy<F> {
    next: F,
    count: u64,
    issued: u64,
    pub(crate) ended: u64,
    pub(crate) failed: u64,
    seen: Vec<Completion>,
    /// FNV-1a over the time, ticket and record of every completion, in order.
    pub(crate) digest: u64,
    /// When the last completion was seen.
    pub(crate) last: Time,
}

impl<F: FnMut(u64) -> Operation> Busy<F> {
    pub(crate) fn new(count: u64, next: F) -> Busy<F> {
        Busy {
            next,
            count,
            issued: 0,
            ended: 0,
            failed: 0,
            seen: vec![Completion::default(); 64],
            digest: 0xcbf2_9ce4_8422_2325,
            last: Time::ZERO,
        }
    }

    fn note(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn collect<M: Mover>(&mut self, mover: &mut M) {
        loop {
            let count = mover.poll(&mut self.seen);
            self.last = mover.core_time();
            for n in 0..count {
                let Completion { ticket, record, .. } = self.seen[n];
                self.ended += 1;
                self.failed += u64::from(!record.status().is_success());
                self.note(self.last.0);
                self.note(ticket.0.into());
                self.note(u64::from(record.status) << 8 | u64::from(record.result));
                self.note(u64::from(record.bytes_completed) << 32 | u64::from(record.crc32()));
                self.note(record.fault_address);
            }
            if count < self.seen.len() {
                return;
            }
        }
    }
}

impl<F: FnMut(u64) -> Operation> Application for Busy<F> {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.collect(mover);
        while self.issued < self.count {
            let operation = (self.next)(self.issued);
            // SAFETY: modelled memory checks itself.
            if unsafe { mover.enqueue(&operation) }.is_err() {
                break;
            }
            self.issued += 1;
        }
        match mover.submit() {
            Progress::Pending => Next::Again,
            Progress::Done if self.ended == self.count => Next::Done,
            Progress::Done => Next::Wait,
        }
    }
}
