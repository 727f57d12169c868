//! What a process may do at one address, asked at the time of the access.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `struct procmap_query` (include/uapi/linux/fs.h, 6.11).
#[derive(Debug, Default)]
#[repr(C)]
struct ProcmapQuery {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

const _: () = assert!(size_of::<ProcmapQuery>() == 104);

/// `PROCMAP_QUERY`, `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: u64 = 3 << 30 | (size_of::<ProcmapQuery>() as u64) << 16 | 0x66 << 8 | 17;
/// `PROCMAP_QUERY_VMA_READABLE`, `PROCMAP_QUERY_VMA_WRITABLE`.
const READABLE: u64 = 1;
const WRITABLE: u64 = 2;

/// A mapping, as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) end: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

/// The mapping that holds `addr`; `None` where there is none, or no address space any more. `file` is
/// `/proc/PID/maps`, and asks for the address space of which it was opened.
///
/// # Errors
/// `ENOTTY` from a kernel before 6.11.
pub(crate) fn mapping(file: &File, addr: u64) -> io::Result<Option<Mapping>> {
    let mut query = ProcmapQuery {
        size: size_of::<ProcmapQuery>() as u64,
        query_addr: addr,
        ..ProcmapQuery::default()
    };
    // SAFETY: the structure is the request's, and asks for no name.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), PROCMAP_QUERY as _, &raw mut query) };
    if result == 0 {
        return Ok(Some(Mapping {
            end: query.vma_end,
            readable: query.vma_flags & READABLE != 0,
            writable: query.vma_flags & WRITABLE != 0,
        }));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // Nothing is mapped there; the address space is gone.
        Some(libc::ENOENT | libc::ESRCH) => Ok(None),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procmap_query_finds_a_variable_and_nothing_at_page_0() {
        let file = File::open("/proc/self/maps").unwrap();
        let local = 7_u64;
        let addr = (&raw const local).expose_provenance() as u64;
        match mapping(&file, addr) {
            Ok(found) => {
                let found = found.unwrap();
                assert!(found.readable && found.writable && found.end > addr);
                assert_eq!(mapping(&file, 0).unwrap(), None);
            }
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOTTY)),
        }
    }
}
