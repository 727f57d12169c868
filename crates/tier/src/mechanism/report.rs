//! What a call that migrates pages did.

use std::time::Duration;

use super::outcome::Outcomes;
use crate::copier::Copied;

/// What a call of [`Engine::migrate`](super::Engine::migrate) did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Pages by what became of them.
    pub outcomes: Outcomes,
    /// Pages that it was asked to move.
    pub pages: u64,
    /// Time to make frames.
    pub frames: Duration,
    /// Time to protect pages.
    pub protect: Duration,
    /// Time to move pages out.
    pub out: Duration,
    /// Time to copy.
    pub copy: Duration,
    /// Time to move frames in.
    pub back: Duration,
    /// Time to release frames.
    pub release: Duration,
    /// Bytes by who copied them.
    pub copied: Copied,
}

impl Report {
    /// Adds what another call did with pages that this one left.
    pub(crate) fn add(&mut self, other: &Report) {
        self.outcomes.merge(&other.outcomes);
        for (ours, theirs) in [
            (&mut self.frames, other.frames),
            (&mut self.protect, other.protect),
            (&mut self.out, other.out),
            (&mut self.copy, other.copy),
            (&mut self.back, other.back),
            (&mut self.release, other.release),
        ] {
            *ours += theirs;
        }
        self.copied.core += other.copied.core;
        self.copied.cores += other.copied.cores;
        self.copied.device += other.copied.device;
    }
}
