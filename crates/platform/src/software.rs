//! What the modelled core's software counterparts cost.

use dray_clock::Duration;

use crate::{Cache, Distance, LINE_BYTES, Parameters};

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

impl Parameters {
    /// Core time of `op` on `bytes` with its operands at `places`, in order. `hot`: everything is
    /// in the core's own caches. `random`: the address could not be foreseen.
    pub fn software(
        &self,
        op: SoftwareOp,
        bytes: u64,
        places: &[(Distance, Cache)],
        hot: bool,
        random: bool,
    ) -> Duration {
        let line = match op {
            SoftwareOp::Copy => self.cpu_copy_line.0,
            SoftwareOp::Fill => self.cpu_fill_line.0,
            SoftwareOp::NtFill => self.cpu_nt_fill_line.0,
            SoftwareOp::Compare => self.cpu_compare_line.0,
            SoftwareOp::ComparePattern => self.cpu_pattern_line.0,
            SoftwareOp::Crc => self.cpu_crc_line.0,
            SoftwareOp::CopyCrc => {
                self.cpu_copy_line.0 + self.cpu_crc_line.0 * self.cpu_scale_l1 / 1000
            }
            SoftwareOp::Dualcast => self.cpu_dualcast_line.0,
        };
        let scale = |&(distance, cache): &(Distance, Cache)| match (hot, cache, distance) {
            (true, ..) => self.cpu_scale_l1,
            (_, Cache::Llc, _) => self.cpu_scale_llc,
            (_, _, Distance::Local) => 1000,
            (_, _, Distance::Remote) => self.cpu_scale_remote,
            (_, _, Distance::Cxl) => self.cpu_scale_cxl,
        };
        let scales: u64 = places.iter().map(scale).sum();
        let mean_scale = scales.checked_div(places.len() as u64).unwrap_or(1000);
        let lines = bytes.div_ceil(LINE_BYTES);
        let first = match random {
            true => self.cpu_random_access,
            false => Duration::ZERO,
        };
        self.cpu_call + first + Duration(lines * line * mean_scale / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn cost_is_linear_in_lines_and_ordered_by_distance() {
        let p = builtin("spr-2s").unwrap().parameters().clone();
        let at = |distance, bytes| {
            p.software(
                SoftwareOp::Copy,
                bytes,
                &[(distance, Cache::Memory); 2],
                false,
                false,
            )
        };
        assert_eq!(
            at(Distance::Local, 8192) - at(Distance::Local, 4096),
            p.cpu_copy_line * 64
        );
        assert!(at(Distance::Local, 4096) < at(Distance::Remote, 4096));
        assert!(at(Distance::Remote, 4096) < at(Distance::Cxl, 4096));
    }
}
