//! Descriptors that a device mostly takes, and some with one thing broken.
//!
//! Which flags and fields an operation has is what `dray-spec` says; here are only values for them.

use dray_ops::BlockSize;
use dray_spec::{
    Descriptor, Flags, Opcode, allowed_flags, invalid_flags, required_flags, reserved_bytes,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::draw::Draw;
use crate::image::{BYTES, PAGE};
use crate::scene::{Scene, WINDOW, window};

/// Bytes of input that one descriptor takes.
const INPUT: usize = 32;

/// One descriptor. A `member` of a batch may have a fence.
pub(crate) fn descriptor(draw: &mut Draw<'_>, scene: &Scene, member: bool) -> Descriptor {
    let mut draw = draw.block(INPUT);
    let kind = draw.below(16);
    let opcode = match kind {
        // The edge between lists and engines needs more of them.
        1 | 2 if !member => Opcode::Batch,
        _ => draw.pick(Opcode::ALL),
    };
    let mut d = legal(&mut draw, scene, opcode, member);
    match kind {
        0..=11 => {}
        15 if draw.any() => {
            let mut bytes = [0; 64];
            draw.fill(&mut bytes);
            d = from(bytes);
        }
        _ => d = broken(&mut draw, scene, opcode, d),
    }
    d
}

/// 64 bytes of any content are a descriptor.
fn from(bytes: [u8; 64]) -> Descriptor {
    Descriptor::read_from_bytes(&bytes).unwrap_or_default()
}

fn bytes_of(d: &Descriptor) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes.copy_from_slice(d.as_bytes());
    bytes
}

/// Flags that the operation may have, with those that it needs.
fn flags(draw: &mut Draw<'_>, opcode: Opcode, member: bool) -> Flags {
    const RECORD: Flags = Flags::COMPLETION_ADDRESS_VALID.union(Flags::REQUEST_COMPLETION_RECORD);
    let some = match draw.below(4) {
        0 => Flags::from_bits(draw.any()),
        1 => Flags::from_bits(1 << draw.below(24)),
        2 => Flags::REQUEST_COMPLETION_INTERRUPT,
        _ => Flags::EMPTY,
    };
    let fence = match member {
        true => Flags::EMPTY,
        false => Flags::FENCE,
    };
    let required = required_flags(opcode);
    let mut flags = some.intersection(allowed_flags(opcode).without(fence)) | required.all;
    if !draw.once_in(8) {
        flags |= RECORD;
    }
    if !required.met_by(flags) {
        let one: Vec<_> = (0..24)
            .map(|bit| Flags::from_bits(1 << bit))
            .filter(|flag| required.any.contains(*flag))
            .collect();
        flags |= draw.pick(&one);
    }
    loop {
        let invalid = invalid_flags(opcode, flags);
        if invalid.is_empty() {
            return flags;
        }
        flags = flags.without(invalid);
    }
}

/// `bytes` bytes in the image, at a multiple of `align`.
fn place(draw: &mut Draw<'_>, scene: &Scene, bytes: u64, align: u64) -> u64 {
    let room = BYTES.saturating_sub(bytes.max(1));
    scene
        .base
        .wrapping_add(draw.below(room / align + 1) * align)
}

fn size(draw: &mut Draw<'_>) -> u64 {
    match draw.below(8) {
        0 => 1 + draw.below(2 * PAGE),
        1 => (1 + draw.below(3)) * PAGE,
        _ => 1 + draw.below(300),
    }
}

/// A descriptor whose fields are as the operation wants them, on memory that may be there.
fn legal(draw: &mut Draw<'_>, scene: &Scene, opcode: Opcode, member: bool) -> Descriptor {
    let flags = flags(draw, opcode, member);
    let mut size = size(draw);
    let mut d = Descriptor::default();
    let mut put =
        |at: usize, value: &[u8]| d.operation[at - 40..][..value.len()].copy_from_slice(value);
    let (mut first, mut second) = (0, 0);
    match opcode {
        Opcode::Noop => size = 0,
        Opcode::Batch => {
            let count = draw.below(4);
            let list = match scene.lists.is_empty() {
                true => (place(draw, scene, 256, 64), 4),
                false => draw.pick(&scene.lists),
            };
            first = list.0;
            // All of it, or more or less.
            size = match count {
                0 => 1 + draw.below(12),
                _ => list.1,
            };
        }
        Opcode::CreateDelta => {
            size = size.next_multiple_of(8);
            first = place(draw, scene, size, 8);
            second = place(draw, scene, size, 8);
            let most = 80 + draw.below(400);
            put(40, &place(draw, scene, most, 1).to_le_bytes());
            put(48, &(most as u32).to_le_bytes());
            put(56, &[draw.below(8) as u8]);
        }
        Opcode::ApplyDelta => {
            size = size.next_multiple_of(8);
            let (record, entries) = scene.delta(draw);
            first = record;
            second = place(draw, scene, size, 8);
            put(40, &(entries * 10).to_le_bytes());
        }
        Opcode::Dualcast => {
            size = size.min(PAGE);
            first = place(draw, scene, size, 1);
            let low = draw.below(PAGE - size + 1);
            let (page, other) = (draw.below(4), 1 + draw.below(3));
            let at = |page: u64| scene.base.wrapping_add(page % 4 * PAGE + low);
            second = at(page);
            put(40, &at(page + other).to_le_bytes());
        }
        Opcode::CrcGenerate | Opcode::CopyCrc => {
            first = place(draw, scene, size, 1);
            second = place(draw, scene, size, 1);
            put(40, &draw.any::<u64>().to_le_bytes());
            if !flags.contains(Flags::CRC_64) {
                put(44, &[0; 4]);
            }
            put(48, &place(draw, scene, 8, 8).to_le_bytes());
        }
        Opcode::DifCheck
        | Opcode::DifInsert
        | Opcode::DifStrip
        | Opcode::DifUpdate
        | Opcode::DixGenerate => {
            let dif = match draw.below(4) {
                0 => draw.below(16) as u8,
                _ => 0,
            };
            let block = BlockSize::from_bits(dif);
            let plain = matches!(opcode, Opcode::DifInsert | Opcode::DixGenerate);
            let step = match plain {
                true => block.bytes(),
                false => block.protected_bytes(),
            };
            size = (1 + draw.below(3)) * step as u64;
            first = match plain || draw.once_in(4) {
                true => place(draw, scene, size, 1),
                false => scene.protected(),
            };
            second = place(draw, scene, size, 8);
            let any: u8 = draw.any();
            let source = draw.pick(&[0, 0, 0x60, 0x0f, any]);
            put(40, &[source, draw.any::<u8>() & 0xf8, dif]);
            for at in [48, 56] {
                let tags: u64 = draw.pick(&[0, 0, 0xffff_0000_0000, u64::MAX]);
                put(at, &tags.to_le_bytes());
            }
        }
        Opcode::TranslationFetch => {
            first = place(draw, scene, size, 1);
            put(
                48,
                &(PAGE as u32)
                    .wrapping_shl(draw.below(3) as u32)
                    .to_le_bytes(),
            );
        }
        Opcode::UpdateWindow => {
            let (enable, offset) = (draw.any::<bool>(), draw.any::<bool>());
            if enable {
                size = (1 + draw.below(2)) * PAGE;
                first = place(draw, scene, size, PAGE);
                second = size;
            }
            // Read and write, then the window and its mode.
            let permissions = draw.pick(&[3, 3, 1, 2, 0]);
            let mode = u8::from(enable) << 2 | u8::from(enable && offset) << 3;
            put(61, &[permissions | mode]);
            put(62, &(draw.below(4) as u16).to_le_bytes());
        }
        Opcode::InterDomainCopy
        | Opcode::InterDomainFill
        | Opcode::InterDomainCompare
        | Opcode::InterDomainComparePattern => {
            size = size.min(WINDOW);
            first = domain(draw, scene, size, 60, &mut put);
            second = domain(draw, scene, size, 62, &mut put);
            match opcode {
                Opcode::InterDomainFill => first = draw.any(),
                Opcode::InterDomainComparePattern => second = scene.pattern(draw),
                _ => {}
            }
            // Those have no second pattern, these no expected result.
            let value: u64 = match opcode {
                Opcode::InterDomainFill => draw.any(),
                _ => draw.below(2),
            };
            put(40, &value.to_le_bytes());
        }
        Opcode::Fill | Opcode::ComparePattern => {
            let at = place(draw, scene, size, 1);
            let pattern = scene.pattern(draw);
            (first, second) = match opcode {
                Opcode::Fill => (pattern, at),
                _ => (at, pattern),
            };
            put(
                40,
                &match opcode {
                    Opcode::Fill => draw.any::<u64>(),
                    _ => draw.below(2),
                }
                .to_le_bytes(),
            );
        }
        Opcode::Drain | Opcode::Memmove | Opcode::Compare | Opcode::CacheFlush => {
            first = place(draw, scene, size, 1);
            second = match draw.below(4) {
                0 => first.wrapping_add(draw.below(64)),
                _ => place(draw, scene, size, 1),
            };
            put(40, &[draw.below(2) as u8]);
        }
    }
    d.flags_opcode = flags.bits() | u32::from(opcode as u8) << 24;
    (d.address1, d.address2, d.size) = (first, second, size as u32);
    d.completion_addr = match draw.once_in(8) {
        true => place(draw, scene, 32, 32),
        false => scene.records + draw.below(PAGE / 32) * 32,
    };
    d.interrupt_handle = draw.below(12) as u16;
    if draw.once_in(8) {
        d.pasid_priv = draw.any::<u32>() & 0x8000_0003;
    }
    // What the operation leaves reserved with these flags is 0.
    let reserved = reserved_bytes(opcode, flags);
    let mut bytes = bytes_of(&d);
    for (n, byte) in bytes.iter_mut().enumerate() {
        if reserved >> n & 1 == 1 {
            *byte = 0;
        }
    }
    from(bytes)
}

/// A handle, written to byte `at`, and an address that is mostly in its window.
fn domain(
    draw: &mut Draw<'_>,
    scene: &Scene,
    size: u64,
    at: usize,
    put: &mut impl FnMut(usize, &[u8]),
) -> u64 {
    let handle = draw.below(8) as u16 % 5;
    put(at, &handle.to_le_bytes());
    match window(scene.base, handle) {
        Some(first) => first.wrapping_add(draw.below(WINDOW - size + 1)),
        None => place(draw, scene, size, 1),
    }
}

/// A number at the edge of something, or an address near the image.
fn edge(draw: &mut Draw<'_>, scene: &Scene) -> u64 {
    let near = draw.below(131).wrapping_sub(65);
    match draw.below(4) {
        0 => draw
            .pick(&[0_u64, 1 << 31, 1 << 32, 1 << 63])
            .wrapping_add(near),
        1 => draw.any(),
        _ => scene
            .base
            .wrapping_add(draw.below(5) * PAGE)
            .wrapping_add(near),
    }
}

/// The same with one thing changed that it should not be.
fn broken(draw: &mut Draw<'_>, scene: &Scene, opcode: Opcode, mut d: Descriptor) -> Descriptor {
    match draw.below(11) {
        0 => d.flags_opcode ^= 1 << draw.below(24),
        1 => d.flags_opcode = d.flags_opcode & 0xff_ffff | draw.any::<u32>() & 0xff00_0000,
        2 => d.completion_addr = edge(draw, scene),
        3 => d.address1 = edge(draw, scene),
        4 => d.address2 = edge(draw, scene),
        5 => d.address2 = d.address1.wrapping_add(draw.below(9)),
        6 => d.pasid_priv = draw.any(),
        7 => {
            let sizes = [0, 1, u32::MAX, 1 << 31, d.size.wrapping_add(1), d.size << 4];
            d.size = draw.pick(&sizes);
        }
        // A byte that is reserved.
        8 => {
            let reserved = reserved_bytes(opcode, d.flags());
            let bytes: Vec<usize> = (0..64).filter(|n| reserved >> n & 1 == 1).collect();
            let mut all = bytes_of(&d);
            all[draw.pick(&bytes)] = draw.any::<u8>() | 1;
            d = from(all);
        }
        // A byte of the operation's own.
        9 => d.operation[draw.below(24) as usize] = draw.any(),
        _ => {
            let at = draw.pick(&[0, 8, 16]);
            let value = match draw.any() {
                true => edge(draw, scene),
                false => draw.below(100),
            };
            d.operation[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
    }
    d
}
