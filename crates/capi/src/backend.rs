//! Movers of the backends: which there are, and why one cannot be opened.

use std::fmt::Write;

use dray::Checked;
use dray::channels::{Member, local_node};
use dray::hw::{HwError, HwMover, HwOptions, Paths, QueueInfo, RefusedQueue};
use dray::virt::{Options, VirtualDevice};
use dray_device::{DeviceConfig, WorkQueueMode};

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

    fn take(self, queue: &QueueInfo) -> bool {
        !self.only || queue.numa_node == self.first
    }
}

/// Work queues that were opened.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) members: Vec<Member<HwMover>>,
    /// Their names.
    pub(crate) names: Vec<String>,
    /// A line for each that was tried, or cannot be.
    pub(crate) note: String,
    /// Some are of another node than the one that was asked for.
    left_out: bool,
    /// Why others were not.
    pub(crate) error: Option<HwError>,
}

/// Opens work queues of this machine, at most so many, the nearest first: those that no other process has,
/// or the one of this name.
pub(crate) fn open_queues(
    name: Option<&str>,
    nodes: Nodes,
    most: usize,
    options: HwOptions,
) -> Queues {
    let paths = Paths::from_environment();
    let found = match paths.survey() {
        Ok(found) => found,
        Err(error) => return Queues::none(error),
    };
    let (mut usable, mut refused, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (queue, found) in found {
        names.push(queue.clone());
        match found {
            _ if name.is_some_and(|name| name != queue) => {}
            Ok(info) => usable.push(info),
            Err(reason) => refused.push(RefusedQueue { queue, reason }),
        }
    }
    match name {
        _ if names.is_empty() => return Queues::none(HwError::NoQueues { path: paths.dev }),
        Some(name) if usable.is_empty() && refused.is_empty() => {
            return Queues::none(HwError::NoSuchQueue {
                name: name.to_owned(),
                available: names.join(", "),
            });
        }
        _ => paths.sort_by_distance(&mut usable, nodes.first),
    }
    let mut opened = Queues::default();
    // What could not be opened says more than what is not enabled.
    let not_enabled = std::mem::take(&mut refused);
    for info in &usable {
        let queue = info.name();
        if opened.members.len() == most {
            break;
        }
        if !nodes.take(info) {
            let node = info.numa_node.map(|node| node.to_string());
            let node = node.as_deref().unwrap_or("unknown");
            let wanted = nodes.first.unwrap_or_default();
            opened.left_out = true;
            opened.line(format_args!(
                "{queue} is left out: its node is {node}, not {wanted}"
            ));
            continue;
        }
        match HwMover::open(info, options) {
            Ok(mover) => {
                opened.line(format_args!("{queue} is open"));
                opened.names.push(queue);
                opened.members.push(Member {
                    mover,
                    numa_node: info.numa_node,
                });
            }
            Err(reason) => refused.push(RefusedQueue { queue, reason }),
        }
    }
    refused.extend(not_enabled);
    for RefusedQueue { queue, reason } in &refused {
        opened.line(format_args!("{queue}: {}", chain(reason)));
    }
    opened.error = match (name, refused.len()) {
        (_, 0) => None,
        (Some(_), _) => refused.pop().map(|queue| queue.reason),
        (None, _) => Some(HwError::NoneUsable { refused }),
    };
    opened
}

impl Queues {
    fn none(error: HwError) -> Queues {
        let mut queues = Queues::default();
        queues.line(format_args!("{}", chain(&error)));
        queues.error = Some(error);
        queues
    }

    fn line(&mut self, text: std::fmt::Arguments) {
        // A string takes everything.
        let _ = writeln!(self.note, "{text}");
    }

    /// Why no queue was opened.
    pub(crate) fn refusal(&self) -> Refusal {
        match &self.error {
            Some(error) if !self.left_out => refused(error),
            _ => Refusal::new(libc::ENODEV, self.note.trim_end().replace('\n', "; ")),
        }
    }
}

/// An error and its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

/// Starts a device with so many dedicated queues, up to 8. `checked`: it looks at addresses first.
pub(crate) fn virtual_device(queues: u16, checked: bool) -> Result<VirtualDevice, Refusal> {
    let config = DeviceConfig::embedded(WorkQueueMode::Dedicated, queues, 1 << 31);
    let device = match checked {
        false => VirtualDevice::start(config, Options::default()),
        true => VirtualDevice::start_in(config, Options::default(), Checked, |_| {}),
    };
    device.map_err(|error| Refusal::of(libc::EIO, &error))
}
