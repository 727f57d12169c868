//! Where a program finds the files of the tree when they are not mounted.

/// Environment variable with a [`Redirection`].
pub const REDIRECT_VARIABLE: &str = "DRAY_REDIRECT";

/// Between the parts of it.
pub const SEPARATOR: u8 = b'|';

/// A file in the directory that is always there: by it programs know the file system.
pub const MARK: &str = ".mark";

/// A directory that holds `sys` and `dev`, and the absolute paths that are to be found in it: the
/// value of the variable, `ROOT|/sys/bus/dsa|/dev/dsa`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redirection<'a> {
    /// The directory.
    pub root: &'a [u8],
    paths: &'a [u8],
}

impl<'a> Redirection<'a> {
    /// Reads the variable; `None` if it names no directory or nothing to be found there.
    pub fn parse(value: &'a [u8]) -> Option<Redirection<'a>> {
        let at = value.iter().position(|byte| *byte == SEPARATOR)?;
        let (root, paths) = (&value[..at], &value[at + 1..]);
        let good = root.len() > 1 && root[0] == b'/' && !paths.is_empty();
        good.then_some(Redirection { root, paths })
    }

    /// Whether a path is one of those in the directory, or below one. It has no empty component, no
    /// `.` and no `..`.
    pub fn holds(&self, path: &[u8]) -> bool {
        let mut paths = self.paths.split(|byte| *byte == SEPARATOR);
        paths.any(|prefix| {
            let rest = path.strip_prefix(prefix);
            !prefix.is_empty() && rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
        })
    }

    /// The path that a file in the directory has for programs; `None` if it is not in there.
    pub fn strip<'p>(&self, file: &'p [u8]) -> Option<&'p [u8]> {
        let rest = file.strip_prefix(self.root)?;
        (rest.first() == Some(&b'/')).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_apart() {
        let value = b"/tmp/d/root|/sys/bus/dsa|/sys/devices/pci0000:6a|/dev/dsa";
        let redirection = Redirection::parse(value).expect("it names a directory");
        assert_eq!(redirection.root, b"/tmp/d/root");
        for inside in [
            "/sys/bus/dsa",
            "/sys/bus/dsa/devices",
            "/sys/devices/pci0000:6a/x",
            "/dev/dsa/wq0.0",
        ] {
            assert!(redirection.holds(inside.as_bytes()), "{inside}");
        }
        for outside in ["/sys/bus/dsax", "/sys/bus", "/dev", "", "/", "/sys/devices"] {
            assert!(!redirection.holds(outside.as_bytes()), "{outside}");
        }
        let stripped = redirection.strip(b"/tmp/d/root/dev/dsa");
        assert_eq!(stripped, Some(&b"/dev/dsa"[..]));
        assert_eq!(redirection.strip(b"/tmp/d/rooted"), None);
        assert_eq!(redirection.strip(b"/tmp/d/root"), None);
    }

    #[test]
    fn other_values_are_nothing() {
        for value in ["", "/tmp", "|/sys", "tmp|/sys", "/tmp|", "/|/sys"] {
            assert_eq!(Redirection::parse(value.as_bytes()), None, "{value}");
        }
    }
}
