//! What was found, with the places in programs, as far as it is not suppressed.

use std::collections::HashMap;
use std::sync::Arc;

use super::finding::{Class, Finding};
use super::flight::{Flight, Party};
use super::{Findings, Suppressions};
use crate::processes::Pid;
use crate::sites::{PlaceId, Site, Sites};

/// Findings of a class at a place that are said; more are counted.
const SAID: u64 = 20;
/// Findings of a class and a process that are said, of all places.
const SAID_OF_PROCESS: u64 = 200;

/// A finding whose places are numbers.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) class: Class,
    pub(super) pid: Option<Pid>,
    /// Work queue or device.
    pub(super) at: String,
    pub(super) party: Option<Party>,
    pub(super) other: Option<Party>,
    /// Where the program was that took memory away.
    pub(super) caller: Option<PlaceId>,
    pub(super) detail: String,
    pub(super) mend: &'static str,
}

impl Report {
    /// One about a descriptor.
    pub(super) fn of<K>(class: Class, flight: &Flight<K>, detail: String) -> Report {
        Report {
            class,
            pid: flight.pid,
            at: format!("wq{}.{}", flight.device, flight.wq),
            party: Some(flight.party()),
            other: None,
            caller: None,
            detail,
            mend: class.fix(),
        }
    }
}

/// The findings of a session.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    pub(super) sites: Sites,
    pub(super) findings: Findings,
    /// Those that were not said yet.
    pub(super) found: Vec<Finding>,
    pub(super) suppressions: Suppressions,
    resolved: HashMap<PlaceId, Option<Arc<Site>>>,
    said: HashMap<(Class, Option<Pid>, Option<PlaceId>), u64>,
    said_of_process: HashMap<(Class, Option<Pid>), u64>,
}

impl Reporter {
    pub(super) fn report(&mut self, report: Report) {
        let place = |party: &Option<Party>| party.as_ref().and_then(|party| party.place);
        let (own, other) = (place(&report.party), place(&report.other));
        let other = other.or(report.caller);
        if self.suppressions.has(report.class) {
            let sites = [own, other].map(|place| self.site(place));
            let sites: Vec<Option<&Site>> = sites.iter().map(|site| site.as_deref()).collect();
            if let Some(line) = self.suppressions.find(report.class, &sites) {
                *self.findings.suppressed.entry(line).or_default() += 1;
                return;
            }
        }
        *self.findings.counts.entry(report.class).or_default() += 1;
        let said = self
            .said
            .entry((report.class, report.pid, own))
            .or_default();
        let of_process = self
            .said_of_process
            .entry((report.class, report.pid))
            .or_default();
        if *said == SAID || *of_process == SAID_OF_PROCESS {
            return;
        }
        *said += 1;
        *of_process += 1;
        let [site, other_site] = [own, other].map(|place| self.site(place));
        self.found.push(Finding {
            class: report.class,
            pid: report.pid,
            place: report.at,
            descriptor: report.party.map(|party| party.descriptor),
            site: site.map(|site| (*site).clone()),
            other: report.other.map(|party| party.descriptor),
            other_site: other_site.map(|site| (*site).clone()),
            detail: report.detail,
            mend: report.mend,
        });
    }

    /// A place with its symbols, which are looked up once.
    fn site(&mut self, place: Option<PlaceId>) -> Option<Arc<Site>> {
        let place = place?;
        if !self.resolved.contains_key(&place) {
            let site = self.sites.resolve(place).map(Arc::new);
            self.resolved.insert(place, site);
        }
        self.resolved.get(&place)?.clone()
    }
}
