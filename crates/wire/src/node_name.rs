//! Open nodes that are sockets.

use core::fmt;

/// The name of a socket that stands for an open node where no file system does: in the abstract
/// namespace, below that of the service. Every holder of the socket, by whatever way it came, learns
/// from it who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeName {
    /// Number of the device.
    pub device: u32,
    /// Number of the work queue.
    pub wq: u16,
    /// How it was opened: `O_RDONLY`, `O_WRONLY` or `O_RDWR`.
    pub mode: u8,
    /// Names this open file, as in a [`Node`](crate::Node).
    pub cookie: u64,
}

impl fmt::Display for NodeName {
    /// What follows the name of the service.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NodeName {
            device,
            wq,
            mode,
            cookie,
        } = self;
        write!(f, "/{device}.{wq}.{mode}.{cookie}")
    }
}

impl NodeName {
    /// Reads the name of a socket; `None` if it is no node of this service.
    pub fn parse(name: &[u8], service: &[u8]) -> Option<NodeName> {
        let rest = name.strip_prefix(service)?.strip_prefix(b"/")?;
        let mut numbers = core::str::from_utf8(rest).ok()?.split('.');
        let parsed = NodeName {
            device: numbers.next()?.parse().ok()?,
            wq: numbers.next()?.parse().ok()?,
            mode: numbers.next()?.parse().ok()?,
            cookie: numbers.next()?.parse().ok()?,
        };
        numbers.next().is_none().then_some(parsed)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::format;

    proptest! {
        #[test]
        fn a_name_is_read_as_it_was_written(device: u32, wq: u16, mode in 0..3u8, cookie: u64) {
            let name = NodeName { device, wq, mode, cookie };
            let written = format!("dray-1-2{name}");
            prop_assert_eq!(NodeName::parse(written.as_bytes(), b"dray-1-2"), Some(name));
            prop_assert_eq!(NodeName::parse(written.as_bytes(), b"dray-1-3"), None);
            prop_assert_eq!(NodeName::parse(written.as_bytes(), b"dray-1"), None);
        }

        #[test]
        fn other_names_are_nothing(name in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(NodeName::parse(&name, b"dray-1-2"), None);
        }
    }
}
