//! What the modelled core's software counterparts cost.

use dray_clock::Duration;

use crate::{Cache, Distance, LINE_BYTES, RecordedParameters};

/// A memory operation in software, as the C library and its like do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SoftwareOp {
    /// memcpy.
    Copy,
    /// memset.
    Fill,
    /// memset with non-temporal stores.
    NtFill,
    /// memcmp.
    Compare,
    /// Comparison with an 8-byte pattern.
    ComparePattern,
    /// CRC32C.
    Crc,
    /// memcpy, then CRC32C of what is now in the cache.
    CopyCrc,
    /// Copy to two destinations.
    Dualcast,
}

/// How a core finds its data, and with what it copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SoftwareAccess {
    /// Everything is in the core's own caches.
    pub hot: bool,
    /// The address could not be foreseen: no prefetcher has brought the first lines.
    pub random: bool,
    /// The kernel copies: without vector registers, by string instructions of any length.
    pub kernel: bool,
}

/// Most vectors of 64 bytes that memcpy copies without a loop: all their loads are in flight at once.
const UNROLLED_LINES: u64 = 8;

impl RecordedParameters {
    /// Core time of `op` on `bytes` with its operands at `places`, in order.
    pub fn software(
        &self,
        op: SoftwareOp,
        bytes: u64,
        places: &[(Distance, Cache)],
        access: SoftwareAccess,
    ) -> Duration {
        let copies = matches!(op, SoftwareOp::Copy | SoftwareOp::CopyCrc);
        let lines = bytes.div_ceil(LINE_BYTES);
        let by_string = copies && (access.kernel || bytes >= self.cpu_string_from());
        // A vector store reads its line for ownership first: three transfers instead of two.
        let copy_line = || match copies && !by_string && !access.hot {
            true => self.cpu_copy_line().0 * 3 / 2,
            false => self.cpu_copy_line().0,
        };
        let line = match op {
            SoftwareOp::Copy | SoftwareOp::CopyCrc => copy_line(),
            SoftwareOp::Fill => self.cpu_fill_line().0,
            SoftwareOp::NtFill => self.cpu_nt_fill_line().0,
            SoftwareOp::Compare => self.cpu_compare_line().0,
            SoftwareOp::ComparePattern => self.cpu_pattern_line().0,
            SoftwareOp::Crc => self.cpu_crc_line().0,
            SoftwareOp::Dualcast => self.cpu_dualcast_line().0,
        };
        let scale = |&(distance, cache): &(Distance, Cache)| match (access.hot, cache, distance) {
            (true, ..) => self.cpu_scale_l1(),
            (_, Cache::Llc, _) => self.cpu_scale_llc(),
            (_, _, Distance::Local) => 1000,
            (_, _, Distance::Remote) => self.cpu_scale_remote(),
            (_, _, Distance::Cxl) => self.cpu_scale_cxl(),
        };
        let scales: u64 = places.iter().map(scale).sum();
        let mean_scale = scales.checked_div(places.len() as u64).unwrap_or(1000);
        let streaming = lines * line;
        // Prefetchers begin anew with each copy that loops; the first lines come without them, and all
        // lines of a vector loop at addresses that cannot be foreseen.
        let prefetched = !access.hot && (by_string || !access.random);
        let loops = copies && lines > UNROLLED_LINES && prefetched;
        let start = match loops || access.kernel && copies {
            true => self.cpu_copy_start(),
            false => Duration::ZERO,
        };
        let (first, time) = match access.random && !access.hot {
            false => (Duration::ZERO, streaming),
            // Without a prefetcher each line of each operand is a miss; the core keeps so many
            // of them outstanding.
            true if copies && !by_string => {
                let misses = lines * places.len().max(1) as u64;
                let waiting = misses * self.cpu_line_latency().0 / self.cpu_fill_buffers().max(1);
                (Duration::ZERO, streaming.max(waiting))
            }
            true => (self.cpu_random_access(), streaming),
        };
        let transfer = Duration(time * mean_scale / 1000);
        // Reads run ahead of the computation, which takes equally long wherever the data is.
        let computing = |read: u64| Duration(lines * self.cpu_crc_compute().0.max(read));
        let transfer = match op {
            SoftwareOp::Crc => transfer.max(computing(0)),
            SoftwareOp::CopyCrc => {
                transfer + computing(self.cpu_crc_line().0 * self.cpu_scale_l1() / 1000)
            }
            _ => transfer,
        };
        match copies && lines <= UNROLLED_LINES && !access.kernel && !access.hot && !access.random {
            // Out of order: the next call begins while the lines of a copy without a loop come.
            true => self.cpu_call().max(transfer),
            false => self.cpu_call() + start + first + transfer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn cost_is_linear_in_lines_and_ordered_by_distance() {
        let p = builtin("spr-2s").unwrap().recorded_parameters();
        let at = |distance, bytes| {
            p.software(
                SoftwareOp::Copy,
                bytes,
                &[(distance, Cache::Memory); 2],
                SoftwareAccess::default(),
            )
        };
        assert_eq!(
            at(Distance::Local, 8192) - at(Distance::Local, 4096),
            p.cpu_copy_line() * 64
        );
        assert!(at(Distance::Local, 4096) < at(Distance::Remote, 4096));
        assert!(at(Distance::Remote, 4096) < at(Distance::Cxl, 4096));
    }

    #[test]
    fn a_crc_takes_what_it_computes_or_what_it_reads_and_a_copy_adds_to_it() {
        let platform = builtin("spr-2s").unwrap();
        let p = platform.recorded_parameters();
        let at = |op, place, hot| {
            let access = SoftwareAccess {
                hot,
                ..SoftwareAccess::default()
            };
            p.software(op, 4096, &[place; 2], access) - p.cpu_call()
        };
        let local = (Distance::Local, Cache::Memory);
        let computed = p.cpu_crc_compute() * 64;
        // Published: 719 to 747 ns in the core's caches.
        assert_eq!(at(SoftwareOp::Crc, local, true), computed);
        assert!((719..=747).contains(&(computed.0 / 1000)));
        assert_eq!(at(SoftwareOp::Crc, local, false), computed);
        let far = at(SoftwareOp::Crc, (Distance::Cxl, Cache::Memory), false);
        let read = p.cpu_crc_line().0 * p.cpu_scale_cxl() / 1000;
        assert_eq!(far, Duration(64 * read));
        assert!(far > computed);
        for hot in [false, true] {
            let copy = at(SoftwareOp::Copy, local, hot);
            assert_eq!(at(SoftwareOp::CopyCrc, local, hot), copy + computed);
        }
    }

    #[test]
    fn a_short_random_copy_waits_for_every_line_and_a_long_one_for_its_first() {
        let p = builtin("spr-2s").unwrap().recorded_parameters();
        let at = |bytes, random| {
            let access = SoftwareAccess {
                random,
                ..SoftwareAccess::default()
            };
            let places = [(Distance::Local, Cache::Memory); 2];
            p.software(SoftwareOp::Copy, bytes, &places, access)
        };
        let waits = at(1024, true) - at(512, true);
        let misses = 8 * 2 * p.cpu_line_latency().0 / p.cpu_fill_buffers();
        assert_eq!(waits, Duration(misses));
        assert_eq!(at(65536, true) - at(65536, false), p.cpu_random_access());
    }

    #[test]
    fn kernel_copies_use_string_instructions_at_every_size() {
        let p = builtin("spr-2s").unwrap().recorded_parameters();
        let at = |bytes, kernel| {
            let access = SoftwareAccess {
                kernel,
                ..SoftwareAccess::default()
            };
            let places = [(Distance::Local, Cache::Memory); 2];
            p.software(SoftwareOp::Copy, bytes, &places, access)
        };
        assert!(at(64, true) > at(64, false));
        assert!(at(2048, true) < at(2048, false));
        // From the threshold on both are string instructions.
        assert_eq!(at(65536, true), at(65536, false));
    }

    #[test]
    fn a_copy_that_loops_starts_cold() {
        let p = builtin("spr-2s").unwrap().recorded_parameters();
        let at = |bytes, hot| {
            let access = SoftwareAccess {
                hot,
                ..SoftwareAccess::default()
            };
            let places = [(Distance::Local, Cache::Memory); 2];
            p.software(SoftwareOp::Copy, bytes, &places, access)
        };
        let line = Duration(p.cpu_copy_line().0 * 3 / 2);
        assert_eq!(at(512, false), line * 8);
        assert_eq!(at(576, false), line * 9 + p.cpu_call() + p.cpu_copy_start());
        // In the core's own caches there is nothing to prefetch.
        let hot = Duration(64 * p.cpu_copy_line().0 * p.cpu_scale_l1() / 1000);
        assert_eq!(at(4096, true), hot + p.cpu_call());
    }
}
