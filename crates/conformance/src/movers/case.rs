//! Operations of all kinds, described so that the oracle can execute them as well.

use dray::Operation;
use dray_ops::{CrcOptions, Pattern, oracle};
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use super::door::PAGE;

/// Each operation has a page for each of its up to three buffers, and one between them.
pub(crate) const AREA: u64 = 4 * 2 * PAGE;

/// What an operation does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CaseKind {
    Noop,
    Copy,
    Fill(u64),
    Compare,
    Pattern(u64),
    Dualcast,
    Crc(u32),
    CopyCrc(u32),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    kind: CaseKind,
    len: u32,
    /// Of source and destination, within their pages.
    offsets: [u64; 2],
    /// A byte of the second operand that is changed beforehand, so that comparisons find it.
    flaw: Option<u64>,
    /// A comparison that is expected to find something, and says so.
    expects: Option<u8>,
}

/// Operations of all kinds, sizes and alignments.
pub(crate) fn cases() -> Vec<Case> {
    use CaseKind::{Compare, Copy, CopyCrc, Crc, Dualcast, Fill, Noop, Pattern};
    let mut cases = Vec::new();
    let kinds = [
        Noop,
        Copy,
        Fill(0x0123_4567_89ab_cdef),
        Compare,
        Pattern(0x1111_1111_1111_1111),
        Dualcast,
        Crc(0),
        Crc(0xdead_beef),
        CopyCrc(7),
    ];
    for (n, len) in [1, 7, 64, 100, 4096, 5001].into_iter().enumerate() {
        for kind in kinds {
            let offsets = [n as u64 * 13 % 64, n as u64 * 29 % 64];
            let line = Case {
                kind,
                len,
                offsets,
                flaw: None,
                expects: None,
            };
            cases.push(line);
            if matches!(kind, Compare | Pattern(_)) {
                let flaw = Some(u64::from(len) - 1);
                cases.push(Case { flaw, ..line });
                for expects in [Some(0), Some(1)] {
                    cases.push(Case { expects, ..line });
                    cases.push(Case {
                        flaw,
                        expects,
                        ..line
                    });
                }
            }
        }
    }
    cases
}

impl Case {
    /// Source, destination and second destination.
    fn at(&self, n: usize) -> [u64; 3] {
        let area = n as u64 * AREA;
        let [src, dst] = self.offsets;
        [area + src, area + 3 * PAGE + dst, area + 6 * PAGE + dst]
    }

    pub(crate) fn operation(&self, n: usize, base: u64) -> Operation {
        let [src, dst, dst2] = self.at(n).map(|offset| base + offset);
        let len = self.len;
        let descriptor = match self.kind {
            CaseKind::Noop => Descriptor::noop(),
            CaseKind::Copy => Descriptor::memmove(src, dst, len),
            CaseKind::Fill(pattern) => Descriptor::fill(pattern, dst, len),
            CaseKind::Compare => Descriptor::compare(src, dst, len),
            CaseKind::Pattern(pattern) => Descriptor::compare_pattern(src, pattern, len),
            CaseKind::Dualcast => Descriptor::dualcast(src, dst, dst2, len),
            CaseKind::Crc(seed) => Descriptor::crc(src, len, seed),
            CaseKind::CopyCrc(seed) => Descriptor::copy_crc(src, dst, len, seed),
        };
        let descriptor = match self.expects {
            Some(result) => descriptor
                .with_expected_result(result)
                .with_flags(Flags::CHECK_RESULT),
            None => descriptor,
        };
        Operation::try_from(descriptor).expect("an operation of the table")
    }

    /// What lies there before.
    pub(crate) fn prepare(&self, n: usize, bytes: &mut [u8]) {
        let [src, dst, _] = self.at(n).map(|offset| offset as usize);
        let len = self.len as usize;
        match self.kind {
            CaseKind::Compare => {
                let source = bytes[src..src + len].to_vec();
                bytes[dst..dst + len].copy_from_slice(&source);
                if let Some(at) = self.flaw {
                    bytes[dst + at as usize] ^= 0x10;
                }
            }
            CaseKind::Pattern(pattern) => {
                let pattern = Pattern::Eight(pattern.to_le_bytes());
                oracle::fill(&mut bytes[src..src + len], pattern);
                if let Some(at) = self.flaw {
                    bytes[src + at as usize] ^= 0x10;
                }
            }
            _ => {}
        }
    }

    /// Executes it with the oracle: gives the record that it must have.
    pub(crate) fn execute(&self, n: usize, bytes: &mut [u8]) -> CompletionRecord {
        let [src, dst, dst2] = self.at(n).map(|offset| offset as usize);
        let len = self.len as usize;
        let source = bytes[src..src + len].to_vec();
        let mut record = CompletionRecord::with_status(Status::SUCCESS);
        let crc = |seed| oracle::crc32c(seed, &source, CrcOptions::default());
        match self.kind {
            CaseKind::Noop => {}
            CaseKind::Copy => bytes[dst..dst + len].copy_from_slice(&source),
            CaseKind::Fill(pattern) => {
                let pattern = Pattern::Eight(pattern.to_le_bytes());
                oracle::fill(&mut bytes[dst..dst + len], pattern);
            }
            CaseKind::Compare | CaseKind::Pattern(_) => {
                if let Some(at) = self.flaw {
                    record.result = 1;
                    record.bytes_completed = at as u32;
                }
                if self
                    .expects
                    .is_some_and(|expected| expected != record.result)
                {
                    record.status = Status::SUCCESS_PREDICATE.0;
                }
            }
            CaseKind::Dualcast => {
                bytes[dst..dst + len].copy_from_slice(&source);
                bytes[dst2..dst2 + len].copy_from_slice(&source);
            }
            CaseKind::Crc(seed) => record.set_crc32(crc(seed)),
            CaseKind::CopyCrc(seed) => {
                bytes[dst..dst + len].copy_from_slice(&source);
                record.set_crc32(crc(seed));
            }
        }
        record
    }
}
