//! What a link carries: lanes, encoding, data link packets, headers.

/// Bytes in a GiB.
pub(crate) const GIB: f64 = (1u64 << 30) as f64;

/// Bytes of each ACK or UpdateFC packet with its framing.
const DLLP_BYTES: f64 = 8.0;
/// A SKIP ordered set of 4 symbols every 1538.
const SKIP_SHARE: f64 = 4.0 / 1538.0;

/// Bandwidth and overheads of a link of one generation, width and MPS.
///
/// One ACK and one UpdateFC leave per interval that the PCIe base specification recommends, counted in symbol times, in
/// each of which every lane carries a symbol. pcie-bench's pcie-model (Neugebauer et al., SIGCOMM 2018) takes the
/// interval for bytes, and loses 8 to 10 % on wide links; two GPUs on Gen5 x16 ports of one socket have been measured at
/// 57.2 GB/s, of 57.6 without any such packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkRate {
    /// Bytes per second for TLPs with their framing.
    pub tlp_bytes_per_s: f64,
    /// Framing, sequence number and CRC of one TLP, bytes.
    pub framing_bytes: u32,
}

impl LinkRate {
    /// The rate of a link of `generation` 1 to 7 and `width` lanes with payloads up to `mps`.
    pub fn of(generation: u32, width: u32, mps: u32) -> Self {
        let giga_transfers = giga_transfers(generation);
        let lanes = f64::from(width);
        if generation >= 6 {
            // A flit of 256 bytes carries 236 bytes of TLPs; ACKs and credits have their own 6.
            let bytes = giga_transfers * 1e9 / 8.0 * lanes * 236.0 / 256.0;
            return Self {
                tlp_bytes_per_s: bytes,
                framing_bytes: 0,
            };
        }
        let raw = Self::raw_gb_s(generation, width) * 1e9;
        let interval = f64::from(dllp_interval(generation, width, mps));
        let dllps = 2.0 * DLLP_BYTES / (interval * lanes);
        Self {
            tlp_bytes_per_s: raw * (1.0 - dllps - SKIP_SHARE),
            framing_bytes: 8,
        }
    }

    /// Bits of the lanes without their encoding, GB/s: what tools print as the speed of a link. Of a flit 242 of 256 bytes count.
    pub(crate) fn raw_gb_s(generation: u32, width: u32) -> f64 {
        let encoding = match generation {
            ..=2 => 0.8,
            3..=5 => 128.0 / 130.0,
            _ => 242.0 / 256.0,
        };
        giga_transfers(generation) / 8.0 * encoding * f64::from(width)
    }

    /// The rate that pcie-model gives such a link of generation 3 to 5.
    pub fn of_pcie_model(generation: u32, width: u32, mps: u32) -> Self {
        let rate = Self::of(generation, width, mps);
        let interval = f64::from(dllp_interval(generation, width, mps));
        let share = |bytes: f64| 1.0 - 2.0 * DLLP_BYTES / bytes - SKIP_SHARE;
        Self {
            tlp_bytes_per_s: rate.tlp_bytes_per_s * share(interval)
                / share(interval * f64::from(width)),
            ..rate
        }
    }

    /// Payload rate of posted writes of `mps` bytes each, GiB/s.
    pub fn payload_gib_s(&self, mps: u32) -> f64 {
        let mps = f64::from(mps);
        let whole = mps + f64::from(self.framing_bytes + WRITE_HEADER);
        self.tlp_bytes_per_s * mps / whole / GIB
    }
}

/// Transfers of a lane, 1e9 a second.
fn giga_transfers(generation: u32) -> f64 {
    let doubled = 2.5 * f64::from(1u32 << (generation.clamp(1, 7) - 1));
    // Generation 3 is 8 GT/s, not 10.
    match generation {
        3.. => doubled * 0.8,
        _ => doubled,
    }
}

/// Header of a memory write or read with a 64-bit address, bytes.
pub const WRITE_HEADER: u32 = 16;
/// Header of a completion, bytes.
pub const COMPLETION_HEADER: u32 = 12;

/// Recommended interval of ACK and UpdateFC packets, in symbols (base specification 5.0, tables
/// 2-46 to 2-48 and 3-7 to 3-9): `(MPS + 28) * F / width + delay`.
fn dllp_interval(generation: u32, width: u32, mps: u32) -> u32 {
    let delay = match generation {
        1 => 19,
        2 => 70,
        _ => 115,
    };
    let tenths = match (width, mps) {
        (..=4, ..=256) => 14,
        (..=4, _) => 10,
        (..=8, ..=256) => 25,
        (..=8, _) => 10,
        (_, ..=256) => 30,
        (_, _) => 20,
    };
    (mps + 28) * tenths / 10 / width.max(1) + delay
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dllp_intervals_are_those_of_the_tables() {
        // (width, MPS, symbols), generation 3.
        for (width, mps, symbols) in [
            (16, 128, 144),
            (16, 256, 168),
            (16, 512, 182),
            (16, 1024, 246),
            (8, 256, 203),
            (8, 512, 182),
            (4, 256, 214),
            (4, 512, 250),
            (1, 256, 512),
        ] {
            assert_eq!(dllp_interval(3, width, mps), symbols, "x{width} MPS {mps}");
        }
        assert_eq!(dllp_interval(1, 16, 128), 48);
        assert_eq!(dllp_interval(2, 16, 256), 123);
    }

    #[test]
    fn tlp_rates_are_those_of_the_published_model() {
        let gbytes = |generation, width, mps| {
            LinkRate::of_pcie_model(generation, width, mps).tlp_bytes_per_s / 1e9
        };
        for (value, expected) in [
            (gbytes(3, 8, 256), 57.9 / 8.0),
            (gbytes(3, 16, 256), 14.21),
            (gbytes(3, 16, 512), 14.33),
            (gbytes(3, 16, 1024), 14.69),
        ] {
            assert!((value / expected - 1.0).abs() < 0.002, "{value} {expected}");
        }
    }

    #[test]
    fn payload_rates_are_within_a_percent_of_what_direct_links_have_been_measured_at() {
        let gbytes = |generation, width, mps| {
            LinkRate::of(generation, width, mps).payload_gib_s(mps) * GIB / 1e9
        };
        // Writes between GPUs on ports of one EPYC 9124, p2pBandwidthLatencyTest: 57.2 GB/s.
        let value = gbytes(5, 16, 256);
        assert!((value / 57.2 - 1.0).abs() < 0.01, "{value}");
        // Completions of 512 bytes on four lanes: drives of generation 4 and 5 are sold with reads of 7.45 and 14.9.
        let read = |generation| {
            let rate = LinkRate::of(generation, 4, 512);
            let whole = 512.0 + f64::from(rate.framing_bytes + COMPLETION_HEADER);
            rate.tlp_bytes_per_s * 512.0 / whole / 1e9
        };
        for (value, sold) in [(read(4), 7.45), (read(5), 14.9)] {
            assert!((value / sold - 1.0).abs() < 0.01, "{value} {sold}");
        }
        // A flit has its own place for ACKs and credits.
        let sixth = LinkRate::of(6, 16, 256).tlp_bytes_per_s / 1e9;
        assert!((sixth / 118.0 - 1.0).abs() < 0.002, "{sixth}");
        // 128 GT/s, with the same flits.
        assert_eq!(LinkRate::of(7, 16, 256).tlp_bytes_per_s / 1e9, 2.0 * sixth);
    }
}
