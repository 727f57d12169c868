//! Which bytes a descriptor has written, by how it says that it ended.

use dray_ops::BlockSize;
use dray_spec::{CompletionRecord, Descriptor, Opcode, Status};

/// What must have been written: addresses and lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Footprint {
    /// All these bytes and no other.
    All(Vec<(u64, u64)>),
    /// None but some of these.
    Within(Vec<(u64, u64)>),
}

impl Footprint {
    /// Of an operation that ended with `record` and whose destination is at `to` (spec 8.2, 8.3).
    pub(crate) fn of(
        opcode: Opcode,
        d: &Descriptor,
        record: &CompletionRecord,
        to: u64,
    ) -> Footprint {
        let size = u64::from(d.size);
        let done = match record.status().code() {
            0x01 | 0x02 => size,
            0x03 | 0x04 | 0x09 => record.bytes_completed.into(),
            _ => 0,
        };
        let block = BlockSize::from_bits(d.dif_flags());
        let (data, protected) = (block.bytes() as u64, block.protected_bytes() as u64);
        Footprint::All(match opcode {
            // The last bytes were moved first (spec 8.3.4).
            Opcode::Memmove if record.result == 1 => {
                vec![(to.wrapping_add(size - done), done)]
            }
            Opcode::Memmove
            | Opcode::Fill
            | Opcode::CopyCrc
            | Opcode::DifUpdate
            | Opcode::InterDomainCopy
            | Opcode::InterDomainFill => vec![(to, done)],
            Opcode::Dualcast => vec![(to, done), (d.destination2(), done)],
            Opcode::CreateDelta => {
                vec![(d.delta_record(), record.delta_record_size().into())]
            }
            Opcode::DifInsert => vec![(to, done / data * protected)],
            Opcode::DifStrip => vec![(to, done / protected * data)],
            Opcode::DixGenerate => vec![(to, done / data * 8)],
            Opcode::ApplyDelta => return Footprint::Within(vec![(to, size)]),
            Opcode::Noop
            | Opcode::Batch
            | Opcode::Drain
            | Opcode::Compare
            | Opcode::ComparePattern
            | Opcode::TranslationFetch
            | Opcode::CrcGenerate
            | Opcode::DifCheck
            | Opcode::CacheFlush
            | Opcode::UpdateWindow
            | Opcode::InterDomainCompare
            | Opcode::InterDomainComparePattern => Vec::new(),
        })
    }

    /// Of an operation without address translation: writes that fault are lost, and records say
    /// nothing of progress (spec 3.13.1).
    pub(crate) fn untranslated(opcode: Opcode, d: &Descriptor, to: u64) -> Footprint {
        let mut record = CompletionRecord::with_status(Status::SUCCESS);
        if opcode == Opcode::CreateDelta {
            record.set_delta_record_size(d.max_delta_size());
        }
        match Footprint::of(opcode, d, &record, to) {
            Footprint::All(parts) | Footprint::Within(parts) => Footprint::Within(parts),
        }
    }

    /// Whether these runs of first and last addresses are it.
    pub(crate) fn is(&self, written: &[(u64, u64)]) -> bool {
        match self {
            Footprint::All(parts) => crate::image::runs(parts) == written,
            Footprint::Within(parts) => {
                let parts = crate::image::runs(parts);
                let inside = |run: &(u64, u64)| {
                    let mut parts = parts.iter();
                    parts.any(|part| part.0 <= run.0 && run.1 <= part.1)
                };
                written.iter().all(inside)
            }
        }
    }
}
