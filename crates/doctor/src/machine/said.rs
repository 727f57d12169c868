//! A machine, and what programs said on it.

use super::{MESSAGES, Machine, Reading, Stat};

/// A machine as it is, with messages of programs.
pub struct WithMessages<'a> {
    machine: &'a dyn Machine,
    messages: String,
}

impl<'a> WithMessages<'a> {
    /// Adds what programs said to a machine, such as a captured one.
    #[must_use]
    pub fn new(machine: &'a dyn Machine, messages: String) -> Self {
        Self { machine, messages }
    }
}

impl Machine for WithMessages<'_> {
    fn read(&self, path: &str) -> Reading<Vec<u8>> {
        match path {
            MESSAGES => Ok(self.messages.clone().into_bytes()),
            _ => self.machine.read(path),
        }
    }

    fn list(&self, path: &str) -> Reading<Vec<String>> {
        self.machine.list(path)
    }

    fn link(&self, path: &str) -> Reading<String> {
        self.machine.link(path)
    }

    fn stat(&self, path: &str) -> Reading<Stat> {
        self.machine.stat(path)
    }
}
