//! Kernels whose sources were read, and which of them print a message.

use crate::survey::kernel::Version;

/// Kernels whose sources were read, oldest first.
pub(crate) const KERNELS: [Version; 28] = [
    (5, 10),
    (5, 11),
    (5, 12),
    (5, 14),
    (5, 15),
    (5, 17),
    (5, 19),
    (6, 0),
    (6, 1),
    (6, 2),
    (6, 3),
    (6, 4),
    (6, 5),
    (6, 6),
    (6, 7),
    (6, 8),
    (6, 9),
    (6, 10),
    (6, 11),
    (6, 12),
    (6, 13),
    (6, 14),
    (6, 17),
    (6, 18),
    (6, 19),
    (7, 0),
    (7, 1),
    (7, 2),
];

/// Kernels between them that were not read: each may print what its neighbours print.
const UNREAD: [Version; 5] = [(5, 13), (5, 16), (5, 18), (6, 15), (6, 16)];

/// The first and the last of [`KERNELS`] that print a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: Version,
    pub(crate) last: Version,
}

impl Span {
    /// Reads `5.10-6.1`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        let span = Self {
            first: version(first)?,
            last: version(last)?,
        };
        let read = |version| KERNELS.contains(&version);
        (span.first <= span.last && read(span.first) && read(span.last)).then_some(span)
    }

    /// Whether a kernel certainly does not print the message. Nothing is certain of those that
    /// were not read, nor of those before the first and after the last that was.
    pub(crate) fn excludes(self, kernel: Version) -> bool {
        let before = KERNELS.iter().rfind(|known| **known < self.first);
        let after = KERNELS.iter().find(|known| **known > self.last);
        before.is_some_and(|before| kernel <= *before)
            || after.is_some_and(|after| kernel >= *after)
    }

    /// Whether one kernel may print the messages of both.
    pub(crate) fn meets(self, other: Self) -> bool {
        let mut kernels = KERNELS.iter().chain(&UNREAD);
        kernels.any(|kernel| !self.excludes(*kernel) && !other.excludes(*kernel))
    }

    /// The kernels of both.
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

/// Major and minor of `6.12`, or of a release such as `6.8.0-31-generic`.
fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The version by which the messages of a release can be judged.
///
/// Distributions port drivers to older kernels (`5.14.0-427.el9`, `6.8.0-31-generic`), and their
/// number then says nothing. Debian, Fedora and Arch follow the stable releases.
pub(crate) fn upstream(release: &str) -> Option<Version> {
    let name = release.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    // "6.8" is how people name the kernel of a distribution, too.
    let is_whole = release.len() > name.len()
        && release[..release.len() - name.len()].matches('.').count() >= 2;
    let follows = name.is_empty()
        || name.starts_with("-rc")
        || name == "+"
        || name.starts_with("-arch")
        || name.ends_with("-amd64")
        || name.contains(".fc");
    version(release).filter(|_| follows && is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str) -> Span {
        Span::parse(text).unwrap()
    }

    #[test]
    fn a_kernel_that_was_not_read_is_not_excluded_by_its_neighbours() {
        for kernel in [(5, 10), (5, 12), (5, 13), (4, 18)] {
            assert!(!span("5.10-5.12").excludes(kernel), "{kernel:?}");
        }
        assert!(span("5.10-5.12").excludes((5, 14)));
        assert!(span("5.14-7.2").excludes((5, 12)) && span("5.14-7.2").excludes((4, 18)));
        assert!(!span("5.14-7.2").excludes((5, 13)) && !span("5.14-7.2").excludes((7, 3)));
        assert!(span("5.14-7.1").excludes((7, 2)));
    }

    #[test]
    fn spans_meet_in_kernels_that_were_not_read() {
        assert!(span("5.10-5.12").meets(span("5.14-7.2")));
        assert!(!span("5.10-5.14").meets(span("5.15-7.2")));
        assert!(span("5.10-5.15").meets(span("5.15-7.2")));
    }

    #[test]
    fn spans_end_at_kernels_that_were_read() {
        for text in ["5.10-5.13", "6.1-5.10", "6.1", "5.10-"] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }

    #[test]
    fn kernels_of_distributions_are_not_judged_by_their_number() {
        for release in [
            "4.18.0-553.el8_10.x86_64",
            "5.14.0-427.26.1.el9_4.x86_64",
            "6.8.0-31-generic",
            "5.14.21-150500.55.52-default",
            "5.15.0-1045-azure",
            "nothing",
            "6.8",
        ] {
            assert_eq!(upstream(release), None, "{release}");
        }
        for (release, version) in [
            ("7.1.13", (7, 1)),
            ("6.19.0-rc3", (6, 19)),
            ("5.10.0-9-amd64", (5, 10)),
            ("6.12.41+deb13-amd64", (6, 12)),
            ("6.9.7-200.fc40.x86_64", (6, 9)),
        ] {
            assert_eq!(upstream(release), Some(version), "{release}");
        }
    }
}
