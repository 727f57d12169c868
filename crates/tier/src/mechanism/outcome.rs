//! What became of each page that was to move.

/// What became of one page. A huge page counts as 512.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "command", derive(serde::Serialize))]
#[cfg_attr(feature = "command", serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// It has a frame of the other tier.
    Moved,
    /// `EBUSY`: pinned, or shared with a forked process. Left where it is.
    Busy,
    /// `ENOENT`: the page or its mapping is gone.
    Gone,
    /// `EINVAL`: locked, read-only or of another kind. Left where it is.
    NotMovable,
    /// `EAGAIN` for too long: mappings were being changed. Left where it is.
    Changing,
    /// `ENOMEM`: no frame of the other tier. Left where it is.
    NoFrame,
    /// There is no huge frame. Left where it is.
    NoHugeFrame,
    /// The program dropped or unmapped it while it was out.
    Dropped,
    /// The program moved its mapping while it was being copied. Left where it is.
    Remapped,
    /// The program has asked to drop it and that is not done yet. Left where it is.
    BeingDropped,
    /// The program wrote to it while it was copied (shared-read). Left where it is.
    Written,
    /// The copier failed: it got its old frame back.
    CopyFailed,
    /// Its frame could not be put back; a copy of it could (mprotect or mlock meanwhile).
    PutBackByCopy,
    /// Neither could, as its mapping is gone.
    Vanished,
    /// Any other error number. Left where it is.
    Other,
}

/// All of them, in the order in which they are counted.
pub const OUTCOMES: [Outcome; 15] = [
    Outcome::Moved,
    Outcome::Busy,
    Outcome::Gone,
    Outcome::NotMovable,
    Outcome::Changing,
    Outcome::NoFrame,
    Outcome::NoHugeFrame,
    Outcome::Dropped,
    Outcome::Remapped,
    Outcome::BeingDropped,
    Outcome::Written,
    Outcome::CopyFailed,
    Outcome::PutBackByCopy,
    Outcome::Vanished,
    Outcome::Other,
];

impl Outcome {
    /// What an error number of `UFFDIO_MOVE` out of the program's memory means.
    pub(crate) fn of_errno(errno: i32) -> Outcome {
        match errno {
            libc::EBUSY => Outcome::Busy,
            libc::ENOENT | libc::EFAULT => Outcome::Gone,
            libc::EINVAL => Outcome::NotMovable,
            libc::EAGAIN => Outcome::Changing,
            libc::ENOMEM => Outcome::NoFrame,
            _ => Outcome::Other,
        }
    }

    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::Busy => "busy",
            Self::Gone => "gone",
            Self::NotMovable => "not_movable",
            Self::Changing => "changing",
            Self::NoFrame => "no_frame",
            Self::NoHugeFrame => "no_huge_frame",
            Self::Dropped => "dropped",
            Self::Remapped => "remapped",
            Self::BeingDropped => "being_dropped",
            Self::Written => "written",
            Self::CopyFailed => "copy_failed",
            Self::PutBackByCopy => "put_back_by_copy",
            Self::Vanished => "vanished",
            Self::Other => "other",
        }
    }
}

/// Pages by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcomes([u64; OUTCOMES.len()]);

impl Outcomes {
    /// Pages with one outcome.
    pub fn get(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }

    pub(crate) fn add(&mut self, outcome: Outcome, pages: u64) {
        self.0[outcome as usize] += pages;
    }

    /// Adds those of another batch.
    pub fn merge(&mut self, other: &Outcomes) {
        for (ours, theirs) in self.0.iter_mut().zip(other.0) {
            *ours += theirs;
        }
    }

    /// Each outcome with its pages.
    pub fn iter(&self) -> impl Iterator<Item = (Outcome, u64)> {
        OUTCOMES.into_iter().zip(self.0)
    }
}
