//! CRC generation and copy with CRC (spec 8.3.12, 8.3.13).

use dray_ops::CrcOptions;
use dray_spec::{CompletionRecord, Flags};

use super::{CHUNK, Run, success};
use crate::extent::{Buffer, Extent, source2};
use crate::{DescriptorResult, Memory};

/// A CRC in progress, of one of the two sizes.
#[derive(Debug, Clone, Copy)]
enum Crc {
    Bits32(u32),
    Bits64(u64),
}

impl Crc {
    /// The seed in these bytes; only the first four count for 32 bits.
    #[inline]
    fn seeded(wide: bool, seed: u64) -> Crc {
        match wide {
            false => Crc::Bits32(seed as u32),
            true => Crc::Bits64(seed),
        }
    }

    #[inline]
    fn update(&mut self, data: &[u8], options: CrcOptions) {
        match self {
            Crc::Bits32(crc) => *crc = dray_ops::crc32c(*crc, data, options),
            Crc::Bits64(crc) => *crc = dray_ops::crc64(*crc, data, options),
        }
    }

    /// The same while `data` is copied to a place of its length.
    #[inline]
    fn copy(&mut self, data: &[u8], into: &mut [u8], options: CrcOptions) {
        let copied = match self {
            Crc::Bits32(crc) => dray_ops::copy_crc(*crc, data, into, options).map(|new| *crc = new),
            Crc::Bits64(crc) => {
                dray_ops::copy_crc64(*crc, data, into, options).map(|new| *crc = new)
            }
        };
        copied.expect("both are as long");
    }

    #[inline]
    fn store(self, record: &mut CompletionRecord) {
        match self {
            Crc::Bits32(crc) => record.set_crc32(crc),
            Crc::Bits64(crc) => record.set_crc64(crc),
        }
    }
}

impl<M: Memory> Run<'_, M> {
    #[inline]
    pub(super) fn crc(&mut self, buffers: &[Buffer], copy_to: Option<u64>) -> DescriptorResult {
        let flags = self.d.flags();
        let wide = flags.contains(Flags::CRC_64);
        let mut seed = self.d.crc64_seed();
        if flags.contains(Flags::CRC_READ_SEED) {
            let mut bytes = [0; 8];
            let size = if wide { 8 } else { 4 };
            let at = self.d.crc_seed_address();
            let extent = Extent::of(self.memory, &[source2(at)], size as u64);
            if extent.is_faulted() {
                return self.end(&extent.nothing(), success());
            }
            self.memory.read(at, &mut bytes[..size]);
            seed = u64::from_le_bytes(bytes);
        }
        let mut crc = Crc::seeded(wide, seed);
        let extent = self.extent(buffers);
        let mut record = success();
        if self.moved {
            let options = CrcOptions {
                bypass_inversion_reflection: flags.contains(Flags::CRC_BYPASS_INVERSION),
                bypass_data_reflection: flags.contains(Flags::CRC_BYPASS_DATA_REFLECTION),
            };
            self.run_crc(&mut crc, options, extent.bytes, copy_to);
            crc.store(&mut record);
        }
        self.end(&extent, record)
    }

    #[inline]
    fn run_crc(&mut self, crc: &mut Crc, options: CrcOptions, bytes: u64, copy_to: Option<u64>) {
        let src = self.d.address1;
        match copy_to {
            None => match self.memory.in_place(src, bytes) {
                Some(data) => crc.update(data, options),
                None => self.crc_by_chunks(crc, options, bytes, None),
            },
            Some(dst) => match self.memory.in_place_into([(src, bytes)], (dst, bytes)) {
                Some(([data], into)) => crc.copy(data, into, options),
                None => self.crc_by_chunks(crc, options, bytes, copy_to),
            },
        }
    }

    #[inline(never)]
    fn crc_by_chunks(
        &mut self,
        crc: &mut Crc,
        options: CrcOptions,
        bytes: u64,
        copy_to: Option<u64>,
    ) {
        let src = self.d.address1;
        let mut buffer = [0; CHUNK];
        self.each_chunk(bytes, |memory, offset, n| {
            let buffer = &mut buffer[..n];
            memory.read(src + offset, buffer);
            crc.update(buffer, options);
            if let Some(dst) = copy_to {
                memory.write(dst + offset, buffer);
            }
        });
    }
}
