//! The last message: the portal is mapped no more.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{MAGIC, VERSION, WireError, greets, read};

/// What a program says by the connection of a portal that it unmaps. A connection that ends without it was
/// closed by the program, which knows nothing of it, or with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Unmapped {
    magic: u64,
    version: u32,
    /// The low half of the cookie that was [attached](crate::Attach) with: by another connection, where a program
    /// has closed that of the mapping.
    node: u32,
}

// Shorter than the other messages: so they are distinguished.
const _: () = assert!(size_of::<Unmapped>() == 16);

impl Unmapped {
    /// Ends a mapping of the node with this cookie.
    pub const fn new(cookie: u64) -> Unmapped {
        Unmapped {
            magic: MAGIC,
            version: VERSION,
            node: cookie as u32,
        }
    }

    /// Whether it is a mapping of the node with this cookie.
    pub const fn is_of(&self, cookie: u64) -> bool {
        self.node == cookie as u32
    }

    /// Reads a message.
    ///
    /// # Errors
    /// It is no such message.
    pub fn from_message(bytes: &[u8]) -> Result<Unmapped, WireError> {
        let unmapped = read::<Unmapped>(bytes)?;
        greets(unmapped.magic, unmapped.version)?;
        Ok(unmapped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attach;

    #[test]
    fn it_is_told_apart_from_other_messages() {
        let message = Unmapped::new(7 << 32 | 9);
        assert!(message.is_of(9) && !message.is_of(7 << 32));
        assert_eq!(Unmapped::from_message(message.as_bytes()), Ok(message));
        assert!(Unmapped::from_message(&[]).is_err());
        assert!(Unmapped::from_message(Attach::new(1, 4096).as_bytes()).is_err());
        assert!(Attach::from_message(message.as_bytes()).is_err());
    }
}
