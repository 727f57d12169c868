//! Status 0x10: operations that are not there, or not here.

use dray_spec::{Descriptor, Opcode, Status};

use dray_device::{DeviceConfig, WorkQueueMode};

use super::case::{Case, Reported, reported};
use super::layout::{LIST, OWN_PASID, RECORD};
use super::rule::{Rule, may_be_member, valid, valid_one};

pub(super) fn rules() -> Vec<Rule> {
    let bad = reported(Status::BAD_OPCODE);
    let noop = valid_one(Opcode::Noop);
    let mut unknown = Rule::new("8.1.2", "the operation is in the architecture").allows(noop);
    for code in (0x0b..=0x0f).chain([0x16, 0x1f, 0x22]).chain(0x27..=0xff) {
        unknown = unknown.broken_by(Case::new(with_code(noop, code), bad));
    }

    let mut absent = Rule::new("5.4", "OPCAP has the operation");
    for descriptor in valid() {
        let without = Case::new(descriptor, bad).on(|c| c.capabilities.op_cap = [0; 4]);
        absent = absent.broken_by(without).allows(descriptor);
    }

    let mut masked = Rule::new("5.4", "WQ OPCFG lets the operation through").allows(noop);
    for descriptor in valid() {
        let without = |c: &mut DeviceConfig| c.work_queues[0].op_config = [0; 4];
        masked = masked.broken_by(Case::new(descriptor, bad).on(without));
        if may_be_member(&descriptor) && descriptor.opcode() != Ok(Opcode::Noop) {
            let only_batches = |c: &mut DeviceConfig| c.work_queues[0].op_config = [3, 0, 0, 0];
            let case = Case::new(descriptor, bad).on(only_batches);
            masked = masked.broken_by(case.in_batch());
        }
    }

    let fetch = valid_one(Opcode::TranslationFetch);
    let update = valid_one(Opcode::UpdateWindow);
    let batch = Descriptor::batch(LIST, 2).with_completion(RECORD);
    let drain = Descriptor::drain().with_completion(RECORD);
    vec![
        unknown,
        absent,
        masked,
        Rule::new("5.4", "a translation fetch needs ATS")
            .broken_by(Case::new(fetch, bad).on(|c| c.pci.ats = false))
            .broken_by(Case::new(fetch, bad).on(|c| c.work_queues[0].ats_disable = true))
            .allows(fetch),
        Rule::new("3.8", "no batch in a batch")
            .broken_by(Case::new(batch, bad).in_batch())
            .allows(batch),
        Rule::new("3.12", "no drain in a batch")
            .broken_by(Case::new(drain, bad).in_batch())
            .allows(drain),
        Rule::new("8.3.27", "no update of a window in a batch")
            .broken_by(Case::new(update, bad).in_batch())
            .allows(update),
        privilege(),
    ]
}

/// Status 0x1d, which no record reports.
fn privilege() -> Rule {
    let shared: fn(&mut DeviceConfig) = |config| {
        config.work_queues[0].mode = WorkQueueMode::Shared;
        config.pci.privileged_mode = false;
    };
    let user = valid_one(Opcode::Memmove).with_pasid(OWN_PASID);
    let privileged = user.with_privileged();
    let error = Reported::Error(Status::PRIVILEGE, 0);
    let success = |d| Case::new(d, Reported::Status(Status::SUCCESS));
    Rule::new("5.4", "privilege needs PCI's privileged mode")
        .broken_by(Case::new(privileged, error).on(shared))
        .broken_by(Case::new(privileged.with_interrupt(1), error).on(shared))
        .kept_by(success(user).on(shared))
        .kept_by(success(privileged).on(|c| c.work_queues[0].mode = WorkQueueMode::Shared))
        .kept_by(success(privileged).on(|c| c.pci.privileged_mode = false))
}

fn with_code(mut descriptor: Descriptor, code: u8) -> Descriptor {
    descriptor.flags_opcode = descriptor.flags_opcode & 0x00ff_ffff | u32::from(code) << 24;
    descriptor
}
