//! What devices report, entered in the books.

use dray_realtime::Event;
use dray_spec::Status;

use super::Books;
use super::finding::{self, Class, Finding};
use super::flight::{Flight, flight};
use crate::processes::Pid;

impl Books {
    pub(super) fn take_in(
        &mut self,
        device: u32,
        event: &Event,
        owner: impl FnOnce(u32) -> Option<Pid>,
    ) {
        match event {
            Event::Accepted {
                id,
                wq,
                pasid,
                descriptor,
                ..
            } => {
                let mut flight = flight(owner(*pasid), (device, *wq), descriptor, None);
                self.submitters
                    .entry(device)
                    .or_default()
                    .extend(flight.pid);
                flight.pasid = *pasid;
                // Its program has ended before the device came to it.
                if self.is_gone(&flight) {
                    self.given_up(&flight);
                    flight.closed = true;
                }
                self.accept((device, *id), flight);
            }
            Event::Started {
                id,
                batch: Some(batch),
                descriptor,
                ..
            } => {
                let Some(of) = self.flights.get(&(device, *batch)).copied() else {
                    return;
                };
                let batch = (device, *batch);
                let member = Flight {
                    pasid: of.pasid,
                    ..flight(of.pid, (device, of.wq), descriptor, Some(batch))
                };
                self.start_member((device, *id), batch, member);
            }
            Event::Started {
                id, batch: None, ..
            } => self.start((device, *id)),
            Event::Ended { id, record } => self.end((device, *id), record.as_ref()),
            Event::SoftwareError {
                status,
                wq,
                address,
            } => {
                // The queue has the number of those.
                if *status == Status::WQ_OVERFLOW {
                    return;
                }
                // The record of a program that has ended.
                let last = self.last.get(&device).copied();
                let last = last.filter(|last| last.accesses.record() == Some(*address));
                let last = last.filter(|last| last.closed || self.is_gone(last));
                if let Some(last) = last {
                    return self.given_up(&last);
                }
                let detail = match *address {
                    0 => finding::status(*status),
                    address => format!("{}, at {address:#x}", finding::status(*status)),
                };
                let place =
                    wq.map_or_else(|| format!("dsa{device}"), |wq| format!("wq{device}.{wq}"));
                self.report(Finding {
                    class: Class::Field,
                    pid: None,
                    place,
                    descriptor: None,
                    other: None,
                    detail,
                });
            }
            _ => {}
        }
    }
}
