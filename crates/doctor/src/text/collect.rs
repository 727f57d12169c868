//! The messages of a text, the same ones counted together.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::systems::{System, Systems};
use crate::catalogue::{Match, Span, begins_with_function, catalogue};
use crate::checks::CHECKS;
use crate::finding::{Fix, Severity, printable};
use crate::survey::kernel::Version;
use crate::survey::pci::is_listed;

/// A message that stands in a text, and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// How bad it is.
    pub severity: Severity,
    /// What it means.
    pub what: String,
    /// Who prints it.
    pub by: String,
    /// Which versions do.
    pub versions: String,
    /// Checks of `dray doctor` that find the cause on a live machine, the most likely first.
    pub checks: Vec<String>,
    /// What to do.
    pub fix: Fix,
    /// How many lines have it.
    pub count: u64,
    /// The first of them, and the first of each other system.
    pub seen: Vec<Seen>,
    /// What does not fit together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// A number of it says more.
    #[serde(skip)]
    pub(super) is_decoded: bool,
    /// Place of its entry in the catalogue.
    #[serde(skip)]
    pub(super) entry: usize,
    #[serde(skip)]
    pub(super) function: Option<String>,
    /// It follows from what stands before it.
    #[serde(skip)]
    pub(super) follows: bool,
    /// Devices of others cause it as well.
    #[serde(skip)]
    shared: bool,
}

/// A line of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Name of the text.
    pub text: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// The line.
    pub says: String,
    /// Place in the list of systems.
    pub system: usize,
    /// Kernels that print it.
    #[serde(skip)]
    pub(super) span: Option<Span>,
}

/// Messages that differ in more than these are counted together.
const MAX_FINDINGS: usize = 256;
/// Lines shown of one message.
const MAX_SEEN: usize = 4;

/// Messages by what they mean.
#[derive(Default)]
pub(super) struct Findings {
    all: Vec<Explained>,
    places: HashMap<(usize, String), usize>,
    /// Messages of more kinds than are kept.
    pub(super) more: u64,
    /// Functions that idxd names, without their domain.
    functions: BTreeSet<String>,
    /// A line names a DSA, the driver, or its tool.
    names_dsa: bool,
}

/// More functions than a machine has.
const MAX_FUNCTIONS: usize = 256;

impl Findings {
    /// Notes which functions are DSAs.
    pub(super) fn note_function(&mut self, plain: &str) {
        self.names_dsa |= is_listed(plain)
            || ["idxd", "accel-config"]
                .iter()
                .any(|name| plain.contains(name));
        let named = plain.split("idxd ").skip(1);
        // `6a:01.0 System peripheral [0880]: Intel Corporation Device [8086:0b25]`
        let named = named.chain(is_listed(plain).then_some(plain));
        for rest in named {
            let address = rest.split([' ', ']']).next().unwrap_or_default();
            let address = address.trim_end_matches(':');
            let digits = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
            let is_address =
                address.len() <= 12 && address.contains(':') && address.chars().all(digits);
            if is_address && self.functions.len() < MAX_FUNCTIONS {
                self.functions.insert(without_domain(address).to_owned());
            }
        }
    }

    /// Whether a line names a function that idxd drives.
    pub(super) fn names_function(&self, plain: &str) -> bool {
        self.functions
            .iter()
            .any(|function| plain.contains(function.as_str()))
    }

    pub(super) fn add(&mut self, found: &Match<'_>, severity: Severity, seen: Seen) {
        let decoded: Vec<&str> = found
            .decoded
            .iter()
            .map(|decoded| decoded.what.as_str())
            .collect();
        let decoded = decoded.join("; ");
        let function = found
            .function
            .as_deref()
            .map(|function| function.replace("0x", ""));
        let function = function.as_deref().map(without_domain);
        let key = (
            found.number,
            format!("{} {decoded}", function.unwrap_or_default()),
        );
        if let Some(&place) = self.places.get(&key) {
            let known = &mut self.all[place];
            known.count += 1;
            known.quote(&seen);
            let other = known
                .seen
                .iter()
                .all(|earlier| earlier.system != seen.system);
            if other && known.seen.len() < MAX_SEEN {
                known.seen.push(seen);
            }
            return;
        }
        if self.all.len() == MAX_FINDINGS {
            self.more += 1;
            return;
        }
        self.places.insert(key, self.all.len());
        let mut what = found.entry.what.clone();
        if !decoded.is_empty() {
            what = format!("{what}: {decoded}");
        }
        let advice = found.decoded.iter().map(|decoded| decoded.advice);
        let mut advice: Vec<&str> = advice.filter(|text| !text.is_empty()).collect();
        if advice.is_empty() || !found.entry.spare {
            advice.push(&found.entry.fix.advice);
        }
        self.all.push(Explained {
            severity,
            what: printable(&what),
            by: found.source.by.clone(),
            versions: found.span.map_or_else(|| found.source.of.clone(), versions),
            checks: found.entry.checks.clone(),
            fix: Fix {
                advice: advice.join(" "),
                commands: found.entry.fix.commands.clone(),
            },
            count: 1,
            seen: vec![seen],
            conflicts: Vec::new(),
            is_decoded: !decoded.is_empty(),
            entry: found.number,
            follows: found.entry.follows,
            shared: found.entry.shared,
            function: function.map(str::to_owned),
        });
    }

    /// All of them, what to fix first first.
    pub(super) fn finish(mut self, systems: &Systems) -> (Vec<Explained>, Vec<String>) {
        for finding in &mut self.all {
            finding.advise(systems);
            finding.of_any_device(self.names_dsa);
            finding.of_another_device(&self.functions);
            finding
                .conflicts
                .extend(finding.of_other_kernels(&systems.all));
        }
        let conflicts = contradictions(&self.all, systems);
        let place = |finding: &Explained| {
            let first = finding.checks.first();
            let place = CHECKS
                .iter()
                .position(|check| Some(check.id) == first.map(String::as_str));
            place.unwrap_or(CHECKS.len())
        };
        let causes: Vec<(Severity, Seen)> = self
            .all
            .iter()
            .filter(|finding| !finding.follows)
            .flat_map(|finding| {
                finding
                    .seen
                    .iter()
                    .map(|seen| (finding.severity, seen.clone()))
            })
            .collect();
        self.all.sort_by_cached_key(|finding| {
            (
                finding.severity,
                finding.follows_from(&causes),
                place(finding),
                !finding.is_decoded,
                finding.entry,
            )
        });
        (self.all, conflicts)
    }
}

impl Explained {
    /// Whether something as bad stands before it that it follows from.
    fn follows_from(&self, causes: &[(Severity, Seen)]) -> bool {
        let first = &self.seen[0];
        self.follows
            && causes.iter().any(|(severity, seen)| {
                *severity == self.severity
                    && seen.text == first.text
                    && seen.system == first.system
                    && seen.line <= first.line
            })
    }

    /// Quotes a line of a log rather than a heading or a sentence that has its words.
    fn quote(&mut self, seen: &Seen) {
        let is_log = |says: &str| {
            let timed = says.strip_prefix('[').map(str::trim_start);
            timed.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
                || begins_with_function(says)
        };
        let first = &mut self.seen[0];
        let is_heading = first.says.starts_with('#') && !seen.says.starts_with('#');
        if first.text == seen.text
            && first.system == seen.system
            && (is_heading || (is_log(&seen.says) && !is_log(&first.says)))
        {
            first.clone_from(seen);
        }
    }

    /// What a text says is done already need not be advised.
    fn advise(&mut self, systems: &Systems) {
        let system = self.seen[0].system;
        if let Some(advice) =
            catalogue().advice_given(self.entry, |fact| systems.says(system, fact))
        {
            advice.clone_into(&mut self.fix.advice);
        }
    }

    /// What any device may cause is no error of a DSA where none is named.
    fn of_any_device(&mut self, names_dsa: bool) {
        if self.shared && !names_dsa {
            self.severity = self.severity.max(Severity::Warning);
            self.what += " (no line names a DSA: is one there? lspci -nn | grep 8086:)";
        }
    }

    /// A fault of a graphics card is no matter of a DSA.
    fn of_another_device(&mut self, functions: &BTreeSet<String>) {
        let Some(function) = &self.function else {
            return;
        };
        match functions.is_empty() {
            true => {
                self.what = format!(
                    "{} (device {function}; is it a DSA? lspci -nn -s {function})",
                    self.what
                )
            }
            false if functions.contains(function) => {
                self.what = format!("{} (device {function})", self.what);
            }
            false => {
                self.severity = Severity::Note;
                self.what = format!(
                    "{} (device {function}, which is none of the DSAs of this text)",
                    self.what
                );
            }
        }
    }

    /// Kernels named in the text that do not print this.
    fn of_other_kernels(&self, systems: &[System]) -> Vec<String> {
        let mut conflicts = Vec::new();
        for seen in &self.seen {
            let Some(system) = systems.get(seen.system) else {
                continue;
            };
            if let Some((span, version)) = seen.span.zip(system.version())
                && span.excludes(version)
            {
                let release = system.kernel.as_deref().unwrap_or_default();
                conflicts.push(format!(
                    "line {} follows the start of Linux {}, which does not print this ({} does): the lines are of two kernels, or a distribution has ported the driver",
                    seen.line, printable(release), versions(span)
                ));
            }
        }
        conflicts
    }
}

/// Lines of one system, whose kernel is not named, that no kernel prints together.
fn contradictions(findings: &[Explained], systems: &Systems) -> Vec<String> {
    let mut conflicts = Vec::new();
    for (place, system) in systems.all.iter().enumerate() {
        let lines = findings.iter().flat_map(|finding| &finding.seen);
        let of = lines.filter(|seen| system.kernel.is_none() && seen.system == place);
        let spans: Vec<(Span, &Seen)> = of.filter_map(|seen| Some((seen.span?, seen))).collect();
        let old = spans.iter().min_by_key(|(span, _)| span.last);
        let new = spans.iter().max_by_key(|(span, _)| span.first);
        if let (Some((first, old)), Some((last, new))) = (old, new)
            && !first.meets(*last)
        {
            conflicts.push(format!(
                "lines of two kernels: line {} is printed by {}, line {} by {}",
                old.line,
                versions(*first),
                new.line,
                versions(*last)
            ));
        }
    }
    conflicts
}

fn versions(Span { first, last }: Span) -> String {
    let name = |version: Version| format!("{}.{}", version.0, version.1);
    match first == last {
        true => format!("Linux {}", name(first)),
        false => format!("Linux {} to {}", name(first), name(last)),
    }
}

fn without_domain(address: &str) -> &str {
    address.strip_prefix("0000:").unwrap_or(address)
}
