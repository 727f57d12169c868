//! Which rules the specification has, and which of them the table has.

use std::fmt;

use super::Rule;

/// Where a rule of the specification is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In the table: one descriptor shows it.
    Descriptor,
    /// In the tests of the device: it needs more than one descriptor, or time.
    Sequence,
    /// In the tests of the registers: it needs a command, an interrupt table or the event log.
    Registers,
    /// Nowhere: the virtual device has no such error.
    Absent,
    /// Nowhere: version 3 is not there.
    Version3,
}

/// A rule of the specification.
#[derive(Debug, Clone, Copy)]
pub struct Clause {
    /// Section or table.
    pub section: &'static str,
    /// What it says, in short.
    pub text: &'static str,
    /// Where it is tried.
    pub scope: Scope,
    /// How the names of the table's rules for it begin.
    rules: &'static [&'static str],
}

/// What the table has of the specification.
#[derive(Debug, Clone)]
pub struct Coverage {
    /// Rules of the specification that the table has.
    pub covered: usize,
    /// Rules that are tried elsewhere or nowhere, by scope.
    pub elsewhere: Vec<(Scope, usize)>,
    /// Rules that the table should have.
    pub missing: Vec<&'static str>,
    /// Rules of the table that are no rules of the specification.
    pub strangers: Vec<String>,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elsewhere: usize = self.elsewhere.iter().map(|(_, count)| count).sum();
        let all = self.covered + self.missing.len() + elsewhere;
        write!(
            f,
            "rules covered: {} of {all} in the specification",
            self.covered
        )?;
        for (scope, count) in &self.elsewhere {
            write!(f, "; {scope}: {count}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Descriptor => "in the table",
            Scope::Sequence => "in tests of sequences",
            Scope::Registers => "in tests of registers",
            Scope::Absent => "errors that a virtual device does not have",
            Scope::Version3 => "of version 3",
        })
    }
}

/// Every rule of the specification that this crate knows of, in its order.
pub fn clauses() -> &'static [Clause] {
    CLAUSES
}

/// Compares the table with the specification.
pub fn coverage(rules: &[Rule]) -> Coverage {
    let (mut covered, mut missing, mut strangers) = (0, Vec::new(), Vec::new());
    for clause in CLAUSES.iter().filter(|c| c.scope == Scope::Descriptor) {
        let has = |prefix: &&str| rules.iter().any(|rule| rule.name.starts_with(*prefix));
        match !clause.rules.is_empty() && clause.rules.iter().all(has) {
            true => covered += 1,
            false => missing.push(clause.text),
        }
    }
    for rule in rules {
        let mut prefixes = CLAUSES.iter().flat_map(|clause| clause.rules);
        if !prefixes.any(|prefix| rule.name.starts_with(prefix)) {
            strangers.push(rule.name.clone());
        }
    }
    let others = [
        Scope::Sequence,
        Scope::Registers,
        Scope::Absent,
        Scope::Version3,
    ];
    let count = |scope| {
        CLAUSES
            .iter()
            .filter(|clause| clause.scope == scope)
            .count()
    };
    Coverage {
        covered,
        elsewhere: others.map(|scope| (scope, count(scope))).to_vec(),
        missing,
        strangers,
    }
}

const fn clause(
    section: &'static str,
    text: &'static str,
    rules: &'static [&'static str],
) -> Clause {
    Clause {
        section,
        text,
        scope: Scope::Descriptor,
        rules,
    }
}

const fn other(scope: Scope, section: &'static str, text: &'static str) -> Clause {
    Clause {
        section,
        text,
        scope,
        rules: &[],
    }
}

mod list;
use list::CLAUSES;
