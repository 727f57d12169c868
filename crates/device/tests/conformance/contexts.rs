//! Status 0x10: operations that are not there, or not here.

use dray_spec::{Descriptor, Opcode, Status};

use crate::rule::{Case, LIST, RECORD, Rule, told, valid, valid_one};

pub(crate) fn rules() -> Vec<Rule> {
    let bad = told(Status::BAD_OPCODE);
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

    let batch = Descriptor::batch(LIST, 2).with_completion(RECORD);
    let drain = Descriptor::drain().with_completion(RECORD);
    vec![
        unknown,
        absent,
        Rule::new("3.8", "no batch in a batch")
            .broken_by(Case::new(batch, bad).in_batch())
            .allows(batch),
        Rule::new("3.12", "no drain in a batch")
            .broken_by(Case::new(drain, bad).in_batch())
            .allows(drain),
    ]
}

fn with_code(mut descriptor: Descriptor, code: u8) -> Descriptor {
    descriptor.flags_opcode = descriptor.flags_opcode & 0x00ff_ffff | u32::from(code) << 24;
    descriptor
}
