//! The first message: which open node is to be mapped.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{MAGIC, VERSION, WireError, greets, read};

/// What a program says that maps a portal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Attach {
    magic: u64,
    version: u32,
    held_by_file: u32,
    /// As the [`Node`](crate::Node) said.
    pub cookie: u64,
    /// Bytes that are to be mapped. The driver maps a page, and refuses more.
    pub length: u64,
}

const _: () = assert!(size_of::<Attach>() == 32);

impl Attach {
    /// Asks for the portal of an open node.
    pub const fn new(cookie: u64, length: u64) -> Attach {
        Attach {
            magic: MAGIC,
            version: VERSION,
            held_by_file: 0,
            cookie,
            length,
        }
    }

    /// The portal's page is a mapping of the node's file: the kernel holds that open as long as the page
    /// is mapped, whatever becomes of the connection.
    #[must_use]
    pub const fn held_by_file(mut self, held: bool) -> Attach {
        self.held_by_file = held as u32;
        self
    }

    /// Whether the node's file is open as long as the portal is mapped.
    pub const fn is_held_by_file(&self) -> bool {
        self.held_by_file != 0
    }

    /// Reads a message.
    ///
    /// # Errors
    /// It is no such message.
    pub fn from_message(bytes: &[u8]) -> Result<Attach, WireError> {
        let attach = read::<Attach>(bytes)?;
        greets(attach.magic, attach.version)?;
        Ok(attach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written(cookie: u64, length: u64, held: bool) {
            let attach = Attach::new(cookie, length).held_by_file(held);
            prop_assert_eq!(attach.is_held_by_file(), held);
            prop_assert_eq!(Attach::from_message(attach.as_bytes()), Ok(attach));
        }

        #[test]
        fn other_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            // A magic number of eight bytes does not come by chance.
            prop_assert!(Attach::from_message(&bytes).is_err());
        }
    }

    #[test]
    fn another_build_is_told_apart() {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(Attach::new(1, 4096).as_bytes());
        bytes[8] = 9;
        let refused = Attach::from_message(&bytes);
        assert_eq!(refused, Err(WireError::Version { version: 9 }));
        let short = Attach::from_message(&bytes[..31]);
        let length = WireError::Length {
            expected: 32,
            got: 31,
        };
        assert_eq!(short, Err(length));
    }
}
