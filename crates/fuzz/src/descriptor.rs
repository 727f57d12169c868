//! Descriptors that almost make sense: those get past the first check.

use dray_ops::BlockSize;
use dray_spec::{Descriptor, Opcode};
use zerocopy::FromBytes;

use crate::draw::Draw;
use crate::image::{BYTES, PAGE};

/// A number at the edge of something, or an address near the image.
fn edge(draw: &mut Draw<'_>, base: u64) -> u64 {
    let near = draw.below(131).wrapping_sub(65);
    match draw.below(8) {
        0 => draw
            .pick(&[0_u64, 1 << 31, 1 << 32, 1 << 63])
            .wrapping_add(near),
        1 => base.wrapping_add(draw.below(5) * PAGE).wrapping_add(near),
        2 => draw.any(),
        3 => base.wrapping_add(draw.below(BYTES / 64) * 64),
        _ => base.wrapping_add(draw.below(BYTES)),
    }
}

fn size(draw: &mut Draw<'_>) -> u32 {
    match draw.below(6) {
        0 => draw.any(),
        1 => draw.below(2 * PAGE) as u32,
        2 => draw.below(PAGE / 8) as u32 * 8,
        3 => (draw.below(4) * PAGE + draw.below(5)) as u32,
        _ => draw.below(300) as u32,
    }
}

/// One descriptor; `base` is where memory is.
pub(crate) fn descriptor(draw: &mut Draw<'_>, base: u64) -> Descriptor {
    let mut bytes = [0; 64];
    if draw.once_in(8) {
        draw.fill(&mut bytes);
    } else {
        craft(draw, base, &mut bytes);
        // One byte that is anything.
        if draw.once_in(4) {
            bytes[draw.below(64) as usize] = draw.any();
        }
    }
    // 64 bytes of any content are a descriptor.
    Descriptor::read_from_bytes(&bytes).unwrap_or_else(|_| Descriptor::noop())
}

fn craft(draw: &mut Draw<'_>, base: u64, bytes: &mut [u8; 64]) {
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    let opcode = draw.below(0x28) as u8;
    let flags = match draw.below(4) {
        0 => draw.any::<u32>() & 0xff_ffff,
        1 => 0x1c,
        2 => 0x0e,
        _ => 0x0c,
    };
    put(4, &(flags | u32::from(opcode) << 24).to_le_bytes());
    put(8, &(edge(draw, base) & !31).to_le_bytes());
    put(16, &edge(draw, base).to_le_bytes());
    put(24, &edge(draw, base).to_le_bytes());
    let size = size(draw);
    put(32, &size.to_le_bytes());
    put(36, &(draw.below(12) as u16).to_le_bytes());
    match Opcode::try_from(opcode) {
        Ok(Opcode::Batch) => {
            put(16, &(edge(draw, base) & !63).to_le_bytes());
            put(32, &(draw.below(12) as u32).to_le_bytes());
        }
        Ok(Opcode::Compare | Opcode::ComparePattern) => put(40, &[draw.below(2) as u8]),
        Ok(Opcode::CreateDelta) => {
            put(32, &(size & !7).to_le_bytes());
            put(40, &edge(draw, base).to_le_bytes());
            put(48, &(80 + draw.below(PAGE) as u32).to_le_bytes());
            put(56, &[draw.below(8) as u8]);
        }
        Ok(Opcode::ApplyDelta) => {
            put(16, &(edge(draw, base) & !7).to_le_bytes());
            put(32, &(size & !7).to_le_bytes());
            put(40, &(draw.below(60) as u32 * 10).to_le_bytes());
        }
        Ok(Opcode::Dualcast) => {
            let low = draw.below(PAGE);
            put(24, &(edge(draw, base) & !0xfff | low).to_le_bytes());
            put(40, &(edge(draw, base) & !0xfff | low).to_le_bytes());
        }
        Ok(Opcode::CrcGenerate | Opcode::CopyCrc) => {
            put(40, &draw.any::<u32>().to_le_bytes());
            put(48, &(edge(draw, base) & !3).to_le_bytes());
        }
        Ok(
            Opcode::DifCheck
            | Opcode::DifInsert
            | Opcode::DifStrip
            | Opcode::DifUpdate
            | Opcode::DixGenerate,
        ) => {
            let flags = draw.below(16) as u8;
            let block = BlockSize::from_bits(flags);
            let (source, destination) = (draw.any::<u8>(), draw.any::<u8>() & 0xf8);
            let of_source = !matches!(opcode, 0x13 | 0x17);
            let step = match of_source {
                true => block.protected_bytes(),
                false => block.bytes(),
            };
            put(32, &(step as u32 * draw.below(20) as u32).to_le_bytes());
            put(40, &[if of_source { source } else { 0 }]);
            put(
                41,
                &[if opcode == 0x12 || opcode == 0x14 {
                    0
                } else {
                    destination
                }],
            );
            put(42, &[flags]);
            for at in [48, 56] {
                let tags: u64 = draw.pick(&[0, 0xffff_0000_0000, u64::MAX]);
                if draw.any() {
                    put(at, &tags.to_le_bytes());
                }
            }
        }
        Ok(_) if draw.any() => {
            put(40, &edge(draw, base).to_le_bytes());
            put(48, &draw.any::<u64>().to_le_bytes());
        }
        _ => {}
    }
}
