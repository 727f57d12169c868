//! The contract of runners: what an engine starts carries all that is needed to execute it.
//!
//! A runner decides when, and where the bytes are. It takes [`Work`](crate::Work), has the device
//! [`start`](crate::Device::start) it, executes the [`Task`] or reads its list, and reports the end
//! with [`done`](crate::Device::done) or [`list_read`](crate::Device::list_read).

use dray_spec::{Descriptor, Flags, Opcode};
use zerocopy::transmute;

use crate::execute::domain::execute_between;
use crate::execute::execute;
use crate::execute::untranslated::execute_untranslated;
use crate::{Access, DescriptorResult, Domains, Memory, Payload, WorkId};

/// Bytes of a completion record.
const RECORD_BYTES: u64 = 32;

/// In whose name memory is accessed, and whether page faults are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct View {
    /// The address space; 0 where PASIDs are not in use, and for what is the device's own.
    pub pasid: u32,
    /// The device asks the system to bring in pages that are not there (spec 3.13).
    pub blocks: bool,
}

/// What an engine does with a descriptor that it has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Execute it.
    Execute(Opcode),
    /// Read the list of a batch.
    ReadList {
        /// 64-byte aligned address of the list.
        address: u64,
        /// Number of descriptors.
        count: u32,
    },
    /// Nothing: it ends like this.
    End(DescriptorResult),
}

/// A descriptor that an engine has started, with all that is needed to execute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// To report its end.
    pub id: WorkId,
    /// What to do.
    pub action: Action,
    /// The descriptor.
    pub descriptor: Descriptor,
    /// In whose name it runs; 0 where PASIDs are not in use.
    pub pasid: u32,
    /// Where its completion record goes, if that must be writable before it begins (spec 5.4).
    pub record: Option<u64>,
    /// The event log takes a record that cannot be written, and the descriptor is executed all the
    /// same (spec 3.13.3).
    pub log_takes_record: bool,
    /// Address spaces of an inter-domain operation.
    pub domains: Option<Domains>,
    /// The device learns of all its page faults (spec 3.13.1).
    pub translates: bool,
    /// Pages of its record, its list and its readback are asked for (spec 3.13.3, 8.1.3).
    pub requests_pages: bool,
}

/// How far the list of a batch could be read. The default: all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListRead {
    /// Address of the first descriptor that could not be read.
    pub fault: Option<u64>,
    /// Whether the page of the batch's record can be written.
    pub record: RecordPage,
}

/// Whether the page of a completion record can be written, found out before a descriptor begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordPage {
    /// It can, or there is no record.
    #[default]
    Writable,
    /// It cannot; the event log takes the record.
    Log,
    /// It cannot, and the descriptor is discarded.
    Discard,
}

impl ListRead {
    /// As far as a descriptor at `address` that cannot be read.
    pub fn until(address: u64) -> ListRead {
        ListRead {
            fault: Some(address),
            ..ListRead::default()
        }
    }
}

impl Task {
    /// Executes the descriptor on `memory`, which has one address space, and others through
    /// [`Memory::alternate`]. How it ends, for [`Device::done`](crate::Device::done).
    ///
    /// The list of a batch is [read](Task::read_list) instead.
    #[inline]
    pub fn execute<M: Memory>(&self, memory: &mut M, payload: Payload) -> DescriptorResult {
        self.execute_in(memory, payload, |_, _| {})
    }

    /// The same on memory with several views: `enter` is called before each kind of access.
    #[inline]
    pub fn execute_in<M: Memory>(
        &self,
        memory: &mut M,
        payload: Payload,
        mut enter: impl FnMut(&mut M, View),
    ) -> DescriptorResult {
        let record = self.record_page(memory, &mut enter);
        if record == RecordPage::Discard {
            return DescriptorResult::unrecorded();
        }
        let mut outcome = match self.action {
            Action::End(outcome) => outcome,
            Action::Execute(opcode) => {
                enter(memory, self.operand_view(opcode));
                self.execute_operation(opcode, memory, payload)
            }
            // Its runner should have read the list: without one no member runs.
            Action::ReadList { address, .. } => DescriptorResult::page_fault(address, 0, false),
        };
        outcome.record_in_log = record == RecordPage::Log;
        outcome
    }

    /// Reads the descriptors of a batch into `list`, as far as they can be read (spec 8.3.2). For
    /// [`Device::list_read`](crate::Device::list_read).
    pub fn read_list<M: Memory>(&self, memory: &mut M, list: &mut Vec<Descriptor>) -> ListRead {
        self.read_list_in(memory, list, |_, _| {})
    }

    /// The same on memory with several views.
    pub fn read_list_in<M: Memory>(
        &self,
        memory: &mut M,
        list: &mut Vec<Descriptor>,
        mut enter: impl FnMut(&mut M, View),
    ) -> ListRead {
        const SIZE: u64 = size_of::<Descriptor>() as u64;
        list.clear();
        let record = self.record_page(memory, &mut enter);
        let Action::ReadList { address, count } = self.action else {
            return ListRead {
                record,
                fault: None,
            };
        };
        if record == RecordPage::Discard {
            return ListRead {
                record,
                fault: Some(address),
            };
        }
        enter(memory, self.own_view());
        let count = u64::from(count);
        let whole = memory.accessible(address, count * SIZE, Access::Read) / SIZE;
        for index in 0..whole {
            let mut bytes = [0; SIZE as usize];
            memory.read(address + index * SIZE, &mut bytes);
            list.push(transmute!(bytes));
        }
        ListRead {
            fault: (whole < count).then(|| address.saturating_add(whole * SIZE)),
            record,
        }
    }

    /// The view of its completion record, its list and its readback.
    pub fn own_view(&self) -> View {
        View {
            pasid: self.pasid,
            blocks: self.requests_pages,
        }
    }

    /// Whether it waits for operands that are not in memory (spec 3.13).
    #[inline]
    pub fn blocks(&self) -> bool {
        self.descriptor.flags().contains(Flags::BLOCK_ON_FAULT) && self.translates
    }

    /// The view of its operands. Pages are asked for by who translates (spec Table 9-2).
    pub fn operand_view(&self, opcode: Opcode) -> View {
        let blocks = match opcode {
            Opcode::Drain => self.requests_pages,
            _ => self.blocks(),
        };
        View {
            pasid: self.pasid,
            blocks: blocks && self.translates,
        }
    }

    #[inline]
    fn record_page<M: Memory>(
        &self,
        memory: &mut M,
        enter: &mut impl FnMut(&mut M, View),
    ) -> RecordPage {
        let Some(address) = self.record else {
            return RecordPage::Writable;
        };
        enter(memory, self.own_view());
        let writable = memory.accessible(address, RECORD_BYTES, Access::Write) == RECORD_BYTES;
        match (writable, self.log_takes_record) {
            (true, _) => RecordPage::Writable,
            (false, true) => RecordPage::Log,
            (false, false) => RecordPage::Discard,
        }
    }

    #[inline]
    fn execute_operation<M: Memory>(
        &self,
        opcode: Opcode,
        memory: &mut M,
        payload: Payload,
    ) -> DescriptorResult {
        let d = &self.descriptor;
        match &self.domains {
            domains if !self.translates => {
                execute_untranslated(opcode, d, domains.as_ref(), memory, payload)
            }
            None => execute(opcode, d, memory, payload),
            Some(domains) => execute_between(opcode, d, domains, memory, payload),
        }
    }
}
