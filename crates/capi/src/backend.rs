//! Movers of the backends: which there are, and why one cannot be opened.

use std::fmt::Write;

use dray::channels::{Member, local_node};
use dray::hw::{HwError, HwMover, HwOptions, QueueInfo, discover};
use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};

use crate::error::Refusal;
use crate::structure::word;
use crate::types::Numa;

/// Operations that a mover can have enqueued or in flight at most.
const MOST_SLOTS: u32 = 1 << 20;

/// Slots as asked for; 0 is the default.
pub(crate) fn slots(name: &str, asked: u32, default: usize) -> Result<usize, Refusal> {
    match asked {
        0 => Ok(default),
        1..=MOST_SLOTS => Ok(asked as usize),
        _ => Err(Refusal::new(
            libc::EINVAL,
            format_args!("{name} is {asked}: 1 to {MOST_SLOTS} are possible, 0 is {default}"),
        )),
    }
}

/// Why a work queue cannot be used, as a code.
pub(crate) fn refused(error: &HwError) -> Refusal {
    Refusal::of(code(error), error)
}

fn code(error: &HwError) -> libc::c_int {
    match error {
        HwError::NoQueues { .. }
        | HwError::NoSuchQueue { .. }
        | HwError::NotEnabled { .. }
        | HwError::WrongType { .. }
        | HwError::NoFile { .. } => libc::ENODEV,
        // A queue that is there, and refused, says more than one that is not enabled.
        HwError::NoneUsable { refused } => {
            let mut codes = refused.iter().map(|queue| code(&queue.reason));
            let other = codes.find(|code| *code != libc::ENODEV);
            other.unwrap_or(libc::ENODEV)
        }
        HwError::Open { source, .. } => match source.raw_os_error() {
            Some(code @ (libc::EBUSY | libc::EACCES | libc::EPERM | libc::ENODEV)) => code,
            _ => libc::EIO,
        },
        HwError::Slots { .. } => libc::EINVAL,
        _ => libc::EIO,
    }
}

/// Which work queues are taken, by their nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nodes {
    /// Those of this node come first.
    pub(crate) first: Option<u32>,
    /// No others are taken.
    only: bool,
}

impl Nodes {
    pub(crate) fn new(structure: &str, numa: u32, node: u32) -> Result<Nodes, Refusal> {
        let words = [Numa::Thread, Numa::First, Numa::Only];
        let numa = word(&format!("{structure}.numa"), numa, &words)?;
        if numa == Numa::Thread && node != 0 {
            return Err(Refusal::new(
                libc::EINVAL,
                format_args!("{structure}.numa_node is {node}, and numa does not use it"),
            ));
        }
        Ok(Nodes {
            first: match numa {
                Numa::Thread => local_node(),
                Numa::First | Numa::Only => Some(node),
            },
            only: numa == Numa::Only,
        })
    }

    fn is_first(self, queue: &QueueInfo) -> bool {
        match (queue.numa_node, self.first) {
            (Some(node), Some(first)) => node == first,
            // A machine without nodes; `only` asks for one that is known.
            _ => !self.only,
        }
    }
}

/// Work queues that were opened.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) members: Vec<Member<HwMover>>,
    /// A line for each that was tried.
    pub(crate) note: String,
    /// Why none was opened.
    pub(crate) error: Option<HwError>,
}

/// Opens work queues of this machine, at most so many: those that no other process has, or the one of
/// this name.
pub(crate) fn open_queues(
    name: Option<&str>,
    nodes: Nodes,
    most: usize,
    options: HwOptions,
) -> Queues {
    let mut opened = Queues::default();
    let mut queues = match discover() {
        Ok(queues) => queues,
        Err(error) => {
            opened.line(format_args!("{}", chain(&error)));
            opened.error = Some(error);
            return opened;
        }
    };
    if let Some(name) = name {
        let names: Vec<String> = queues.iter().map(QueueInfo::name).collect();
        queues.retain(|queue| queue.name() == name);
        if queues.is_empty() {
            let error = HwError::NoSuchQueue {
                name: name.to_owned(),
                available: names.join(", "),
            };
            opened.line(format_args!("{error}"));
            opened.error = Some(error);
            return opened;
        }
    }
    queues.sort_by_key(|queue| !nodes.is_first(queue));
    for queue in &queues {
        if opened.members.len() == most {
            break;
        }
        if nodes.only && !nodes.is_first(queue) {
            let node = queue
                .numa_node
                .map_or("unknown".to_owned(), |n| n.to_string());
            let wanted = nodes.first.unwrap_or_default();
            opened.line(format_args!(
                "{} is left out: its node is {node}, not {wanted}",
                queue.name()
            ));
            continue;
        }
        match HwMover::open(queue, options) {
            Ok(mover) => {
                opened.line(format_args!("{} is open", queue.name()));
                opened.members.push(Member {
                    mover,
                    numa_node: queue.numa_node,
                });
            }
            Err(error) => {
                opened.line(format_args!("{}: {}", queue.name(), chain(&error)));
                opened.error = Some(error);
            }
        }
    }
    opened
}

impl Queues {
    fn line(&mut self, text: std::fmt::Arguments) {
        // A string takes everything.
        let _ = writeln!(self.note, "{text}");
    }

    /// Why no queue was opened.
    pub(crate) fn refusal(&self) -> Refusal {
        match &self.error {
            Some(error) => refused(error),
            None => Refusal::new(libc::ENODEV, self.note.trim_end().replace('\n', "; ")),
        }
    }
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

/// A device as of Sapphire Rapids, with one engine and so many dedicated queues, up to 8.
pub(crate) fn virtual_device(queues: u16) -> DeviceConfig {
    let queue = |id| WorkQueueConfig {
        block_on_fault: true,
        max_batch_size: 1024,
        max_transfer_size: 1 << 31,
        ..WorkQueueConfig::new(id, WorkQueueMode::Dedicated, 128 / queues)
    };
    DeviceConfig {
        user_interrupts: false,
        ..DeviceConfig::sapphire_rapids(1, (0..queues).map(queue).collect())
    }
}
