//! Paths of programs, and where they lead.

use std::ffi::{CStr, c_char};

use dray_wire::{MAX_PATH, Redirection};

use super::redirection;
use super::text::Text;

/// Longest path of a file in the directory.
pub(crate) const LONGEST: usize = 512;

/// A file in the directory, by its path there.
pub(crate) type FilePath = Text<LONGEST>;

/// Directories that hold both the machine's files and ours. The machine's are found by their own
/// names; what is listed or entered is a directory with links to them beside ours.
const COMMON: [&[u8]; 8] = [
    b"/dev",
    b"/sys",
    b"/sys/bus",
    b"/sys/bus/pci",
    b"/sys/bus/pci/devices",
    b"/sys/dev",
    b"/sys/devices",
    b"/sys/module",
];

/// What a path is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// What it names.
    Entry,
    /// What is in it.
    Listing,
}

/// Calls `function` with `path`, or with the path of the file in the directory that it means.
///
/// # Safety
/// `path` is null or a text with its end.
#[inline]
pub(crate) unsafe fn through<R>(
    path: *const c_char,
    purpose: Use,
    function: impl FnOnce(*const c_char) -> R,
) -> R {
    // SAFETY: the caller vouches for the path.
    match unsafe { candidate(path) } {
        // SAFETY: as above.
        Some(redirection) => unsafe { through_place(&redirection, path, purpose, function) },
        None => function(path),
    }
}

/// Apart from the caller's, its place on the stack is large.
#[inline(never)]
unsafe fn through_place<R>(
    redirection: &Redirection<'_>,
    path: *const c_char,
    purpose: Use,
    function: impl FnOnce(*const c_char) -> R,
) -> R {
    // SAFETY: the caller vouches for the path.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    match find(redirection, bytes, purpose) {
        Some(place) => function(place.as_ptr()),
        None => function(path),
    }
}

/// The file in the directory that `path` means; `None` for all others.
///
/// # Safety
/// `path` is null or a text with its end.
pub(crate) unsafe fn place(path: *const c_char, purpose: Use) -> Option<FilePath> {
    // SAFETY: the caller vouches for the path.
    let redirection = unsafe { candidate(path) }?;
    // SAFETY: as above; and it is not null.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    find(&redirection, bytes, purpose)
}

/// The redirection, unless a path is none of its at first sight. Relative ones are looked up by the
/// kernel: a directory of ours that is open, or entered, leads to the right file.
#[inline]
unsafe fn candidate(path: *const c_char) -> Option<Redirection<'static>> {
    let redirection = redirection()?;
    // SAFETY: the caller vouches for the path.
    let first = unsafe { path.as_ref() }?;
    (*first == b'/' as c_char).then_some(redirection)
}

/// Where an absolute path leads. Up to the name that is redirected `.`, `..` and empty names are
/// taken as if there were no links; what follows is the kernel's to resolve.
fn find(redirection: &Redirection<'_>, path: &[u8], purpose: Use) -> Option<FilePath> {
    let mut place = FilePath::new();
    if !place.push(redirection.root) {
        return None;
    }
    let root = redirection.root.len();
    let mut rest = path;
    loop {
        let start = rest.iter().position(|byte| *byte != b'/');
        rest = &rest[start.unwrap_or(rest.len())..];
        if rest.is_empty() {
            let listed = purpose == Use::Listing && COMMON.contains(&&place.as_bytes()[root..]);
            return listed.then_some(place);
        }
        let end = rest.iter().position(|byte| *byte == b'/');
        let name = &rest[..end.unwrap_or(rest.len())];
        rest = &rest[name.len()..];
        match name {
            b"." => continue,
            b".." => {
                let bytes = &place.as_bytes()[root..];
                let parent = bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                place.truncate(root + parent);
                continue;
            }
            _ => {}
        }
        if !(place.push(b"/") && place.push(name)) {
            // Paths of ours are shorter.
            return None;
        }
        if redirection.holds(&place.as_bytes()[root..]) {
            return place.push(rest).then_some(place);
        }
    }
}

/// The name of a node that a place is, if it can be one's: `/dev/dsa/wq0.0`.
pub(crate) fn node<'p>(redirection: &Redirection<'_>, place: &'p [u8]) -> Option<&'p [u8]> {
    let path = redirection.strip(place)?;
    let name = path.strip_prefix(b"/dev/dsa/")?;
    let plain = !name.is_empty() && !name.contains(&b'/') && path.len() <= MAX_PATH;
    plain.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALUE: &[u8] = b"/t/root|/sys/bus/dsa|/dev/dsa|/sys/devices/pci0000:6a";

    fn found(path: &str, purpose: Use) -> Option<String> {
        let redirection = Redirection::parse(VALUE).unwrap();
        let place = find(&redirection, path.as_bytes(), purpose)?;
        Some(String::from_utf8(place.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn redirected_paths_are_placed_below_the_root() {
        for (path, place) in [
            ("/sys/bus/dsa", "/t/root/sys/bus/dsa"),
            ("//sys/./bus//dsa/", "/t/root/sys/bus/dsa/"),
            ("/usr/../sys/bus/dsa/devices", "/t/root/sys/bus/dsa/devices"),
            ("/../../dev/dsa/wq0.0", "/t/root/dev/dsa/wq0.0"),
            (
                "/sys/bus/dsa/devices/dsa0/../vendor",
                "/t/root/sys/bus/dsa/devices/dsa0/../vendor",
            ),
        ] {
            assert_eq!(found(path, Use::Entry).as_deref(), Some(place), "{path}");
        }
    }

    #[test]
    fn other_paths_are_not_redirected() {
        let long = format!("/sys/bus/dsa/{}", "x".repeat(LONGEST));
        for path in [
            "/",
            "/sys",
            "/sys/bus/dsax",
            "/dev/dsa/..x/../../dsb",
            &long,
        ] {
            let other = found(path, Use::Entry);
            let kept = path.starts_with("/dev/dsa/");
            assert_eq!(other.is_some(), kept, "{path}");
        }
        assert_eq!(found("/sys/bus", Use::Entry), None);
        let listed = found("/sys/bus/", Use::Listing);
        assert_eq!(listed.as_deref(), Some("/t/root/sys/bus"));
        assert_eq!(found("/dev", Use::Entry), None);
        let listed = found("/dev/shm/..", Use::Listing);
        assert_eq!(listed.as_deref(), Some("/t/root/dev"));
        assert_eq!(found("/usr", Use::Listing), None);
    }

    #[test]
    fn placed_device_nodes_have_their_name_in_dev_dsa() {
        let redirection = Redirection::parse(VALUE).unwrap();
        let name = |place: &'static str| node(&redirection, place.as_bytes());
        assert_eq!(name("/t/root/dev/dsa/wq0.0"), Some(&b"/dev/dsa/wq0.0"[..]));
        assert_eq!(name("/t/root/dev/dsa"), None);
        assert_eq!(name("/t/root/dev/dsa/a/b"), None);
        assert_eq!(name("/dev/dsa/wq0.0"), None);
    }

    proptest! {
        #[test]
        fn random_paths_are_placed_below_the_root_or_not_at_all(path in "[/.a-z]{0,40}", listing: bool) {
            let purpose = if listing { Use::Listing } else { Use::Entry };
            let place = found(&format!("/{path}"), purpose);
            prop_assert!(place.is_none_or(|place| place.starts_with("/t/root/")));
        }
    }
}
