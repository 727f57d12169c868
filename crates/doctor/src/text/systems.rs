//! Which machine and kernel a line is of, where a text holds several.

use std::collections::HashMap;

use serde::Serialize;

use super::prefix::{Prefix, Weight, kernel};
use crate::catalogue::upstream;
use crate::survey::kernel::Version;

/// A kernel's run on a host, as far as a text shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct System {
    /// Name of the host, if lines have it.
    pub host: Option<String>,
    /// Release of the kernel, if a line names it.
    pub kernel: Option<String>,
    /// Its first line in the text.
    pub first_line: u64,
    /// What is said of it that advice depends on.
    #[serde(skip)]
    pub(super) facts: Vec<&'static str>,
    /// Its command line was read.
    #[serde(skip)]
    told: bool,
}

impl System {
    /// None where a distribution may have ported what its kernel prints.
    pub(super) fn version(&self) -> Option<Version> {
        upstream(self.kernel.as_deref()?)
    }
}

/// More runs than anybody mails.
const MAX_SYSTEMS: usize = 64;
/// Processors print slightly out of order.
const SLACK_SECONDS: f64 = 10.0;

struct Run {
    place: usize,
    boot: Option<String>,
    seconds: f64,
    /// A line was read of it whose time is known.
    lines: u64,
}

/// The systems of a text.
#[derive(Default)]
pub(super) struct Systems {
    pub(super) all: Vec<System>,
    current: HashMap<Option<String>, Run>,
}

impl Systems {
    /// The place of the system that a line is of. `asked`: the line before asks for the kernel.
    pub(super) fn of(
        &mut self,
        number: u64,
        prefix: &Prefix,
        boot: Option<&str>,
        text: &str,
        asked: bool,
    ) -> usize {
        let named = kernel(text, prefix.starts, asked);
        let run = match self.current.get_mut(&prefix.host) {
            Some(run) => run,
            None => return self.begin(number, prefix, boot, named.map(|named| named.release)),
        };
        let seconds = prefix.seconds.unwrap_or(run.seconds);
        let other_boot = boot.is_some() && run.boot.is_some() && boot != run.boot.as_deref();
        let earlier = seconds + SLACK_SECONDS < run.seconds;
        let known = self.all[run.place].kernel.as_deref();
        let other_kernel = named.as_ref().is_some_and(|named| match named.weight {
            Weight::Start => known.is_some() || run.lines > 3,
            Weight::Said => known.is_some_and(|known| known != named.release),
            Weight::Hint => false,
        });
        if other_boot || earlier || other_kernel {
            return self.begin(number, prefix, boot, named.map(|named| named.release));
        }
        run.seconds = seconds;
        run.lines += 1;
        let is_hint = named
            .as_ref()
            .is_some_and(|named| named.weight == Weight::Hint);
        if let Some(named) = named.filter(|_| !is_hint || known.is_none()) {
            self.all[run.place].kernel = Some(named.release.to_owned());
        }
        run.place
    }

    fn begin(
        &mut self,
        number: u64,
        prefix: &Prefix,
        boot: Option<&str>,
        kernel: Option<&str>,
    ) -> usize {
        if self.all.len() == MAX_SYSTEMS {
            return MAX_SYSTEMS - 1;
        }
        self.all.push(System {
            host: prefix.host.clone(),
            kernel: kernel.map(str::to_owned),
            first_line: number,
            facts: Vec::new(),
            told: false,
        });
        let place = self.all.len() - 1;
        let run = Run {
            place,
            boot: boot.map(str::to_owned),
            seconds: prefix.seconds.unwrap_or(0.0),
            lines: 1,
        };
        self.current.insert(prefix.host.clone(), run);
        place
    }

    /// Notes what a command line says of a system.
    pub(super) fn tell(&mut self, system: usize, facts: Vec<&'static str>) {
        self.all[system].told = true;
        self.note(system, facts);
    }

    /// Notes what a line says of a system.
    pub(super) fn note(&mut self, system: usize, facts: Vec<&'static str>) {
        let known = &mut self.all[system].facts;
        for fact in facts {
            if !known.contains(&fact) {
                known.push(fact);
            }
        }
    }

    /// Whether a text says something of a system, or, if it has no command line of that one, of one
    /// that may be of the same host.
    pub(super) fn says(&self, system: usize, fact: &str) -> bool {
        let this = &self.all[system];
        let may_be_this =
            |other: &&System| !this.told && (other.host.is_none() || other.host == this.host);
        let mut others = self.all.iter().filter(may_be_this);
        this.facts.contains(&fact) || others.any(|other| other.facts.contains(&fact))
    }

    /// What follows is another text.
    pub(super) fn next_text(&mut self) {
        self.current.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::prefix::prefix;
    use super::*;

    fn kernels(lines: &[&str]) -> Vec<Option<String>> {
        let mut systems = Systems::default();
        for (number, line) in (1..).zip(lines) {
            systems.of(number, &prefix(line), None, line, false);
        }
        systems
            .all
            .into_iter()
            .map(|system| system.kernel)
            .collect()
    }

    #[test]
    fn systems_are_told_apart_by_kernel_time_and_host() {
        let some = |release: &str| Some(release.to_owned());
        let one = [
            "[    0.000000] Linux version 6.8.0 (x)",
            "[    0.9] a",
            "[    0.8] b",
        ];
        assert_eq!(kernels(&one), [some("6.8.0")]);
        let two = [
            one[0],
            "[  90.0] a",
            "[    0.0] Linux version 5.15.0 (x)",
            "[ 9.0] b",
        ];
        assert_eq!(kernels(&two), [some("6.8.0"), some("5.15.0")]);
        assert_eq!(kernels(&["[ 100.0] a", "[ 1.0] b"]), [None, None]);
        let hosts = [
            "Nov 20 10:00:01 a kernel: x",
            "Nov 20 10:00:01 b kernel: x",
            "Nov 20 10:00:02 a kernel: y",
        ];
        assert_eq!(kernels(&hosts).len(), 2);
        assert_eq!(
            kernels(&["idxd: x", "Linux h 6.1.0-9-amd64 #1 SMP"]),
            [some("6.1.0-9-amd64")]
        );
    }

    #[test]
    fn a_text_of_ever_new_systems_is_bounded() {
        let mut systems = Systems::default();
        for number in 0..10_000 {
            let line = format!("Nov 20 10:00:01 host{number} kernel: x");
            systems.of(number, &prefix(&line), None, &line, false);
        }
        assert_eq!(systems.all.len(), MAX_SYSTEMS);
        assert_eq!(systems.current.len(), MAX_SYSTEMS);
    }
}
