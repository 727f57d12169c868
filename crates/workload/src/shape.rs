//! One operation without its addresses: how long its operands are, what they hold before it and
//! after it.

use dray::Operation;
use dray_ops::{
    BlockSize, DELTA_ENTRY_BYTES, DELTA_MAX_BYTES, DIF_BYTES, DestinationDifFlags, DifFlags,
    SourceDifFlags, Tags, UpdateTags,
};
use dray_spec::DifTags;

use crate::{Buffers, Op, PATTERN};

/// Bytes of a word of a delta record.
const WORD: u32 = 8;
const ENTRY: u32 = DELTA_ENTRY_BYTES as u32;
/// Least room for a delta record (spec 8.3.8).
const LEAST_RECORD: u32 = 80;

/// Tags of the fields in sources.
const SOURCE: Tags = Tags {
    reference: 0x0d2a_7001,
    app_mask: 0,
    app: 0x5aa5,
};
/// Tags of the fields that are made.
const MADE: Tags = Tags {
    reference: 0x3000_0000,
    app_mask: 0,
    app: 0x0ff0,
};

/// What an operation does, on how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Operation.
    pub op: Op,
    /// Bytes of data, without integrity fields.
    pub size: u32,
    /// Data that one integrity field protects.
    pub block: BlockSize,
    /// Words that differ, in percent.
    pub delta_percent: u8,
}

impl Shape {
    /// With blocks of 512 bytes, and no word alike.
    pub fn new(op: Op, size: u32) -> Shape {
        Shape {
            op,
            size,
            block: BlockSize::Bytes512,
            delta_percent: 100,
        }
    }

    /// Why the operation cannot be had on so much, and the nearest size that it takes.
    pub fn refusal(&self) -> Option<(String, u32)> {
        let most = DELTA_MAX_BYTES as u32;
        let step = match self.op {
            Op::CreateDelta | Op::ApplyDelta => WORD,
            op if op.has_fields() => self.block.bytes() as u32,
            _ => return None,
        };
        let size = self.size;
        if step == WORD && size > most {
            return Some((
                format!("a delta record describes at most {most} bytes"),
                most,
            ));
        }
        (!size.is_multiple_of(step) || size == 0).then(|| {
            let reason = match step {
                WORD => "delta records are of words of 8 bytes".to_owned(),
                _ => format!("{size} bytes are no whole number of blocks of {step}"),
            };
            (reason, (size / step * step).max(step))
        })
    }

    fn blocks(&self) -> u32 {
        self.size / self.block.bytes() as u32
    }

    /// Bytes of data with their fields.
    fn protected(&self) -> u32 {
        self.size + self.blocks() * DIF_BYTES as u32
    }

    /// Words that differ. A record that is applied has one at least.
    fn words(&self) -> u32 {
        let least = u32::from(self.op == Op::ApplyDelta);
        (self.size / WORD * u32::from(self.delta_percent) / 100).max(least)
    }

    /// Bytes that the descriptor names.
    pub fn transfer(&self) -> u32 {
        match self.op {
            Op::DifCheck | Op::DifStrip | Op::DifUpdate => self.protected(),
            _ => self.size,
        }
    }

    /// Bytes that a rate counts: the data, and of a delta record that is applied its words.
    pub fn counted(&self) -> u32 {
        match self.op {
            Op::Nop => 0,
            Op::ApplyDelta => self.words() * WORD,
            _ => self.size,
        }
    }

    /// Bytes of an operand: sources first, then destinations.
    pub fn operand(&self, operand: usize) -> u32 {
        match (self.op, operand) {
            (Op::DifCheck | Op::DifStrip | Op::DifUpdate, 0) => self.protected(),
            (Op::DifInsert | Op::DifUpdate, 1) => self.protected(),
            (Op::DixGenerate, 1) => self.blocks() * DIF_BYTES as u32,
            (Op::CreateDelta, 2) => (self.words() * ENTRY).max(LEAST_RECORD),
            (Op::ApplyDelta, 0) => self.words() * ENTRY,
            _ => self.size,
        }
    }

    /// Where the buffers of an operand may begin: at distances of a multiple of this.
    pub fn alignment(&self) -> u64 {
        match self.op {
            // Both destinations must be alike in address bits 11:0 (spec 8.3.10).
            Op::Dualcast => 4096,
            _ => 64,
        }
    }

    /// The operation number `index` of a thread.
    pub fn operation(&self, buffers: &Buffers, index: u64, cache_control: bool) -> Operation {
        let (src, dst) = (buffers.src.at(index), buffers.dst.at(index));
        let dst2 = buffers.dst2.at(index);
        let (size, flags) = (self.size, self.flags());
        let source = (SourceDifFlags::new(), spec(SOURCE));
        let made = (DestinationDifFlags::new(), spec(MADE));
        let operation = match self.op {
            Op::Move | Op::Copy => Operation::memmove(src, dst, size),
            Op::Fill | Op::NtFill => Operation::fill(PATTERN, dst, size),
            Op::Compare => Operation::compare(src, dst, size),
            Op::ComparePattern => Operation::compare_pattern(src, PATTERN, size),
            Op::CreateDelta => Operation::create_delta(src, dst, size, dst2, self.operand(2)),
            Op::ApplyDelta => Operation::apply_delta(src, dst, size, self.operand(0)),
            Op::Dualcast => Operation::dualcast(src, dst, dst2, size),
            Op::Crc => Operation::crc(src, size, 0),
            Op::CopyCrc => Operation::copy_crc(src, dst, size, 0),
            Op::DifCheck => Operation::dif_check(src, self.transfer(), flags, source),
            Op::DifInsert => Operation::dif_insert(src, dst, size, flags, made),
            Op::DifStrip => Operation::dif_strip(src, dst, self.transfer(), flags, source),
            Op::DifUpdate => Operation::dif_update(src, dst, self.transfer(), flags, source, made),
            Op::DixGenerate => Operation::dix_generate(src, dst, size, flags, made),
            Op::CacheFlush => Operation::cache_flush(dst, size),
            Op::Nop => Operation::noop(),
        };
        match cache_control && self.op.takes_cache_control() {
            true => operation.with_cache_control(),
            false => operation,
        }
    }

    fn flags(&self) -> DifFlags {
        DifFlags::new().with_block_size(self.block)
    }

    /// What a buffer of an operand holds before the operation; `None`: it does not matter.
    pub fn before(&self, operand: usize) -> Option<Vec<u8>> {
        match (self.op, operand) {
            (Op::DifCheck | Op::DifStrip | Op::DifUpdate, 0) => Some(self.with_fields(SOURCE)),
            (Op::CreateDelta, 1) => Some(self.changed()),
            (Op::ApplyDelta, 0) => Some(self.record()),
            (Op::Compare | Op::ApplyDelta, 1) | (_, 0) => Some(pattern(self.size)),
            _ => None,
        }
    }

    /// What a buffer of an operand begins with after the operation; `None`: with nothing new.
    pub fn after(&self, operand: usize) -> Option<Vec<u8>> {
        match (self.op, operand) {
            (
                Op::Move
                | Op::Copy
                | Op::Fill
                | Op::NtFill
                | Op::CopyCrc
                | Op::Dualcast
                | Op::DifStrip,
                1,
            )
            | (Op::Dualcast, 2) => Some(pattern(self.size)),
            (Op::CreateDelta, 2) => Some(self.record()),
            (Op::ApplyDelta, 1) => Some(self.changed()),
            (Op::DifInsert, 1) => Some(self.with_fields(MADE)),
            (Op::DifUpdate, 1) => Some(self.updated()),
            (Op::DixGenerate, 1) => Some(self.fields()),
            _ => None,
        }
    }

    /// The pattern, and at equal distances words that are not the pattern.
    fn changed(&self) -> Vec<u8> {
        let mut bytes = pattern(self.size);
        let words = (self.size / WORD) as usize;
        let differing = self.words() as usize;
        for number in 0..differing {
            let at = number * words / differing * WORD as usize;
            bytes[at..at + WORD as usize].copy_from_slice(&(!PATTERN).to_le_bytes());
        }
        bytes
    }

    /// The delta record from the pattern to what has changed.
    fn record(&self) -> Vec<u8> {
        let mut record = vec![0; (self.words() * ENTRY) as usize];
        let made = dray_ops::create_delta(&pattern(self.size), &self.changed(), &mut record);
        debug_assert!(made.is_ok(), "the size was refused before");
        record
    }

    fn with_fields(&self, tags: Tags) -> Vec<u8> {
        let mut bytes = vec![0; self.protected() as usize];
        let how = DestinationDifFlags::new();
        let data = pattern(self.size);
        let made = dray_ops::dif_insert(&data, &mut bytes, self.flags(), how, tags);
        debug_assert!(made.is_ok(), "the size was refused before");
        bytes
    }

    fn updated(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.protected() as usize];
        let how = (SourceDifFlags::new(), DestinationDifFlags::new());
        let tags = UpdateTags {
            source: SOURCE,
            destination: MADE,
        };
        let source = self.with_fields(SOURCE);
        let made = dray_ops::dif_update(&source, &mut bytes, self.flags(), how.0, how.1, tags);
        debug_assert!(made.is_ok(), "the fields are those that are checked for");
        bytes
    }

    fn fields(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.operand(1) as usize];
        let how = DestinationDifFlags::new();
        let data = pattern(self.size);
        let made = dray_ops::dix_generate(&data, &mut bytes, self.flags(), how, MADE);
        debug_assert!(made.is_ok(), "the size was refused before");
        bytes
    }
}

/// So many bytes of the pattern.
pub fn pattern(len: u32) -> Vec<u8> {
    let mut bytes = PATTERN.to_le_bytes().repeat(len.div_ceil(8) as usize);
    bytes.truncate(len as usize);
    bytes
}

fn spec(tags: Tags) -> DifTags {
    DifTags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: [Op; 18] = [
        Op::Move,
        Op::Copy,
        Op::Fill,
        Op::NtFill,
        Op::Compare,
        Op::ComparePattern,
        Op::CreateDelta,
        Op::ApplyDelta,
        Op::Dualcast,
        Op::Crc,
        Op::CopyCrc,
        Op::DifCheck,
        Op::DifInsert,
        Op::DifStrip,
        Op::DifUpdate,
        Op::DixGenerate,
        Op::CacheFlush,
        Op::Nop,
    ];

    #[test]
    fn operands_have_the_length_of_their_contents() {
        for op in OPS {
            for (size, block, delta_percent) in [
                (4160, BlockSize::Bytes520, 0),
                (8192, BlockSize::Bytes4096, 1),
                (512, BlockSize::Bytes512, 100),
            ] {
                let shape = Shape {
                    op,
                    size,
                    block,
                    delta_percent,
                };
                assert_eq!(shape.refusal(), None, "{op:?}");
                for operand in 0..3 {
                    let len = shape.operand(operand) as usize;
                    let full = |bytes: &Vec<u8>| bytes.len() == len;
                    assert!(shape.before(operand).is_none_or(|b| full(&b)), "{op:?}");
                    let fits =
                        |bytes: Vec<u8>| full(&bytes) || op == Op::CreateDelta && bytes.len() < len;
                    assert!(shape.after(operand).is_none_or(fits), "{op:?} {operand}");
                }
            }
        }
    }

    #[test]
    fn delta_records_have_the_given_share_of_words() {
        let shape = |op, delta_percent| Shape {
            delta_percent,
            ..Shape::new(op, 4096)
        };
        for (percent, entries) in [(100, 512), (50, 256), (1, 5)] {
            let created = shape(Op::CreateDelta, percent).record();
            assert_eq!(created.len(), entries * DELTA_ENTRY_BYTES);
            let mut bytes = pattern(4096);
            dray_ops::apply_delta(&created, &mut bytes).unwrap();
            assert_eq!(bytes, shape(Op::CreateDelta, percent).changed());
        }
        assert_eq!(shape(Op::CreateDelta, 0).record().len(), 0);
        assert_eq!(shape(Op::ApplyDelta, 0).operand(0), ENTRY);
        assert_eq!(shape(Op::ApplyDelta, 25).counted(), 1024);
    }

    #[test]
    fn refused_sizes_have_the_nearest_valid_one() {
        let nearest = |op, size| Shape::new(op, size).refusal().map(|(_, size)| size);
        assert_eq!(nearest(Op::CreateDelta, 1 << 20), Some(512 << 10));
        assert_eq!(nearest(Op::ApplyDelta, 4095), Some(4088));
        assert_eq!(nearest(Op::DifInsert, 1000), Some(512));
        assert_eq!(nearest(Op::DifCheck, 100), Some(512));
        assert_eq!(nearest(Op::DixGenerate, 1 << 20), None);
        assert_eq!(nearest(Op::CopyCrc, 3), None);
    }
}
