//! Each operation once as it succeeds: its operands, its descriptor, and what the oracle makes of the memory.

mod data;
mod delta;
mod dif;

use std::rc::Rc;

use dray_spec::{CompletionRecord, Descriptor, Status};

use super::door::PAGE;
use super::trial::{AREA_PAGES, AREAS, BYTES, Expected, Plan, at, noise, operation};

/// Bytes of most operations: they begin and end within a page, and cross two boundaries.
pub(crate) const LEN: usize = 10240;

/// Memory that an operation accesses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand {
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
    pub(crate) write: bool,
}

pub(crate) fn read(name: &'static str, bytes: usize) -> Operand {
    let write = false;
    Operand { name, bytes, write }
}

pub(crate) fn written(name: &'static str, bytes: usize) -> Operand {
    let write = true;
    Operand { name, bytes, write }
}

/// Puts bytes into the memory.
type Prepare = Rc<dyn Fn(&mut [u8])>;
/// Does to the memory what the operation does.
type Execute = Rc<dyn Fn(&mut [u8]) -> CompletionRecord>;

/// An operation that succeeds. Operand `n` is in area `n`.
#[derive(Clone)]
pub(crate) struct Form {
    pub(crate) operation: &'static str,
    pub(crate) case: String,
    pub(crate) operands: Vec<Operand>,
    /// With operands at these addresses.
    pub(crate) descriptor: Rc<dyn Fn([u64; AREAS]) -> Descriptor>,
    /// Puts into the memory what has to be there.
    pub(crate) prepare: Prepare,
    /// Executes it with the oracle.
    pub(crate) execute: Execute,
}

impl Form {
    fn new(
        operation: &'static str,
        case: &str,
        operands: &[Operand],
        descriptor: impl Fn([u64; AREAS]) -> Descriptor + 'static,
        prepare: impl Fn(&mut [u8]) + 'static,
        execute: impl Fn(&mut [u8]) -> CompletionRecord + 'static,
    ) -> Form {
        Form {
            operation,
            case: case.to_owned(),
            operands: operands.to_vec(),
            descriptor: Rc::new(descriptor),
            prepare: Rc::new(prepare),
            execute: Rc::new(execute),
        }
    }

    pub(crate) fn plan(&self, base: u64) -> Plan {
        let mut before = noise(BYTES);
        (self.prepare)(&mut before);
        let mut after = before.clone();
        let record = (self.execute)(&mut after);
        Plan {
            before,
            operation: operation((self.descriptor)(super::trial::addresses(base))),
            expected: Expected::Record(record),
            after,
        }
    }

    /// Pages of the memory that operand `n` lies on.
    pub(crate) fn pages(&self, n: usize) -> std::ops::RangeInclusive<usize> {
        let page = PAGE as usize;
        let last = at(n) + self.operands[n].bytes - 1;
        n * AREA_PAGES..=last / page
    }
}

/// All forms.
pub(crate) fn forms() -> Vec<Form> {
    [data::forms(), delta::forms(), dif::forms()].concat()
}

pub(crate) fn success() -> CompletionRecord {
    CompletionRecord::with_status(Status::SUCCESS)
}

/// The bytes of area `n`.
pub(crate) fn area(bytes: &[u8], n: usize, len: usize) -> &[u8] {
    &bytes[at(n)..at(n) + len]
}

/// Puts bytes at the start of area `n`.
pub(crate) fn put(bytes: &mut [u8], n: usize, from: &[u8]) {
    bytes[at(n)..at(n) + from.len()].copy_from_slice(from);
}
