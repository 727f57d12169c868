//! Who a work queue's node is.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{MAGIC, VERSION, WireError, greets, read};

/// The ioctl that asks: `_IOR(0xd5, 1, struct node)`, as FUSE can answer without privilege. A file
/// that is not ours says `ENOTTY`.
pub const CLIENT: u32 = 2 << 30 | (size_of::<Node>() as u32) << 16 | 0xd5 << 8 | 1;

/// What the ioctl answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Node {
    magic: u64,
    version: u32,
    /// Number of the device, as in `dsa0`.
    pub device: u32,
    /// Names this open file; the process that maps the portal sends it.
    pub cookie: u64,
    /// Number of the work queue.
    pub wq: u16,
    reserved: [u8; 6],
}

const _: () = assert!(size_of::<Node>() == 32);

impl Node {
    /// The answer for an open file.
    pub const fn new(device: u32, wq: u16, cookie: u64) -> Node {
        Node {
            magic: MAGIC,
            version: VERSION,
            device,
            cookie,
            wq,
            reserved: [0; 6],
        }
    }

    /// Reads what the ioctl has written.
    ///
    /// # Errors
    /// It is no such answer.
    pub fn from_message(bytes: &[u8]) -> Result<Node, WireError> {
        let node = read::<Node>(bytes)?;
        greets(node.magic, node.version)?;
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_the_ioctl_says_its_direction_and_size() {
        assert_eq!(CLIENT, 0x8020_d501);
    }

    #[test]
    fn a_node_is_read_as_it_was_written() {
        let node = Node::new(2, 7, 0x0123_4567_89ab_cdef);
        assert_eq!(Node::from_message(node.as_bytes()), Ok(node));
        assert_eq!(Node::from_message(&[0; 32]), Err(WireError::NotOurs));
    }
}
