//! What a channel needs of a mover.

use dray_spec::Status;

/// One copy to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// Address of the first byte to read.
    pub source: u64,
    /// Address of the first byte to write.
    pub destination: u64,
    /// Comes back with the copy's end.
    pub token: u64,
    /// Bytes: at least 1.
    pub len: u32,
}

/// A copy that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Which one.
    pub token: u64,
    /// How it ended; [`Status::NONE`]: a queue that was lost, or full, has not executed it.
    pub status: Status,
}

/// Makes copies, and says in any order which have ended. Never blocks.
pub trait CopyEngine: Send {
    /// Name of who executes: `cpu`, `virtual`, `hw`.
    fn executor(&self) -> &'static str;

    /// Copies that can be taken now.
    fn room(&self) -> usize;

    /// Takes a burst of copies, at most as many as there is room, and starts them: as one batch, if
    /// the engine has batches.
    ///
    /// # Safety
    /// Until a copy's end has been polled its addresses are valid, and nothing else uses the bytes
    /// that it writes. (A guest may write its own memory at any time; the copy then has whatever
    /// bytes.)
    unsafe fn submit(&mut self, copies: &[Copy]);

    /// Takes ends of copies, as many as there are and `into` can hold; how many they were.
    fn poll(&mut self, into: &mut [Done]) -> usize;
}
