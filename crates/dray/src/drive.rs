//! Applications as resumable steps, and the thread that drives them in real time.

use crate::Mover;

/// What an application wants after a step.
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
