//! What a descriptor is, as it says itself.

use std::mem::MaybeUninit;

use dray_wire::{MAX_PATH, NodeName, Redirection, SocketName};

use super::text::Text;
use super::{device, redirection};
use crate::connect;
use crate::quiet::is_quiet;
use crate::syscall::syscall;

/// An open file.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nothing here may allocate")]
pub(crate) enum File {
    /// A file of the tree: its path for programs, and its permission bits.
    Attribute(Text<PATH>, u32),
    /// An open node.
    Node(NodeName),
}

/// Room for a path in the directory, and for what the kernel adds to that of a file that is gone.
const PATH: usize = 512;
const _: () = assert!(PATH > MAX_PATH);

/// An attribute is a page at most; and so is a node's file.
const LARGEST: i64 = 4096;

/// What `fd` is; `None` for whatever is not ours, and under a filter, which may forbid to look.
#[inline]
pub(crate) fn file(fd: i32) -> Option<File> {
    let redirection = redirection().filter(|_| !is_quiet())?;
    let stat = stat(fd)?;
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG if stat.st_dev == device() && stat.st_size <= LARGEST => {
            attribute(&redirection, fd, stat.st_mode)
        }
        libc::S_IFSOCK => node(fd).map(File::Node),
        _ => None,
    }
}

#[inline(never)]
fn attribute(redirection: &Redirection<'_>, fd: i32, mode: u32) -> Option<File> {
    let mut link = Text::<40>::new();
    if !(link.push(b"/proc/self/fd/") && link.push_number(u32::try_from(fd).ok()?)) {
        return None;
    }
    let mut path = Text::<PATH>::new();
    path.fill(|place| {
        let arguments = [
            link.as_ptr().addr(),
            place.as_mut_ptr().addr(),
            place.len(),
            0,
            0,
            0,
        ];
        // SAFETY: a text with its end, and room for as many bytes as it says.
        unsafe { syscall(libc::SYS_readlink, arguments) }.unwrap_or(0)
    });
    let mut name = Text::new();
    name.push(redirection.strip(path.as_bytes())?)
        .then_some(File::Attribute(name, mode & 0o7777))
}

/// Which open node `fd` is.
pub(crate) fn node(fd: i32) -> Option<NodeName> {
    let Some(SocketName::Abstract(service)) = connect::socket_name() else {
        return None;
    };
    let mut address = MaybeUninit::<libc::sockaddr_un>::zeroed();
    let mut length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    let arguments = [
        fd as usize,
        address.as_mut_ptr().addr(),
        (&raw mut length).addr(),
        0,
        0,
        0,
    ];
    // SAFETY: room for an address, and its length.
    unsafe { syscall(libc::SYS_getsockname, arguments) }.ok()?;
    // SAFETY: all zero is an address as well.
    let address = unsafe { address.assume_init() };
    let head = std::mem::offset_of!(libc::sockaddr_un, sun_path);
    let length = (length as usize).checked_sub(head)?;
    let path = address.sun_path.map(|byte| byte as u8);
    let name = path.get(..length)?.strip_prefix(b"\0")?;
    if i32::from(address.sun_family) != libc::AF_UNIX {
        return None;
    }
    NodeName::parse(name, service)
}

/// Whether `fd` was opened for writing.
pub(crate) fn is_writable(fd: i32) -> bool {
    let arguments = [fd as usize, libc::F_GETFL as usize, 0, 0, 0, 0];
    // SAFETY: it changes nothing.
    let flags = unsafe { syscall(libc::SYS_fcntl, arguments) };
    flags.is_ok_and(|flags| flags as i32 & libc::O_ACCMODE != libc::O_RDONLY)
}

fn stat(fd: i32) -> Option<libc::stat> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    let arguments = [fd as usize, stat.as_mut_ptr().addr(), 0, 0, 0, 0];
    // SAFETY: room for the answer.
    unsafe { syscall(libc::SYS_fstat, arguments) }.ok()?;
    // SAFETY: the call has written it.
    Some(unsafe { stat.assume_init() })
}
