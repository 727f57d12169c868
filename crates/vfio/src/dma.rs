//! The client's memory, as it has mapped it for the device.
//!
//! Files are read and written by system calls, not mapped: a client that truncates a file that it has
//! passed gets page faults in its completion records, and this process no SIGBUS.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use dray_device::Access;
use rustix::fs::{FileType, fstat, fstatfs};
use rustix::io::{pread, pwrite};

use crate::protocol::{DmaMap, DmaUnmap, Errno, Refusal};

/// Regions that a client may map at a time.
pub(crate) const MAX_MAPS: usize = 65535;
/// `HUGETLBFS_MAGIC`: there is no write(2) to its files.
const HUGETLBFS: i64 = 0x9584_58f6;

#[derive(Debug)]
struct Region {
    size: u64,
    /// `None`: memory that the client keeps for itself. The device cannot reach it.
    file: Option<OwnedFd>,
    offset: u64,
    readable: bool,
    writable: bool,
    /// An access has failed: the file is shorter than the mapping.
    broken: AtomicBool,
}

impl Region {
    fn allows(&self, access: Access) -> bool {
        let permitted = match access {
            Access::Read => self.readable,
            Access::Write => self.writable,
        };
        permitted && self.file.is_some() && !self.broken.load(Ordering::Relaxed)
    }
}

/// What is mapped, by the device's address.
#[derive(Debug, Default)]
pub(crate) struct DmaTable(RwLock<BTreeMap<u64, Region>>);

/// An access that [`accessible`](DmaTable::accessible) has permitted has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed;

impl DmaTable {
    /// Maps a region.
    pub(crate) fn map(&self, map: &DmaMap, file: Option<OwnedFd>) -> Result<(), Refusal> {
        let refuse = |errno, what| Err(Refusal::new(errno, what));
        let Some(end) = map.address.checked_add(map.size).filter(|_| map.size > 0) else {
            return refuse(Errno::Invalid, "DMA_MAP of an impossible range");
        };
        if map
            .offset
            .checked_add(map.size)
            .is_none_or(|end| end > i64::MAX as u64)
        {
            return refuse(Errno::Invalid, "DMA_MAP beyond the end of all files");
        }
        if map.flags & !3 != 0 {
            return refuse(Errno::Invalid, "DMA_MAP with unknown flags");
        }
        if let Some(file) = &file {
            let status = fstat(file).map(|stat| FileType::from_raw_mode(stat.st_mode));
            if status != Ok(FileType::RegularFile) {
                return refuse(Errno::Invalid, "DMA_MAP of what is no file");
            }
            if fstatfs(file).is_ok_and(|fs| fs.f_type == HUGETLBFS) {
                return refuse(Errno::NotSupported, "DMA_MAP of huge page files");
            }
        }
        let mut regions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if regions.len() >= MAX_MAPS {
            return refuse(Errno::NoSpace, "DMA_MAP of too many regions");
        }
        let before = regions.range(..end).next_back();
        if before.is_some_and(|(start, region)| start + region.size > map.address) {
            return refuse(Errno::Exists, "DMA_MAP of what is mapped");
        }
        let region = Region {
            size: map.size,
            file,
            offset: map.offset,
            readable: map.flags & 1 != 0,
            writable: map.flags & 2 != 0,
            broken: AtomicBool::new(false),
        };
        regions.insert(map.address, region);
        Ok(())
    }

    /// Unmaps what lies in a range: whole regions. When this returns they are no longer accessed.
    /// Nothing there is no error, as in VFIO.
    pub(crate) fn unmap(&self, unmap: &DmaUnmap) -> Result<(), Refusal> {
        let refuse = |errno, what| Err(Refusal::new(errno, what));
        if unmap.flags & DmaUnmap::DIRTY_BITMAP != 0 {
            return refuse(Errno::NotSupported, "DMA_UNMAP with a dirty bitmap");
        }
        let mut regions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if unmap.flags & DmaUnmap::ALL != 0 {
            regions.clear();
            return Ok(());
        }
        let start = unmap.address;
        let last = start.checked_add(unmap.size.wrapping_sub(1));
        let Some(last) = last.filter(|_| unmap.size > 0) else {
            return refuse(Errno::Invalid, "DMA_UNMAP of an impossible range");
        };
        let crosses =
            |at: u64, (first, region): (&u64, &Region)| *first < at && first + region.size > at;
        let begins_inside = regions.range(..start).next_back();
        let ends_inside = regions.range(..=last).next_back();
        if begins_inside.is_some_and(|entry| crosses(start, entry))
            || ends_inside.is_some_and(|(first, region)| first + region.size - 1 > last)
        {
            return refuse(Errno::Invalid, "DMA_UNMAP of part of a region");
        }
        let inside: Vec<u64> = regions.range(start..=last).map(|(at, _)| *at).collect();
        for at in inside {
            regions.remove(&at);
        }
        Ok(())
    }

    /// Unmaps everything.
    pub(crate) fn clear(&self) {
        let mut regions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        regions.clear();
    }

    /// Bytes from `addr` on, at most `len`, that can be accessed.
    pub(crate) fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let regions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let end = addr.saturating_add(len);
        let first = regions
            .range(..=addr)
            .next_back()
            .map_or(addr, |(at, _)| *at);
        let mut reached = addr;
        for (start, region) in regions.range(first..) {
            if reached >= end || *start > reached || !region.allows(access) {
                break;
            }
            reached = reached.max(start + region.size);
        }
        reached.min(end) - addr
    }

    /// Reads bytes that are accessible.
    pub(crate) fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Failed> {
        self.each(addr, into.len(), Access::Read, |file, offset, from, to| {
            let mut done = from;
            while done < to {
                match pread(file, &mut into[done..to], offset + (done - from) as u64) {
                    Ok(0) | Err(_) => return false,
                    Ok(n) => done += n,
                }
            }
            true
        })
    }

    /// Writes bytes that are accessible.
    pub(crate) fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), Failed> {
        self.each(
            addr,
            bytes.len(),
            Access::Write,
            |file, offset, from, to| {
                let size = fstat(file).map_or(0, |stat| stat.st_size as u64);
                // A write must not make a file longer that the client has truncated.
                if size < offset + (to - from) as u64 {
                    return false;
                }
                let mut done = from;
                while done < to {
                    match pwrite(file, &bytes[done..to], offset + (done - from) as u64) {
                        Ok(0) | Err(_) => return false,
                        Ok(n) => done += n,
                    }
                }
                true
            },
        )
    }

    /// Calls `access` for the part of each region: its file, the offset there, and which of the bytes.
    /// While it runs, nothing is unmapped.
    fn each(
        &self,
        addr: u64,
        len: usize,
        kind: Access,
        mut access: impl FnMut(&OwnedFd, u64, usize, usize) -> bool,
    ) -> Result<(), Failed> {
        let regions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        while done < len {
            let at = addr.checked_add(done as u64).ok_or(Failed)?;
            let (start, region) = regions.range(..=at).next_back().ok_or(Failed)?;
            let inside = at - start;
            let left = region.size.checked_sub(inside).filter(|left| *left > 0);
            let (Some(left), true) = (left, region.allows(kind)) else {
                return Err(Failed);
            };
            let Some(file) = &region.file else {
                return Err(Failed);
            };
            let to = done + left.min((len - done) as u64) as usize;
            if !access(file, region.offset + inside, done, to) {
                region.broken.store(true, Ordering::Relaxed);
                return Err(Failed);
            }
            done = to;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn file(bytes: u64) -> OwnedFd {
        let file = memfd_create("dma", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&file, bytes).expect("a length");
        file
    }

    fn map(address: u64, size: u64) -> DmaMap {
        DmaMap {
            argsz: 32,
            flags: 3,
            offset: 0,
            address,
            size,
        }
    }

    fn unmap(address: u64, size: u64) -> DmaUnmap {
        DmaUnmap {
            argsz: 24,
            flags: 0,
            address,
            size,
        }
    }

    #[test]
    fn accesses_cross_regions_and_end_at_gaps() {
        let table = DmaTable::default();
        for address in [0x1000, 0x2000, 0x4000] {
            table
                .map(&map(address, 0x1000), Some(file(0x1000)))
                .expect("mapped");
        }
        assert_eq!(table.accessible(0x1800, 0x2000, Access::Write), 0x1800);
        assert_eq!(table.accessible(0x3000, 1, Access::Read), 0);
        assert_eq!(table.accessible(0xfff, 1, Access::Read), 0);
        assert_eq!(table.accessible(0x4fff, u64::MAX, Access::Read), 1);
        table
            .write(0x1ffc, &[1, 2, 3, 4, 5, 6, 7, 8])
            .expect("written");
        let mut back = [0; 8];
        table.read(0x1ffc, &mut back).expect("read");
        assert_eq!(back, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(table.read(0x2ffc, &mut back), Err(Failed));
    }

    #[test]
    fn overlapping_maps_and_partial_unmaps_are_refused() {
        let table = DmaTable::default();
        table
            .map(&map(0x1000, 0x2000), Some(file(0x2000)))
            .expect("mapped");
        for (address, size, errno) in [
            (0x1000, 0x2000, Errno::Exists),
            (0x0, 0x1001, Errno::Exists),
            (0x2fff, 1, Errno::Exists),
            (0x3000, 0, Errno::Invalid),
            (u64::MAX, 2, Errno::Invalid),
        ] {
            let refused = table.map(&map(address, size), Some(file(0x1000)));
            assert_eq!(refused.map_err(|r| r.errno), Err(errno), "{address:#x}");
        }
        for (address, size) in [
            (0x1000, 0x1000),
            (0x2000, 0x1000),
            (0x0, 0x2000),
            (0x1000, 0),
        ] {
            let refused = table.unmap(&unmap(address, size));
            assert_eq!(
                refused.map_err(|r| r.errno),
                Err(Errno::Invalid),
                "{address:#x}"
            );
        }
        assert_eq!(table.accessible(0x1000, 0x2000, Access::Read), 0x2000);
        table.unmap(&unmap(0, 0x10_0000)).expect("whole regions");
        table.unmap(&unmap(0x1000, 0x2000)).expect("nothing there");
        assert_eq!(table.accessible(0x1000, 1, Access::Read), 0);
    }

    #[test]
    fn accesses_to_a_truncated_file_fail_and_do_not_extend_it() {
        let table = DmaTable::default();
        let memory = file(0x2000);
        let kept = memory.try_clone().expect("a duplicate");
        table.map(&map(0, 0x2000), Some(memory)).expect("mapped");
        ftruncate(&kept, 0x1000).expect("shorter");
        assert_eq!(table.write(0x1000, &[1]), Err(Failed));
        assert_eq!(table.accessible(0, 0x2000, Access::Write), 0);
        assert_eq!(fstat(&kept).expect("status").st_size, 0x1000);
    }

    #[test]
    fn memory_without_a_file_is_mapped_and_not_accessible() {
        let table = DmaTable::default();
        table.map(&map(0x1000, 0x1000), None).expect("mapped");
        assert_eq!(table.accessible(0x1000, 1, Access::Read), 0);
    }
}
