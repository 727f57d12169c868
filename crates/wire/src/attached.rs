//! The answer: what is needed to submit.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{MAGIC, VERSION, WireError, greets, read};

/// Properties of an attached queue, a bit each.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(transparent)]
pub struct Flags(pub u32);

impl Flags {
    /// The queue is dedicated: it takes posted writes. Else it takes deferrable ones.
    pub const DEDICATED: Flags = Flags(1);
    /// Block on fault is on for the queue.
    pub const BLOCK_ON_FAULT: Flags = Flags(1 << 1);

    /// Both.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What the device's process answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Attached {
    magic: u64,
    version: u32,
    /// What mmap(2) returns, positive as in `errno`; 0 if the portal is mapped. Nothing else counts
    /// with an error, and no file comes with it.
    pub errno: i32,
    /// Address space of the program. It belongs into a descriptor for a shared queue, where
    /// ENQCMD takes it from IA32_PASID.
    pub pasid: u32,
    /// Number of the device.
    pub device: u32,
    /// Number of the work queue: which ring of the file.
    pub wq: u16,
    /// Rings in the file, one for each work queue of the device.
    pub rings: u16,
    /// Entries that each ring has room for.
    pub ring_entries: u16,
    /// Entries of the queue.
    pub size: u16,
    /// Occupancy up to which the limited portal accepts; 0 for a dedicated queue.
    pub threshold: u16,
    /// What the program signs with in the rings, so that what it has left there when it dies can be
    /// recognised. The same for all queues of one device that one process maps.
    pub client: u16,
    /// What else the queue is.
    pub flags: Flags,
    /// Length of the file with the rings, in bytes.
    pub board_bytes: u64,
    spare: [u8; 8],
}

const _: () = assert!(size_of::<Attached>() == 56);

impl Attached {
    /// An answer with everything at 0, to be filled in.
    pub const fn blank() -> Attached {
        Attached {
            magic: MAGIC,
            version: VERSION,
            errno: 0,
            pasid: 0,
            device: 0,
            wq: 0,
            rings: 0,
            ring_entries: 0,
            size: 0,
            threshold: 0,
            client: 0,
            flags: Flags(0),
            board_bytes: 0,
            spare: [0; 8],
        }
    }

    /// A refusal.
    pub const fn refused(errno: i32) -> Attached {
        Attached {
            errno,
            ..Attached::blank()
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// It is no such message.
    pub fn from_message(bytes: &[u8]) -> Result<Attached, WireError> {
        let attached = read::<Attached>(bytes)?;
        greets(attached.magic, attached.version)?;
        Ok(attached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let attached = Attached {
            pasid: 3,
            device: 2,
            wq: 7,
            rings: 8,
            ring_entries: 128,
            size: 16,
            threshold: 12,
            client: 5,
            flags: Flags::DEDICATED.with(Flags::BLOCK_ON_FAULT),
            board_bytes: 1 << 20,
            ..Attached::blank()
        };
        let read = Attached::from_message(attached.as_bytes());
        assert_eq!(read, Ok(attached));
        assert!(attached.flags.has(Flags::BLOCK_ON_FAULT));
        assert!(!Flags::DEDICATED.has(Flags::BLOCK_ON_FAULT));
        assert_eq!(Attached::refused(1).errno, 1);
    }

    #[test]
    fn one_message_is_not_taken_for_another() {
        let node = crate::Node::new(0, 0, 1);
        assert!(Attached::from_message(node.as_bytes()).is_err());
    }
}
