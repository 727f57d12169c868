//! The code that a process has mapped, and how calls in it are traced back.

use std::fmt;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use dray_realtime::Origin;
use dray_remote::living_thread;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Unwinder};
use object::read::{Object, ObjectSection, ObjectSegment, ReadCache};
use object::{SegmentFlags, elf};

use super::symbols::{FileId, Symbols};
use crate::launch::PORTAL;
use crate::processes::Pid;

/// Bytes of unwind tables that are read of a file; larger ones are left out.
const TABLES: u64 = 64 << 20;

/// Bytes of the smallest page.
const PAGE: u64 = 4096;

/// A file with code.
pub(super) struct Module {
    pub(super) id: FileId,
    pub(super) name: String,
    pub(super) file: File,
    /// Where it says that parts of it are mapped to be executed: offset and size in the file, address.
    segments: Vec<(u64, u64, u64)>,
    eh_frame: Option<Section>,
    eh_frame_hdr: Option<Section>,
}

/// Address and bytes.
type Section = (Range<u64>, Arc<[u8]>);

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Module {
    pub(super) fn read(file: File, id: FileId, name: &str) -> Option<Module> {
        let cache = ReadCache::new(file.try_clone().ok()?);
        let object = object::File::parse(&cache).ok()?;
        let code = object.segments().filter(|segment| {
            matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0)
        });
        let segments = code.map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        let segments = segments.collect();
        let section = |name: &str| {
            let section = object.section_by_name(name)?;
            let (address, size) = (section.address(), section.size());
            let data = (size <= TABLES).then(|| section.data().ok()).flatten()?;
            Some((address..address.checked_add(size)?, Arc::from(data)))
        };
        let (eh_frame, eh_frame_hdr) = (section(".eh_frame"), section(".eh_frame_hdr"));
        Some(Module {
            id,
            name: name.to_owned(),
            file,
            segments,
            eh_frame,
            eh_frame_hdr,
        })
    }

    /// The address that the file gives to what is at this offset in it. A mapping begins at the page in which a segment
    /// does, and what is before it there may be another segment's.
    fn address(&self, offset: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let (start, _, address) = segments.find(|(start, size, _)| {
            let page = start & !(PAGE - 1);
            offset >= page && offset < start.saturating_add(*size)
        })?;
        Some(address.wrapping_add(offset.wrapping_sub(*start)))
    }
}

/// An executable mapping of a file.
#[derive(Debug)]
struct Mapping {
    range: Range<u64>,
    /// Where in the file it begins.
    offset: u64,
    module: Option<Arc<Module>>,
}

/// The executable mappings of a process, as they were when they were read.
pub(super) struct Code {
    mappings: Vec<Mapping>,
    unwinder: UnwinderX86_64<Arc<[u8]>>,
    cache: Mutex<CacheX86_64>,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("mappings", &self.mappings)
            .finish_non_exhaustive()
    }
}

impl Code {
    /// As `/proc/PID/maps` has it now; `None` if the process is gone.
    pub(super) fn of(pid: Pid, symbols: &mut Symbols) -> Option<Code> {
        let thread = living_thread(pid);
        let text = fs::read_to_string(format!("/proc/{thread}/maps")).ok()?;
        let mut code = Code {
            mappings: Vec::new(),
            unwinder: UnwinderX86_64::new(),
            cache: Mutex::new(CacheX86_64::new()),
        };
        for (range, offset, inode, name) in text.lines().filter_map(executable) {
            let inside = format!("/proc/{thread}/root{name}");
            let module = match name == PORTAL {
                true => symbols.library(name),
                false => is_opened(name)
                    .then(|| symbols.module(Path::new(&inside), inode, name))
                    .flatten(),
            };
            let mapping = Mapping {
                range,
                offset,
                module,
            };
            code.add_tables(&mapping);
            code.mappings.push(mapping);
        }
        Some(code)
    }

    fn add_tables(&mut self, mapping: &Mapping) {
        let Some(module) = &mapping.module else {
            return;
        };
        let (Some(first), Some(eh_frame)) = (module.address(mapping.offset), &module.eh_frame)
        else {
            return;
        };
        let header = module.eh_frame_hdr.as_ref();
        let info = ExplicitModuleSectionInfo {
            eh_frame_svma: Some(eh_frame.0.clone()),
            eh_frame: Some(eh_frame.1.clone()),
            eh_frame_hdr_svma: header.map(|(range, _)| range.clone()),
            eh_frame_hdr: header.map(|(_, bytes)| bytes.clone()),
            ..ExplicitModuleSectionInfo::default()
        };
        let base = mapping.range.start.wrapping_sub(first);
        self.unwinder.add_module(framehop::Module::new(
            module.name.clone(),
            mapping.range.clone(),
            base,
            info,
        ));
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let mut mappings = self.mappings.iter();
        mappings.find(|mapping| mapping.range.contains(&address))
    }

    /// Whether there is code at an address.
    pub(super) fn has(&self, address: u64) -> bool {
        self.mapping(address).is_some()
    }

    /// The file at an address, and the address as the file counts.
    pub(super) fn find(&self, address: u64) -> Option<(&Module, u64)> {
        let mapping = self.mapping(address)?;
        let module = mapping.module.as_deref()?;
        let offset = address - mapping.range.start + mapping.offset;
        Some((module, module.address(offset)?))
    }

    /// The instruction and the addresses that its callers return to, at most `most`. What is no code ends it.
    pub(super) fn unwind(&self, origin: &Origin, stack: &[u8], most: usize) -> Vec<u64> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = |address: u64| {
            let at = address.wrapping_sub(origin.stack);
            let at = usize::try_from(at).map_err(|_| ())?;
            let bytes = at.checked_add(8).and_then(|end| stack.get(at..end));
            let bytes: [u8; 8] = bytes.and_then(|b| b.try_into().ok()).ok_or(())?;
            Ok(u64::from_le_bytes(bytes))
        };
        let registers = UnwindRegsX86_64::new(origin.site, origin.stack, origin.frame);
        let mut frames = self
            .unwinder
            .iter_frames(origin.site, registers, &mut cache, &mut read);
        let mut addresses = Vec::new();
        while addresses.len() < most
            && let Ok(Some(frame)) = frames.next()
            && self.has(frame.address_for_lookup())
        {
            addresses.push(frame.address());
        }
        if addresses.is_empty() {
            addresses.push(origin.site);
        }
        addresses
    }
}

/// Whether a mapped file is opened. The session serves files below these directories itself, by threads that may wait for the one
/// that asks here: the preload library is one.
fn is_opened(name: &str) -> bool {
    let served = ["/dev/", "/sys/"];
    let is_served = served.iter().any(|directory| name.starts_with(directory));
    name.starts_with('/') && (!is_served || name.starts_with("/dev/shm/"))
}

/// A line of `/proc/PID/maps`, if the mapping is executable: addresses, offset in the file, inode, name.
fn executable(line: &str) -> Option<(Range<u64>, u64, u64, &str)> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let executable = words.next()?.as_bytes().get(2) == Some(&b'x');
    let offset = number(words.next()?)?;
    let inode = words.nth(1)?.parse().ok()?;
    let name = words.next().unwrap_or("").trim_start();
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    executable.then_some((number(start)?..number(end)?, offset, inode, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As lld lays files out: code begins within a page that the segment before it ends in.
    #[test]
    fn a_mapping_begins_before_its_segment_in_the_same_page() {
        let module = Module {
            id: (0, 0),
            name: String::new(),
            file: File::open("/dev/null").expect("it is there"),
            segments: vec![(0x2230, 0x1000, 0x3230), (0x3230, 0x10, 0x5230)],
            eh_frame: None,
            eh_frame_hdr: None,
        };
        let addresses =
            [0x1fff, 0x2000, 0x2230, 0x322f, 0x3230, 0x3240].map(|at| module.address(at));
        let expected = [
            None,
            Some(0x3000),
            Some(0x3230),
            Some(0x422f),
            Some(0x5230),
            None,
        ];
        assert_eq!(addresses, expected);
    }

    #[test]
    fn files_that_the_session_serves_are_not_opened() {
        for (name, opened) in [
            ("/usr/lib/x.so", true),
            ("/dev/shm/x", true),
            ("/dev/.dray-portal.so", false),
            ("/sys/bus/dsa/x", false),
            ("[vdso]", false),
            ("", false),
        ] {
            assert_eq!(is_opened(name), opened, "{name}");
        }
    }

    #[test]
    fn lines_of_maps_are_read() {
        let line = "7f10-7f20 r-xp 00001000 fe:00 12        /usr/lib/a b.so (deleted)";
        assert_eq!(
            executable(line),
            Some((0x7f10..0x7f20, 0x1000, 12, "/usr/lib/a b.so"))
        );
        assert_eq!(executable("7f10-7f20 rw-p 00001000 fe:00 12 /x"), None);
        let line = "7f10-7f20 r-xp 00000000 00:00 0 ";
        assert_eq!(executable(line), Some((0x7f10..0x7f20, 0, 0, "")));
        for line in ["", "7f10", "7f10-7f20", "x-y r-xp 0 0 0 "] {
            assert_eq!(executable(line), None);
        }
    }
}
