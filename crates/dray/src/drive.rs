//! Applications as resumable steps, and the thread that drives them in real time.

use crate::Mover;

/// What an application wants after a step.
///
/// ```
/// use dray::Next;
///
/// let next = |in_flight: usize| match in_flight {
///     0 => Next::Done,
///     _ => Next::Wait,
/// };
/// assert_eq!((next(0), next(3)), (Next::Done, Next::Wait));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another step at once.
    Again,
    /// Another step when a completion is there.
    Wait,
    /// No more steps.
    Done,
}

/// Something that uses a mover. A step never waits inside: it says that it would, and is called
/// again. So the same code runs in real and in modelled time.
///
/// ```
/// use dray::{Application, Completion, CpuMover, Mover, Next, Operation, drive};
///
/// /// So many NOOPs, as many at once as there are slots.
/// struct Noops {
///     left: usize,
///     in_flight: usize,
/// }
///
/// impl Application for Noops {
///     fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
///         self.in_flight -= mover.poll(&mut [Completion::default(); 8]);
///         // SAFETY: a NOOP has no operands.
///         while self.left > 0 && unsafe { mover.enqueue(&Operation::noop()) }.is_ok() {
///             self.left -= 1;
///             self.in_flight += 1;
///         }
///         mover.submit();
///         if self.in_flight == 0 { Next::Done } else { Next::Wait }
///     }
/// }
///
/// let mut noops = Noops { left: 100, in_flight: 0 };
/// drive(&mut noops, &mut CpuMover::new(8));
/// assert_eq!(noops.left, 0);
/// ```
pub trait Application {
    /// Polls, enqueues, submits.
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next;
}

/// Runs an application to its end on the calling thread.
pub fn drive<A: Application, M: Mover>(application: &mut A, mover: &mut M) {
    loop {
        match application.step(mover) {
            Next::Again => {}
            Next::Wait => std::hint::spin_loop(),
            Next::Done => return,
        }
    }
}
