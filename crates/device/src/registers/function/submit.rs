//! Writes to portals (spec 5.3, 9.3).

use dray_spec::registers::{DeviceState, PortalAddress};
use dray_spec::{CompletionRecord, Descriptor, Status};
use zerocopy::FromBytes;

use super::{Bar, Function};
use crate::{Effect, Portal, Submission};

impl Function {
    /// A posted write of 64 bytes to BAR2 (MOVDIR64B). The writer does not learn what becomes of it.
    pub fn post(&mut self, offset: u64, bytes: &[u8; 64], effects: &mut Vec<Effect>) -> Submission {
        let Some((portal, message_storage)) = self.portal(offset) else {
            return Submission::Ignored;
        };
        let Ok(descriptor) = Descriptor::read_from_bytes(bytes) else {
            return Submission::Ignored;
        };
        let answer = self.device.post(portal, message_storage, &descriptor);
        if answer == Submission::Lost {
            self.report_errors(effects);
        }
        answer
    }

    /// A deferrable write of 64 bytes (ENQCMD): accepted, or retry. There are portals in BAR2 alone.
    pub fn enqueue(&mut self, bar: Bar, offset: u64, bytes: &[u8; 64]) -> Submission {
        let portal = match bar {
            Bar::Portals => self.portal(offset),
            Bar::Registers => None,
        };
        match (portal, Descriptor::read_from_bytes(bytes)) {
            (Some((portal, message_storage)), Ok(descriptor)) => {
                self.device.defer(portal, message_storage, &descriptor)
            }
            _ => Submission::Retry,
        }
    }

    /// A descriptor that a door has taken for a queue whose entries it counts itself, as the queue is
    /// written to: posted to a dedicated one, deferrable to a shared one.
    #[inline]
    pub fn submit(&mut self, portal: Portal, descriptor: &Descriptor) -> Submission {
        match self.device.post(portal, false, descriptor) {
            Submission::Ignored => self.device.defer(portal, false, descriptor),
            answer => answer,
        }
    }

    /// A door that counts entries itself has dropped a descriptor for a full dedicated queue.
    pub fn overflow(&mut self, wq: u16, effects: &mut Vec<Effect>) {
        let error = Effect::SoftwareError {
            status: Status::WQ_OVERFLOW,
            wq,
            address: 0,
            origin: None,
            record: CompletionRecord::default(),
        };
        self.sort(error, effects);
    }

    /// The portal at an offset, and whether its interrupts are those of the message storage. Without
    /// a message storage there is no such portal (spec 3.3).
    fn portal(&self, offset: u64) -> Option<(Portal, bool)> {
        let address = PortalAddress::at(offset)?;
        let there = !address.message_storage || self.hardware().gen_cap.ims_blocks() > 0;
        let portal = Portal {
            wq: address.wq,
            limited: address.limited,
        };
        (there && self.file.state == DeviceState::Enabled)
            .then_some((portal, address.message_storage))
    }
}
