//! Where the device's process listens.

/// Environment variable with the name of the socket.
pub const SOCKET_VARIABLE: &str = "DRAY_SOCKET";

/// The name of a socket as the variable holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketName<'a> {
    /// In the abstract namespace of Linux, without the leading zero: nothing of it is left once its
    /// owner has ended. Written with a leading `@`.
    Abstract(&'a [u8]),
    /// A path.
    Path(&'a [u8]),
}

impl<'a> SocketName<'a> {
    /// Reads the variable; `None` if it is empty.
    pub fn parse(value: &'a [u8]) -> Option<SocketName<'a>> {
        match value {
            [] | [b'@'] => None,
            [b'@', name @ ..] => Some(SocketName::Abstract(name)),
            path => Some(SocketName::Path(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        assert_eq!(SocketName::parse(b""), None);
        assert_eq!(SocketName::parse(b"@"), None);
        let name = SocketName::parse(b"@dray-1");
        assert_eq!(name, Some(SocketName::Abstract(b"dray-1")));
        assert_eq!(SocketName::parse(b"/s"), Some(SocketName::Path(b"/s")));
    }
}
