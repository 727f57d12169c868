//! Data integrity fields, with every block size, and with each flaw that a check finds.

use dray_ops::{
    BlockSize, DIF_BYTES, DestinationDifFlags, DifFlags, SourceDifFlags, Tags, UpdateTags, oracle,
};
use dray_ops::{DifError, DifStatus};
use dray_spec::{CompletionRecord, Descriptor, DifTags, Opcode, Status};

use super::{Form, Operand, area, put, read, success, written};
use crate::movers::trial::at;

/// The block with a flaw, where there is one.
const FLAW: usize = 5;
const SOURCE: Tags = Tags {
    reference: 7,
    app_mask: 0,
    app: 0x5a,
};
const MADE: Tags = Tags {
    reference: 0x1234_5678,
    app_mask: 0xff00,
    app: 0xa5a5,
};

/// An operation on blocks of a size.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    opcode: Opcode,
    size: BlockSize,
}

pub(super) fn forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for opcode in [
        Opcode::DifCheck,
        Opcode::DifInsert,
        Opcode::DifStrip,
        Opcode::DifUpdate,
        Opcode::DixGenerate,
    ] {
        for size in BlockSize::ALL {
            forms.push(Blocks { opcode, size }.form());
        }
        let blocks = Blocks {
            opcode,
            size: BlockSize::Bytes512,
        };
        if blocks.checks() {
            // A byte of the field: guard, application tag, reference tag.
            forms.push(blocks.flawed("a wrong guard", 1));
            forms.push(blocks.flawed("a wrong application tag", 3));
            forms.push(blocks.flawed("a wrong reference tag", 7));
        }
    }
    forms
}

impl Blocks {
    /// Two pages, whatever the size of a block.
    fn count(self) -> usize {
        8192 / self.size.bytes().next_multiple_of(512).min(4096)
    }

    fn flags(self) -> DifFlags {
        DifFlags::new().with_block_size(self.size)
    }

    /// It reads blocks with fields.
    fn checks(self) -> bool {
        !matches!(self.opcode, Opcode::DifInsert | Opcode::DixGenerate)
    }

    fn source_bytes(self) -> usize {
        let block = match self.checks() {
            true => self.size.protected_bytes(),
            false => self.size.bytes(),
        };
        self.count() * block
    }

    fn destination_bytes(self) -> usize {
        let block = match self.opcode {
            Opcode::DifCheck => 0,
            Opcode::DifStrip => self.size.bytes(),
            Opcode::DixGenerate => DIF_BYTES,
            _ => self.size.protected_bytes(),
        };
        self.count() * block
    }

    fn descriptor(self, [from, to, ..]: [u64; 4]) -> Descriptor {
        let (len, flags) = (self.source_bytes() as u32, self.flags().into_bits());
        let (source, made) = (bits(SOURCE), bits(MADE));
        match self.opcode {
            Opcode::DifCheck => Descriptor::dif_check(from, len, flags, 0, source),
            Opcode::DifInsert => Descriptor::dif_insert(from, to, len, flags, 0, made),
            Opcode::DifStrip => Descriptor::dif_strip(from, to, len, flags, 0, source),
            Opcode::DifUpdate => {
                Descriptor::dif_update(from, to, len, flags, (0, source), (0, made))
            }
            _ => Descriptor::dix_generate(from, to, len, flags, 0, made),
        }
    }

    /// Fields that fit the data.
    fn prepare(self, bytes: &mut [u8]) {
        if self.checks() {
            let data = area(bytes, 3, self.count() * self.size.bytes()).to_vec();
            let mut blocks = vec![0; self.source_bytes()];
            let how = DestinationDifFlags::new();
            let made = oracle::dif_insert(&data, &mut blocks, self.flags(), how, SOURCE);
            made.expect("whole blocks");
            put(bytes, 0, &blocks);
        }
    }

    fn execute(self, bytes: &mut [u8]) -> CompletionRecord {
        let from = area(bytes, 0, self.source_bytes()).to_vec();
        let to = &mut bytes[at(1)..at(1) + self.destination_bytes()];
        let (flags, checked, how) = (
            self.flags(),
            SourceDifFlags::new(),
            DestinationDifFlags::new(),
        );
        // The tags of the block to come, in the source and in the destination.
        let ended = match self.opcode {
            Opcode::DifCheck => {
                oracle::dif_check(&from, flags, checked, SOURCE).map(|source| (Some(source), None))
            }
            Opcode::DifInsert => oracle::dif_insert(&from, to, flags, how, MADE)
                .map(|made| (None, Some(made)))
                .map_err(DifError::from),
            Opcode::DifStrip => oracle::dif_strip(&from, to, flags, checked, SOURCE)
                .map(|source| (Some(source), None)),
            Opcode::DifUpdate => {
                let tags = UpdateTags {
                    source: SOURCE,
                    destination: MADE,
                };
                oracle::dif_update(&from, to, flags, checked, how, tags)
                    .map(|tags| (Some(tags.source), Some(tags.destination)))
            }
            _ => oracle::dix_generate(&from, to, flags, how, MADE)
                .map(|made| (None, Some(made)))
                .map_err(DifError::from),
        };
        let mut record = success();
        let (source, made) = match ended {
            Ok(tags) => tags,
            Err(DifError::Block(bad)) => {
                record.status = Status::DIF_ERROR.0;
                record.result = bad.status;
                record.bytes_completed = bad.bytes_completed as u32;
                let made = Tags {
                    reference: MADE.reference + FLAW as u32,
                    ..MADE
                };
                (Some(bad.tags), self.makes().then_some(made))
            }
            Err(DifError::Size(size)) => unreachable!("whole blocks: {size}"),
        };
        if let Some(tags) = source {
            record.set_source_tags(bits(tags));
        }
        if let Some(tags) = made {
            record.set_destination_tags(bits(tags));
        }
        record
    }

    fn makes(self) -> bool {
        !matches!(self.opcode, Opcode::DifCheck | Opcode::DifStrip)
    }

    fn operands(self) -> Vec<Operand> {
        let mut operands = vec![read("source", self.source_bytes())];
        if self.destination_bytes() > 0 {
            operands.push(written("destination", self.destination_bytes()));
        }
        operands
    }

    fn form(self) -> Form {
        // Faults of one size are those of all.
        let operands = match self.size {
            BlockSize::Bytes512 => self.operands(),
            _ => Vec::new(),
        };
        Form::new(
            self.opcode.name(),
            &format!("blocks of {} bytes", self.size.bytes()),
            &operands,
            move |a| self.descriptor(a),
            move |b| self.prepare(b),
            move |b| self.execute(b),
        )
    }

    /// A block whose field is wrong in this byte.
    fn flawed(self, case: &str, byte: usize) -> Form {
        let prepare = move |bytes: &mut [u8]| {
            self.prepare(bytes);
            let field = at(0) + FLAW * self.size.protected_bytes() + self.size.bytes();
            bytes[field + byte] ^= 1;
        };
        let execute = move |bytes: &mut [u8]| {
            let record = self.execute(bytes);
            let found = [
                DifStatus::GUARD,
                DifStatus::APP_TAG,
                DifStatus::REFERENCE_TAG,
            ];
            assert!(found.contains(&record.result), "the oracle finds one flaw");
            record
        };
        let descriptor = move |a| self.descriptor(a);
        Form::new(self.opcode.name(), case, &[], descriptor, prepare, execute)
    }
}

fn bits(tags: Tags) -> DifTags {
    DifTags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}
