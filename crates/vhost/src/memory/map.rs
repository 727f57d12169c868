//! The regions of a front end, and the way from its addresses to ours.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use super::unmap::{self, Waiting};
use super::{DirtyLog, Mapping};
use crate::VhostError;

/// A region as messages describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegionInfo {
    /// Guest physical address.
    pub guest: u64,
    /// Bytes.
    pub size: u64,
    /// Address in the front end's process; rings are named by these.
    pub user: u64,
    /// Offset in the file.
    pub offset: u64,
}

impl RegionInfo {
    /// The same place and size, as REM_MEM_REG matches regions.
    pub fn matches(&self, other: &RegionInfo) -> bool {
        self.guest == other.guest && self.user == other.user && self.size == other.size
    }

    fn check(&self) -> Result<(), VhostError> {
        let reason = if self.size == 0 {
            "it is empty"
        } else if self.guest.checked_add(self.size).is_none() {
            "it goes beyond the last guest address"
        } else if self.user.checked_add(self.size).is_none() {
            "it goes beyond the last user address"
        } else {
            return Ok(());
        };
        Err(self.error(reason))
    }

    fn error(&self, reason: &'static str) -> VhostError {
        VhostError::Region {
            guest: self.guest,
            size: self.size,
            reason,
        }
    }
}

#[derive(Debug, Clone)]
struct Region {
    info: RegionInfo,
    host: NonNull<u8>,
    mapping: Arc<Mapping>,
}

// SAFETY: `host` points into `mapping`, which is shared memory that may be used from any thread.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// Index of the region that was found last; looked at first.
pub(crate) type Hint = usize;

/// The regions of a front end, sorted by guest address. It never changes: a changed memory is a new
/// map, and the old one is unmapped when the last copy in flight lets go of it.
#[derive(Debug, Clone)]
pub struct MemoryMap {
    regions: Vec<Region>,
    /// Address space that the mappings may take, in bytes.
    limit: u64,
    /// Regions of this map and of those that it was made from which nobody uses, and which are still mapped.
    waiting: Waiting,
    /// Files and connections of the front end that are still to be closed.
    closing: Waiting,
}

/// Files and connections that wait to be closed, from which on the front end waits.
const MOST_CLOSING: usize = 64;

impl MemoryMap {
    /// No region; those to come may take so many bytes of address space.
    pub fn new(limit: u64) -> MemoryMap {
        MemoryMap {
            regions: Vec::new(),
            limit,
            waiting: Waiting::default(),
            closing: Waiting::default(),
        }
    }

    /// A map in place of this one, without a region.
    pub fn cleared(&self) -> MemoryMap {
        self.of(Vec::new())
    }

    /// A map in place of this one, of a table of regions, each with its file.
    ///
    /// # Errors
    /// As [`MemoryMap::with`].
    pub fn replaced_by(&self, table: Vec<(RegionInfo, OwnedFd)>) -> Result<MemoryMap, VhostError> {
        let map = |map: MemoryMap, (info, file)| map.with(info, file);
        table.into_iter().try_fold(self.cleared(), map)
    }

    fn of(&self, regions: Vec<Region>) -> MemoryMap {
        MemoryMap {
            regions,
            limit: self.limit,
            waiting: self.waiting.clone(),
            closing: self.closing.clone(),
        }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Whether regions that it has replaced are still to be unmapped, or many files to be closed. Who then adds further ones takes more
    /// address space than the limit.
    pub fn is_unmapping(&self) -> bool {
        self.waiting.any() || self.closing.count() >= MOST_CLOSING
    }

    /// Closes something of the front end's, such as a file that nobody else may have open any more, on the thread that
    /// unmaps.
    pub(crate) fn close_later(&self, gone: impl Send + 'static) {
        unmap::later(Box::new(gone), &self.closing);
    }

    /// Counts as one more region to be unmapped until it is dropped.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> impl Drop + use<> {
        self.waiting.one()
    }

    /// This map and one more region.
    ///
    /// # Errors
    /// The region is empty, overflows, overlaps another, is longer than its file, or does not fit.
    pub fn with(&self, info: RegionInfo, file: OwnedFd) -> Result<MemoryMap, VhostError> {
        info.check()?;
        let overlaps = |r: &Region| {
            info.guest < r.info.guest + r.info.size && r.info.guest < info.guest + info.size
        };
        if self.regions.iter().any(overlaps) {
            return Err(info.error("it overlaps another region"));
        }
        let mapped = |r: &Region| r.info.offset.saturating_add(r.info.size);
        let taken: u64 = self.regions.iter().map(mapped).sum();
        // A mapping begins at the file's beginning.
        let more = info.offset.saturating_add(info.size);
        if taken.saturating_add(more) > self.limit {
            return Err(info.error("the port's regions would take more address space than it may"));
        }
        let place = (info.guest, info.size, info.offset);
        let mapping = Arc::new(Mapping::new(file, place, &self.waiting)?);
        let region = Region {
            info,
            host: mapping.at(info.offset),
            mapping,
        };
        let mut regions = self.regions.clone();
        let at = regions.partition_point(|r| r.info.guest < info.guest);
        regions.insert(at, region);
        Ok(self.of(regions))
    }

    /// This map without a region.
    ///
    /// # Errors
    /// There is no such region.
    pub fn without(&self, info: &RegionInfo) -> Result<MemoryMap, VhostError> {
        let found = self.regions.iter().position(|r| r.info.matches(info));
        let at = found.ok_or_else(|| info.error("no region has this place and size"))?;
        let mut regions = self.regions.clone();
        regions.remove(at);
        Ok(self.of(regions))
    }

    /// Whether it has all mappings of another map.
    pub(crate) fn has_all_of(&self, other: &MemoryMap) -> bool {
        let has = |r: &Region| {
            self.regions
                .iter()
                .any(|own| Arc::ptr_eq(&own.mapping, &r.mapping))
        };
        other.regions.iter().all(has)
    }

    /// The regions, by guest address.
    pub fn regions(&self) -> impl Iterator<Item = &RegionInfo> {
        self.regions.iter().map(|r| &r.info)
    }

    /// How many regions there are.
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Whether an access has found a memory file truncated.
    pub fn is_broken(&self) -> bool {
        self.regions.iter().any(|r| r.mapping.is_broken())
    }

    /// Where `len` bytes at a guest address lie, if they lie in one region.
    pub fn translate(&self, guest: u64, len: u32) -> Option<NonNull<u8>> {
        self.translate_with(guest, len, &mut 0)
    }

    #[inline]
    pub(crate) fn translate_with(
        &self,
        guest: u64,
        len: u32,
        hint: &mut Hint,
    ) -> Option<NonNull<u8>> {
        let (ptr, left) = self.prefix(guest, hint)?;
        (left >= u64::from(len)).then_some(ptr)
    }

    /// Where a guest address lies, and how many bytes its region has from there.
    #[inline]
    pub(crate) fn prefix(&self, guest: u64, hint: &mut Hint) -> Option<(NonNull<u8>, u64)> {
        let region = match self.regions.get(*hint) {
            Some(r) if guest.wrapping_sub(r.info.guest) < r.info.size => r,
            _ => self.look_up(guest, hint)?,
        };
        let offset = guest - region.info.guest;
        // SAFETY: the offset is less than the region's size, all of which is mapped.
        let ptr = unsafe { region.host.add(offset as usize) };
        Some((ptr, region.info.size - offset))
    }

    #[cold]
    fn look_up(&self, guest: u64, hint: &mut Hint) -> Option<&Region> {
        let after = self.regions.partition_point(|r| r.info.guest <= guest);
        let at = after.checked_sub(1)?;
        let region = &self.regions[at];
        *hint = at;
        (guest - region.info.guest < region.info.size).then_some(region)
    }

    /// Logs `len` bytes at an address of ours that a translation gave. Returns how many pages of them
    /// the log is too small for.
    pub(crate) fn log(&self, log: &DirtyLog, at: NonNull<u8>, len: u64) -> u64 {
        let at = at.as_ptr() as u64;
        let offset = |r: &Region| at.wrapping_sub(r.host.as_ptr() as u64);
        let region = self.regions.iter().find(|r| offset(r) < r.info.size);
        region.map_or(0, |r| log.mark(r.info.guest + offset(r), len))
    }

    /// Where `len` bytes at an address of the front end's process lie, if they lie in one region.
    pub fn translate_user(&self, user: u64, len: u64) -> Option<NonNull<u8>> {
        let inside = |r: &&Region| {
            let offset = user.wrapping_sub(r.info.user);
            offset < r.info.size && len <= r.info.size - offset
        };
        let region = self.regions.iter().find(inside)?;
        // SAFETY: the offset is less than the region's size, all of which is mapped.
        Some(unsafe { region.host.add((user - region.info.user) as usize) })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    const NAME: &CStr = c"map";

    fn file(len: u64) -> OwnedFd {
        let file = memfd_create(NAME, MemfdFlags::CLOEXEC).expect("a memfd");
        ftruncate(&file, len).expect("a length");
        file
    }

    fn region(guest: u64, size: u64, offset: u64) -> RegionInfo {
        RegionInfo {
            guest,
            size,
            user: guest + 0x7000_0000_0000,
            offset,
        }
    }

    #[test]
    fn addresses_are_translated_within_their_region_only() {
        let map = MemoryMap::new(1 << 20)
            .with(region(0x10000, 0x2000, 0x1000), file(0x3000))
            .and_then(|m| m.with(region(0x12000, 0x1000, 0), file(0x1000)))
            .expect("two regions");
        assert!(map.translate(0x10000, 0x2000).is_some());
        assert!(map.translate(0x10000, 0x2001).is_none());
        assert!(map.translate(0xffff, 1).is_none());
        assert!(map.translate(0x12fff, 1).is_some());
        assert!(map.translate(0x13000, 1).is_none());
        assert!(map.translate(0x12fff, u32::MAX).is_none());
        assert!(map.translate(u64::MAX, u32::MAX).is_none());
        assert!(map.translate_user(0x7000_0001_0000, 0x2000).is_some());
        assert!(map.translate_user(0x7000_0001_0001, 0x2000).is_none());
        assert!(map.translate_user(u64::MAX, u64::MAX).is_none());
    }

    #[test]
    fn overlapping_empty_and_overlong_regions_are_refused() {
        let map = MemoryMap::new(1 << 40)
            .with(region(0x10000, 0x2000, 0), file(0x2000))
            .expect("a region");
        let refused = |info: RegionInfo| map.with(info, file(0x2000)).is_err();
        assert!(refused(region(0x11fff, 0x1000, 0)), "overlap");
        assert!(refused(region(0x20000, 0, 0)), "empty");
        assert!(refused(region(0x20000, 0x2001, 0)), "longer than the file");
        assert!(refused(region(0x20000, 0x1000, 0x1001)), "beyond its end");
        assert!(refused(region(0x20000, 0x1000, u64::MAX)), "overflow");
        let mut wide = region(0x20000, 0x1000, 0);
        wide.guest = u64::MAX - 1;
        assert!(refused(wide), "beyond the last address");
        assert!(map.without(&region(0x10000, 0x1000, 0)).is_err());
        assert!(
            map.without(&region(0x10000, 0x2000, 0))
                .expect("it")
                .is_empty()
        );
    }

    #[test]
    fn regions_beyond_the_address_space_are_refused_with_what_precedes_them_in_their_file() {
        let map = MemoryMap::new(0x4000)
            .with(region(0x10000, 0x1000, 0x1000), file(0x2000))
            .expect("half of it");
        assert!(
            map.with(region(0x20000, 0x1000, 0x1001), file(0x3000))
                .is_err()
        );
        let full = map.with(region(0x20000, 0x1000, 0x1000), file(0x2000));
        let full = full.expect("the other half");
        assert!(full.with(region(0x30000, 1, 0), file(0x1000)).is_err());
        let less = full.without(&region(0x20000, 0x1000, 0x1000)).expect("it");
        assert!(less.with(region(0x30000, 1, 0), file(0x1000)).is_ok());
    }

    #[test]
    fn a_truncated_file_reads_as_zeros_and_marks_the_map_broken() {
        let memory = file(0x4000);
        let writer = memory.try_clone().expect("another descriptor");
        let map = MemoryMap::new(1 << 20)
            .with(region(0, 0x4000, 0), memory)
            .expect("a region");
        let last = map.translate(0x3000, 1).expect("mapped");
        // SAFETY: the byte is mapped.
        unsafe { last.write_volatile(7) };
        assert!(!map.is_broken());
        ftruncate(&writer, 0x1000).expect("shorter");
        // SAFETY: the address is mapped; the handler gives it a page.
        assert_eq!(unsafe { last.read_volatile() }, 0);
        assert!(map.is_broken());
        let first = map.translate(0, 1).expect("mapped");
        // SAFETY: the first page is still the file's.
        unsafe { first.write_volatile(1) };
    }
}
