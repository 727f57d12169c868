//! One block after the other: its field checked, its field made.

use super::guard::{TOGETHER, Work, guard, guards, guards_and_copies, guards_and_hints, run};
use super::row::{Copies, Row};
use super::run::Fields;
use super::tags::Field;
use super::{BadBlock, DestinationDifFlags, DifFlags, DifStatus, SourceDifFlags, Tags};

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
    /// The bits of a field that are compared.
    compared: u64,
}

impl Checker {
    pub(super) fn new(flags: DifFlags, source: SourceDifFlags, tags: Tags) -> Self {
        let guard = !source.guard_check_disable();
        let app = tags.app_mask != u16::MAX;
        let reference = !source.reference_tag_check_disable();
        let all = Field {
            guard: if guard { u16::MAX } else { 0 },
            app: if app { u16::MAX } else { 0 },
            reference: if reference { u32::MAX } else { 0 },
        };
        Self {
            flags,
            source,
            tags,
            bytes_completed: 0,
            compared: all.bits(),
        }
    }

    /// The guards of blocks with their fields, if these are to be checked.
    #[inline]
    pub(super) fn guards(&self, blocks: Row<'_>) -> Option<[u16; TOGETHER]> {
        (!self.source.guard_check_disable()).then(|| guards(blocks, self.flags))
    }

    /// As [`Checker::guards`], and asks for what is needed next.
    #[inline]
    pub(super) fn guards_and_hints(
        &self,
        blocks: Row<'_>,
        ahead: [&[u8]; 2],
    ) -> Option<[u16; TOGETHER]> {
        (!self.source.guard_check_disable()).then(|| guards_and_hints(blocks, ahead, self.flags))
    }

    /// As [`Checker::guards`], and copies the data of others.
    #[inline]
    pub(super) fn guards_and_copies(
        &self,
        blocks: Row<'_>,
        copies: Copies<'_>,
    ) -> Option<[u16; TOGETHER]> {
        if self.source.guard_check_disable() {
            copies.run(self.flags.block_size().bytes());
            return None;
        }
        Some(guards_and_copies(blocks, copies, self.flags))
    }

    /// Works on groups of blocks with their fields until one has a field that is not as expected, and
    /// returns how many blocks these groups have; see [`run`].
    #[inline]
    pub(super) fn run(&mut self, src: &[u8], work: Work<'_>) -> usize {
        let fields = Fields::expected(self.flags, self.source, self.tags, self.compared);
        let (Some(fields), false) = (fields, self.source.guard_check_disable()) else {
            return 0;
        };
        let size = self.flags.block_size();
        let blocks = run(src, work, size.bytes(), &fields);
        self.tags = self.source.advance(self.tags, blocks);
        self.bytes_completed += blocks * size.protected_bytes();
        blocks
    }

    /// Checks a block with its field against its guard, if that was computed, and takes them apart.
    ///
    /// Inlined, so that the tags stay in registers: a call takes as long as half a guard.
    #[inline(always)]
    pub(super) fn check<'a>(
        &mut self,
        block: &'a [u8],
        guard: Option<u16>,
    ) -> Result<(&'a [u8], Checked), BadBlock> {
        let Some((data, field)) = block.split_last_chunk() else {
            unreachable!("a block is longer than its field")
        };
        let field = Field::read(*field);
        let expected = self.tags.field(guard.unwrap_or_default());
        let difference = (field.bits() ^ expected.bits()) & self.compared;
        if difference != 0 || field.app == u16::MAX {
            let status = status(self.source, field, difference);
            if status != 0 {
                return Err(BadBlock {
                    status,
                    bytes_completed: self.bytes_completed,
                    tags: self.tags,
                });
            }
        }
        self.tags = self.source.advance(self.tags, 1);
        self.bytes_completed += block.len();
        Ok((data, Checked { field, guard }))
    }
}

/// DIF status of a block whose field differs so from what was expected, or is not checked at all
/// (spec 8.3.17.4).
#[cold]
fn status(source: SourceDifFlags, field: Field, difference: u64) -> u8 {
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
    let differs = Field::from_bits(difference);
    let mut status = 0;
    if differs.guard != 0 {
        status |= DifStatus::GUARD;
    }
    if differs.app != 0 {
        status |= DifStatus::APP_TAG;
    }
    if differs.reference != 0 {
        status |= DifStatus::REFERENCE_TAG;
    }
    status
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

    /// Copies groups of blocks, adds a field to each, and returns how many blocks these groups have; see
    /// [`run`].
    #[inline]
    pub(super) fn run(&mut self, src: &[u8], dst: &mut [u8]) -> usize {
        let bytes = self.flags.block_size().bytes();
        let Some(fields) = Fields::made(self.flags, self.destination, self.tags) else {
            return 0;
        };
        let blocks = run(src, Work::Insert(dst), bytes, &fields);
        self.tags = self.destination.advance(self.tags, blocks);
        blocks
    }

    /// The guards of blocks of data.
    #[inline]
    pub(super) fn guards(&self, blocks: Row<'_>) -> [u16; TOGETHER] {
        guards(blocks, self.flags)
    }

    /// As [`Maker::guards`], and copies the data of others.
    #[inline]
    pub(super) fn guards_and_copies(&self, blocks: Row<'_>, copies: Copies<'_>) -> [u16; TOGETHER] {
        guards_and_copies(blocks, copies, self.flags)
    }

    /// The field of a block with this guard.
    #[inline(always)]
    pub(super) fn make(&mut self, guard: u16) -> Field {
        let field = self.tags.field(guard);
        self.tags = self.destination.advance(self.tags, 1);
        field
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
