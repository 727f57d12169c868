//! Accessed or not, by frame: the kernel's idle page tracking, or DAMON on physical addresses.
//!
//! A few pages of each block are asked about, others in each round. Pages that several processes map count for each
//! access of any of them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use crate::sys::PAGE;
use crate::sys::damon::{Attributes, Damon, DamonError, Region, SAMPLES};

/// Time between two looks of DAMON, and its regions: memory is scattered, so there are as many as DAMON is advised to
/// have at most.
const SAMPLE: std::time::Duration = std::time::Duration::from_millis(5);
const REGIONS: (u64, u64) = (1000, 10_000);

/// What says whether frames are accessed.
#[derive(Debug)]
pub(super) enum Frames {
    /// `/sys/kernel/mm/page_idle/bitmap`.
    Idle(File),
    /// A monitor of all memory.
    Damon(PhysicalMonitor),
}

/// DAMON on physical addresses.
#[derive(Debug)]
pub(super) struct PhysicalMonitor {
    damon: Damon,
    regions: Vec<Region>,
    read: Instant,
}

impl Frames {
    /// Idle page tracking (CONFIG_IDLE_PAGE_TRACKING, root).
    pub(super) fn idle(bitmap: &Path) -> std::io::Result<Frames> {
        let file = File::options().read(true).write(true).open(bitmap)?;
        Ok(Frames::Idle(file))
    }

    /// Has DAMON monitor the memory in the text of `/proc/iomem`.
    pub(super) fn damon(mut damon: Damon, iomem: &str) -> Result<Frames, DamonError> {
        let attributes = Attributes {
            sample: SAMPLE,
            regions: REGIONS,
        };
        damon.monitor(&memory(iomem), attributes)?;
        Ok(Frames::Damon(PhysicalMonitor {
            damon,
            regions: Vec::new(),
            read: Instant::now(),
        }))
    }

    /// Begins a round; `false` if there is nothing new yet.
    pub(super) fn begin(&mut self) -> Result<bool, DamonError> {
        let Frames::Damon(monitor) = self else {
            return Ok(true);
        };
        if monitor.read.elapsed() < SAMPLE * SAMPLES {
            return Ok(false);
        }
        monitor.regions = monitor.damon.regions()?;
        monitor.read = Instant::now();
        Ok(true)
    }

    /// Of frames in order, those that can be asked about from now on.
    pub(super) fn arm(&self, frames: &[u64]) -> Vec<u64> {
        let Frames::Idle(bitmap) = self else {
            return frames.to_vec();
        };
        let mut armed = Vec::with_capacity(frames.len());
        for word in frames.chunk_by(|a, b| a / 64 == b / 64) {
            let bits = word
                .iter()
                .fold(0u64, |bits, frame| bits | 1 << (frame % 64));
            let at = word[0] / 64 * 8;
            // A part of a larger folio, and what is on no list of the kernel, does not become idle.
            if bitmap.write_all_at(&bits.to_ne_bytes(), at).is_ok() {
                let idle = idle_word(bitmap, at).unwrap_or(0);
                armed.extend(word.iter().filter(|frame| idle >> (**frame % 64) & 1 == 1));
            }
        }
        armed
    }

    /// Which of some frames in order have been accessed since they were armed.
    pub(super) fn accessed(&self, frames: &[u64]) -> Vec<bool> {
        let mut found = Vec::with_capacity(frames.len());
        match self {
            Frames::Idle(bitmap) => {
                for word in frames.chunk_by(|a, b| a / 64 == b / 64) {
                    // What cannot be read has not been seen.
                    let idle = idle_word(bitmap, word[0] / 64 * 8).unwrap_or(u64::MAX);
                    found.extend(word.iter().map(|frame| idle >> (frame % 64) & 1 == 0));
                }
            }
            Frames::Damon(monitor) => {
                let regions = &monitor.regions;
                found.extend(frames.iter().map(|frame| {
                    let at = frame * PAGE;
                    let index = regions.partition_point(|region| region.end <= at);
                    let region = regions.get(index).filter(|region| region.start <= at);
                    region.is_some_and(|region| region.accesses > 0)
                }));
            }
        }
        found
    }
}

fn idle_word(bitmap: &File, at: u64) -> Option<u64> {
    let mut word = [0u8; 8];
    bitmap.read_exact_at(&mut word, at).ok()?;
    Some(u64::from_ne_bytes(word))
}

/// Ranges of memory in the text of `/proc/iomem`.
fn memory(text: &str) -> Vec<(u64, u64)> {
    let lines = text.lines().filter_map(|line| line.split_once(" : "));
    let memory = lines.filter(|(range, name)| *name == "System RAM" && !range.starts_with(' '));
    let ranges = memory.filter_map(|(range, _)| {
        let (first, last) = range.split_once('-')?;
        let first = u64::from_str_radix(first, 16).ok()?;
        let last = u64::from_str_radix(last, 16).ok()?;
        (first < last).then_some((first.next_multiple_of(PAGE), (last + 1) / PAGE * PAGE))
    });
    ranges.filter(|(start, end)| start < end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_whose_bit_is_cleared_have_been_accessed() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("bitmap");
        std::fs::write(&path, [0u8; 64]).expect("a file");
        let frames = Frames::idle(&path).expect("it is there");
        // The last one is beyond the end of memory.
        let wanted = [3, 5, 130, 513];
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .expect("it is there");
        assert_eq!(frames.arm(&wanted[..3]), [3, 5, 130]);
        let file = File::options()
            .write(true)
            .open(&path)
            .expect("it is there");
        // The kernel has seen an access to frame 5.
        file.write_all_at(&(1u64 << 3).to_ne_bytes(), 0)
            .expect("a file");
        assert_eq!(frames.accessed(&wanted), [false, true, false, false]);
        assert!(Frames::idle(&root.path().join("none")).is_err());
    }

    #[test]
    fn system_ram_is_monitored() {
        let text = "\
00001000-0009fbff : System RAM
000a0000-000bffff : PCI Bus 0000:00
100000000-27fffffff : System RAM
  140000000-140ffffff : System RAM (kmem)
00000000-00000000 : System RAM
";
        assert_eq!(
            memory(text),
            [(0x1000, 0x9f000), (0x1_0000_0000, 0x2_8000_0000)]
        );
    }
}
