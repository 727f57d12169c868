//! What devices report, entered in the books.

use std::time::Instant;

use dray_realtime::{Event, Origin, Watch as Device};
use dray_spec::Status;

use super::books::Books;
use super::finding::{self, Class};
use super::flight::flight;
use super::reporter::Report;
use crate::processes::Pid;

/// Bytes of a stack that callers are found in.
const STACK: usize = 16 << 10;

impl Books {
    pub(super) fn take_in(
        &mut self,
        device: u32,
        event: &Event,
        owner: impl FnOnce(u32) -> Option<Pid>,
    ) {
        let before = self.watches.time;
        self.enter(device, event, owner);
        self.budget.spend(self.watches.time - before);
    }

    fn enter(&mut self, device: u32, event: &Event, owner: impl FnOnce(u32) -> Option<Pid>) {
        match event {
            Event::Accepted {
                id,
                wq,
                pasid,
                descriptor,
                origin,
            } => {
                let mut flight = flight(owner(*pasid), (device, *wq), descriptor, None);
                flight.pasid = *pasid;
                flight.calls = self.calls.get(&device).map_or(0, Device::noted_calls);
                let observed = self.budget.admits(flight.pid, origin.as_ref());
                if observed {
                    let submitters = self.submitters.entry(device).or_default();
                    submitters.extend(flight.pid);
                }
                // Its program has ended before the device came to it.
                let known = origin.and_then(|origin| origin.record);
                let status = known.or_else(|| self.record_status(&flight));
                if (observed || status.is_none()) && self.is_gone(&flight) {
                    self.given_up(&flight);
                    flight.closed = true;
                }
                // Memory first: the program waits but a moment.
                let stack = self.stack(*pasid, origin.as_ref(), observed);
                let list = self.look((device, *id), &flight, observed);
                if let (Some(pid), Some(origin)) = (flight.pid, origin) {
                    let since = Instant::now();
                    flight.place = self.reporter.sites.enter(pid, origin, &stack);
                    self.time += since.elapsed();
                }
                self.accept((device, *id), flight, &list, status);
            }
            Event::Started {
                id,
                batch: Some(batch),
                descriptor,
                ..
            } => {
                let Some(of) = self.flights.get((device, *batch)).copied() else {
                    return;
                };
                let batch = (device, *batch);
                let member = of.member(batch, descriptor);
                self.start_member((device, *id), batch, member);
            }
            Event::Started {
                id, batch: None, ..
            } => self.start((device, *id)),
            Event::Executed { id } => self.executed((device, *id)),
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
                self.reporter.report(Report {
                    class: Class::Field,
                    pid: None,
                    at: place,
                    party: None,
                    other: None,
                    caller: None,
                    detail,
                    mend: finding::mend(*status),
                });
            }
            _ => {}
        }
    }

    /// The stack of who submits, if the descriptor is looked at closely: its program waits meanwhile.
    fn stack(&self, pasid: u32, origin: Option<&Origin>, observed: bool) -> Vec<u8> {
        match origin.filter(|origin| observed && origin.stack != 0) {
            Some(origin) => self.spaces.read_up_to(pasid, origin.stack, STACK),
            None => Vec::new(),
        }
    }
}
