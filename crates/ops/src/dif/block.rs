//! One block after the other: its field checked, its field made.

use super::guard::{TOGETHER, guard, guards};
use super::tags::Field;
use super::{BadBlock, DIF_BYTES, DestinationDifFlags, DifFlags, DifStatus, SourceDifFlags, Tags};

/// A field that was read, and the guard of its block if that had to be computed.
#[derive(Copy, Clone)]
pub(super) struct Checked {
    field: Field,
    guard: Option<u16>,
}

/// Checks block after block.
pub(super) struct Checker {
    flags: DifFlags,
    source: SourceDifFlags,
    /// Expected in the next block.
    pub(super) tags: Tags,
    bytes_completed: usize,
}

impl Checker {
    pub(super) fn new(flags: DifFlags, source: SourceDifFlags, tags: Tags) -> Self {
        Self {
            flags,
            source,
            tags,
            bytes_completed: 0,
        }
    }

    /// The guards of blocks with their fields, if these are to be checked.
    pub(super) fn guards(&self, group: &[u8]) -> [Option<u16>; TOGETHER] {
        if self.source.guard_check_disable() {
            return [None; TOGETHER];
        }
        let step = self.flags.block_size().protected_bytes();
        guards(group, step, self.flags).map(Some)
    }

    /// Checks a block with its field against its guard, if that was computed, and takes them apart.
    pub(super) fn check<'a>(
        &mut self,
        block: &'a [u8],
        guard: Option<u16>,
    ) -> Result<(&'a [u8], Checked), BadBlock> {
        let (data, field) = block.split_at(self.flags.block_size().bytes());
        let mut bytes = [0; DIF_BYTES];
        bytes.copy_from_slice(field);
        let field = Field::read(bytes);
        let status = self.status(field, guard);
        if status != 0 {
            return Err(BadBlock {
                status,
                bytes_completed: self.bytes_completed,
                tags: self.tags,
            });
        }
        self.tags = self.source.advance(self.tags, 1);
        self.bytes_completed += block.len();
        Ok((data, Checked { field, guard }))
    }

    /// DIF status of a block (spec 8.3.17.4).
    fn status(&self, field: Field, guard: Option<u16>) -> u8 {
        let source = self.source;
        if field.app == u16::MAX {
            let reference_f = field.reference == u32::MAX;
            let all_f = reference_f && field.guard == u16::MAX;
            if source.all_f_detect() && all_f && source.all_f_detect_error() {
                return DifStatus::ALL_F;
            }
            if source.app_tag_f_detect()
                || (source.app_and_reference_tag_f_detect() && reference_f)
                || (source.all_f_detect() && all_f)
            {
                return 0;
            }
        }
        let mut status = 0;
        if guard.is_some_and(|guard| guard != field.guard) {
            status |= DifStatus::GUARD;
        }
        if self.tags.app_mask != u16::MAX && self.tags.masked_app() != field.app {
            status |= DifStatus::APP_TAG;
        }
        if !source.reference_tag_check_disable() && self.tags.reference != field.reference {
            status |= DifStatus::REFERENCE_TAG;
        }
        status
    }
}

/// Makes field after field.
pub(super) struct Maker {
    flags: DifFlags,
    destination: DestinationDifFlags,
    /// For the next block.
    pub(super) tags: Tags,
}

impl Maker {
    pub(super) fn new(flags: DifFlags, destination: DestinationDifFlags, tags: Tags) -> Self {
        Self {
            flags,
            destination,
            tags,
        }
    }

    /// The guards of blocks of data.
    pub(super) fn guards(&self, group: &[u8]) -> [u16; TOGETHER] {
        guards(group, self.flags.block_size().bytes(), self.flags)
    }

    /// The field of a block with this guard.
    pub(super) fn make(&mut self, guard: u16) -> Field {
        let tags = self.tags;
        self.tags = self.destination.advance(tags, 1);
        Field {
            guard,
            app: tags.masked_app(),
            reference: tags.reference,
        }
    }

    /// The field of a block that had one, of which parts may pass through.
    pub(super) fn update(&mut self, data: &[u8], checked: Checked) -> Field {
        let guard = match checked.guard {
            _ if self.destination.guard_pass_through() => checked.field.guard,
            Some(guard) => guard,
            None => guard(data, self.flags),
        };
        let mut field = self.make(guard);
        if self.destination.app_tag_pass_through() {
            field.app = checked.field.app;
        }
        if self.destination.reference_tag_pass_through() {
            field.reference = checked.field.reference;
        }
        field
    }
}
