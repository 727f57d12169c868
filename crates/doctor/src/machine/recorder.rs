//! A machine that keeps what it answered.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::captured::{Captured, Index};
use super::{Machine, Reading, Stat, Unreadable};

/// Passes questions on, and keeps the answers: exactly what was looked at, and nothing else.
pub struct Recorder<'a> {
    machine: &'a dyn Machine,
    record: RefCell<Recorded>,
}

/// What was kept so far.
#[derive(Default)]
struct Recorded {
    captured: Captured,
    missing: BTreeSet<String>,
}

impl<'a> Recorder<'a> {
    /// Records what `machine` answers.
    #[must_use]
    pub fn new(machine: &'a dyn Machine) -> Self {
        Self {
            machine,
            record: RefCell::default(),
        }
    }

    /// What was looked at.
    #[must_use]
    pub fn finish(self, made_by: &str) -> Captured {
        let Recorded { captured, missing } = self.record.into_inner();
        Captured {
            index: Index {
                made_by: Some(made_by.to_owned()),
                missing: Some(missing.into_iter().collect()),
                ..captured.index
            },
            ..captured
        }
    }

    fn keep<T: Clone>(
        &self,
        path: &str,
        reading: Reading<T>,
        keep: impl FnOnce(&mut Captured, T),
    ) -> Reading<T> {
        let mut record = self.record.borrow_mut();
        match &reading {
            Ok(answer) => keep(&mut record.captured, answer.clone()),
            Err(Unreadable::Missing) => {
                record.missing.insert(path.to_owned());
            }
            Err(reason) => {
                let unreadable = &mut record.captured.index.unreadable;
                unreadable.insert(path.to_owned(), reason.clone());
            }
        }
        reading
    }
}

impl Machine for Recorder<'_> {
    fn read(&self, path: &str) -> Reading<Vec<u8>> {
        self.keep(path, self.machine.read(path), |captured, bytes| {
            captured.files.insert(path.to_owned(), bytes);
        })
    }

    fn list(&self, path: &str) -> Reading<Vec<String>> {
        self.keep(path, self.machine.list(path), |captured, names| {
            captured.index.directories.insert(path.to_owned(), names);
        })
    }

    fn link(&self, path: &str) -> Reading<String> {
        self.keep(path, self.machine.link(path), |captured, target| {
            captured.index.links.insert(path.to_owned(), target);
        })
    }

    fn stat(&self, path: &str) -> Reading<Stat> {
        self.keep(path, self.machine.stat(path), |captured, stat| {
            captured.index.nodes.insert(path.to_owned(), stat);
        })
    }
}
