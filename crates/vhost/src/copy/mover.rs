//! The movers of the library `dray` as copy engines.

use std::collections::HashMap;

use dray::{Completion, CpuMover, Mover, Operation, Ticket};
use dray::virt::VirtualMover;

use super::engine::{Copy, CopyEngine, Done};

/// Copies over any mover.
#[derive(Debug)]
struct Copier<M> {
    mover: M,
    slots: usize,
    in_flight: usize,
    /// By ticket.
    tokens: HashMap<Ticket, u32>,
    ended: Vec<Completion>,
}

impl<M: Mover> Copier<M> {
    fn new(mover: M) -> Copier<M> {
        let slots = mover.slots();
        Copier {
            mover,
            slots,
            in_flight: 0,
            tokens: HashMap::with_capacity(slots),
            ended: vec![Completion::default(); 64],
        }
    }

    fn room(&self) -> usize {
        self.slots - self.in_flight
    }

    /// # Safety
    /// As [`CopyEngine::submit`].
    unsafe fn submit(&mut self, copies: &[Copy]) {
        for copy in copies {
            let operation = Operation::memmove(copy.source, copy.destination, copy.len);
            // SAFETY: the caller's promise is the same.
            if let Ok(ticket) = unsafe { self.mover.enqueue(&operation) } {
                self.tokens.insert(ticket, copy.token);
                self.in_flight += 1;
            }
        }
        let _ = self.mover.submit();
    }

    fn poll(&mut self, into: &mut [Done]) -> usize {
        // What the queue had no room for is handed over now.
        let _ = self.mover.submit();
        let most = into.len().min(self.ended.len());
        let count = self.mover.poll(&mut self.ended[..most]);
        for (done, completion) in into.iter_mut().zip(&self.ended[..count]) {
            let token = self.tokens.remove(&completion.ticket).unwrap_or(u32::MAX);
            *done = Done {
                token,
                ok: completion.status().is_success(),
            };
        }
        self.in_flight -= count;
        count
    }
}

macro_rules! engine {
    ($(#[$doc:meta])* $name:ident, $mover:ty, $executor:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(Copier<$mover>);

        impl $name {
            /// Over a mover that nobody else uses.
            pub fn new(mover: $mover) -> $name {
                $name(Copier::new(mover))
            }
        }

        impl CopyEngine for $name {
            fn executor(&self) -> &'static str {
                $executor
            }

            fn room(&self) -> usize {
                self.0.room()
            }

            unsafe fn submit(&mut self, copies: &[Copy]) {
                // SAFETY: the caller's promise is the same.
                unsafe { self.0.submit(copies) };
            }

            fn poll(&mut self, into: &mut [Done]) -> usize {
                self.0.poll(into)
            }
        }
    };
}

engine! {
    /// The core itself, through the mover's interface.
    CpuCopier, CpuMover, "cpu"
}
engine! {
    /// The virtual device in real time.
    VirtualCopier, VirtualMover, "virtual"
}
