//! A rule, and the cases that break it and keep it.

use dray_spec::{Descriptor, DifTags, Flags, Opcode, Status, WindowFlags};

use super::layout::{DELTA, DST, DST2, LIST, RECORD, SRC};
use super::profile::handle;
use super::{Case, PAGE, Reported};
use dray_device::DeviceConfig;

/// A rule, and the cases that break it and keep it.
#[derive(Debug, Clone)]
pub struct Rule {
    /// What it says.
    pub name: String,
    /// Section or table of the specification.
    pub section: &'static str,
    /// Descriptors that break it.
    pub broken: Vec<Case>,
    /// Their nearest neighbours, which do not.
    pub legal: Vec<Case>,
}

impl Rule {
    pub(super) fn new(section: &'static str, name: impl Into<String>) -> Rule {
        Rule {
            name: name.into(),
            section,
            broken: Vec::new(),
            legal: Vec::new(),
        }
    }

    pub(super) fn broken_by(mut self, case: Case) -> Rule {
        self.broken.push(case);
        self
    }

    pub(super) fn kept_by(mut self, case: Case) -> Rule {
        self.legal.push(case);
        self
    }

    /// Kept by a descriptor that succeeds.
    pub(super) fn allows(self, descriptor: Descriptor) -> Rule {
        self.kept_by(Case::new(descriptor, Reported::Status(Status::SUCCESS)))
    }

    /// All cases, those that break the rule first.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.broken.iter().chain(&self.legal)
    }
}

/// Source flags that check nothing, beside an application tag mask of 0xFFFF (spec 8.3.17.2).
pub(super) const UNCHECKED: u8 = 0x60;

/// Tags that check nothing.
pub(super) fn unchecked() -> DifTags {
    DifTags {
        app_mask: 0xffff,
        ..DifTags::default()
    }
}

/// One descriptor of each operation that breaks no rule on a queue.
pub(super) fn valid() -> Vec<Descriptor> {
    let tags = unchecked();
    let all = [
        Descriptor::noop(),
        Descriptor::batch(LIST, 2),
        Descriptor::drain(),
        Descriptor::memmove(SRC, DST, 64),
        Descriptor::fill(0x1122_3344_5566_7788, DST, 64),
        Descriptor::compare(SRC, DST, 64),
        Descriptor::compare_pattern(SRC, 0, 64),
        Descriptor::create_delta(SRC, DST, 64, DST2, 80),
        Descriptor::apply_delta(DELTA, DST, 64, 10),
        Descriptor::dualcast(SRC, DST, DST2, 64),
        Descriptor::translation_fetch(SRC, 64),
        Descriptor::crc(SRC, 64, 0),
        Descriptor::copy_crc(SRC, DST, 64, 0),
        Descriptor::dif_check(SRC, 520, 0, UNCHECKED, tags),
        Descriptor::dif_insert(SRC, DST, 512, 0, 0, tags),
        Descriptor::dif_strip(SRC, DST, 520, 0, UNCHECKED, tags),
        Descriptor::dif_update(SRC, DST, 520, 0, (UNCHECKED, tags), (0, tags)),
        Descriptor::dix_generate(SRC, DST, 512, 0, 0, tags),
        Descriptor::cache_flush(DST, 64),
        Descriptor::update_window(
            SRC,
            PAGE,
            WindowFlags::new().with_window_enable(true),
            handle::OWN,
        ),
        Descriptor::inter_domain_copy(SRC, DST, 64).with_source_handle(handle::WHOLE),
        Descriptor::inter_domain_fill(0x1122_3344_5566_7788, DST, 64)
            .with_destination_handle(handle::WHOLE),
        Descriptor::inter_domain_compare(SRC, DST, 64).with_destination_handle(handle::WHOLE),
        Descriptor::inter_domain_compare_pattern(SRC, 0, 64).with_source_handle(handle::WHOLE),
    ];
    all.map(|d| d.with_completion(RECORD)).to_vec()
}

/// The one of these with this operation.
pub(super) fn valid_one(opcode: Opcode) -> Descriptor {
    let mut all = valid().into_iter();
    all.find(|d| d.opcode() == Ok(opcode)).unwrap_or_default()
}

/// The name of its operation.
pub(super) fn name_of(descriptor: &Descriptor) -> String {
    descriptor
        .opcode()
        .map_or_else(|unknown| unknown.to_string(), |opcode| opcode.to_string())
}

/// Whether it may stand in a batch.
pub(super) fn may_be_member(descriptor: &Descriptor) -> bool {
    !matches!(
        descriptor.opcode(),
        Ok(Opcode::Batch | Opcode::Drain | Opcode::UpdateWindow)
    )
}

/// Takes flags away.
pub(super) fn without_flags(mut descriptor: Descriptor, flags: Flags) -> Descriptor {
    descriptor.flags_opcode &= !flags.bits();
    descriptor
}

/// Sets a capability bit of the device.
pub(super) fn with_gen_cap(config: &mut DeviceConfig, bit: u32) {
    config.capabilities.gen_cap |= 1 << bit;
}

/// Clears a capability bit of the device.
pub(super) fn without_gen_cap(config: &mut DeviceConfig, bit: u32) {
    config.capabilities.gen_cap &= !(1 << bit);
}
