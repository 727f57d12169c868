//! Connections and refused messages on stderr.

use dray_vhost::backend::Event;

use crate::complain::with_causes;

/// Lines printed a second, at most: a front end decides how many messages are refused.
const LINES: u64 = 20;

/// Prints events on stderr, so many a second.
#[derive(Debug)]
pub(super) struct EventLog {
    quiet: bool,
    /// Events in this second.
    events: u64,
}

impl EventLog {
    /// `quiet`: prints nothing.
    pub(super) fn new(quiet: bool) -> EventLog {
        EventLog { quiet, events: 0 }
    }

    /// Prints an event, unless there have been too many in this second.
    pub(super) fn print(&mut self, event: &Event) {
        if self.quiet {
            return;
        }
        self.events += 1;
        if self.events > LINES {
            return;
        }
        match event {
            Event::Connected => eprintln!("a front end has connected"),
            Event::Disconnected => eprintln!("a front end has left"),
            Event::Broken(error) => eprintln!("warning: connection ended: {}", with_causes(error)),
            Event::Refused(error) => eprintln!("warning: refused: {}", with_causes(error)),
            Event::Stopped { path, queue, fault } => {
                eprintln!(
                    "warning: {} queue {queue}: stopped: {fault}",
                    path.display()
                );
            }
        }
    }

    /// Begins the next second, and prints how many events the last one had too many.
    pub(super) fn end_second(&mut self) {
        if self.events > LINES {
            let more = self.events - LINES;
            eprintln!(
                "warning: {more} more connections, refused messages and stopped rings; the counters have all"
            );
        }
        self.events = 0;
    }
}
