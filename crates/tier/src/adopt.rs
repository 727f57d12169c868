//! Which memory of a process is managed: what `/proc/self/maps` shows as private anonymous memory,
//! but for dray's own.

use crate::mechanism::Engine;
use crate::sys::maps;

/// Mappings smaller than this are left alone: there is little to gain.
const LEAST: u64 = 256 << 10;

/// Finds memory to manage.
#[derive(Debug, Default)]
pub struct Adopter {
    text: Vec<u8>,
    before: Vec<(u64, u64)>,
    after: Vec<(u64, u64)>,
}

impl Adopter {
    /// Registers what is new; how many regions the engine refused. `own` is never managed.
    pub fn step(&mut self, engine: &Engine, own: &[(u64, u64)]) -> u64 {
        let mut refused = 0;
        read(&mut self.text, &mut self.before);
        for index in 0..self.before.len() {
            let (start, end) = self.before[index];
            let ours = own
                .iter()
                .any(|(first, last)| *first < end && start < *last);
            if ours || end - start < LEAST || engine.manages(start, end) {
                continue;
            }
            if engine.register(start, end).is_err() {
                refused += 1;
                continue;
            }
            // Between the look and the registration the program may have made another mapping of
            // it, which would now be in two parts, and mremap(2) would refuse it.
            read(&mut self.text, &mut self.after);
            if !self.same_around(start, end) {
                engine.unregister(start, end);
            }
        }
        refused
    }

    /// Whether a range is whole, and what lies against it was there before.
    fn same_around(&self, start: u64, end: u64) -> bool {
        let whole = self
            .after
            .iter()
            .any(|(first, last)| *first <= start && end <= *last);
        let starts_here = |(first, _): &&(u64, u64)| *first == end;
        let ends_here = |(_, last): &&(u64, u64)| *last == start;
        let new_behind = self.after.iter().any(|range| starts_here(&range))
            && !self.before.iter().any(|range| starts_here(&range));
        let new_ahead = self.after.iter().any(|range| ends_here(&range))
            && !self.before.iter().any(|range| ends_here(&range));
        whole && !new_behind && !new_ahead
    }
}

fn read(text: &mut Vec<u8>, ranges: &mut Vec<(u64, u64)>) {
    ranges.clear();
    if maps::read("/proc/self/maps", text).is_ok() {
        let text = String::from_utf8_lossy(text);
        ranges.extend(maps::anonymous(&text));
    }
}
