//! What one point of an experiment does: from names and values to numbers.

use dray_experiment::{Point, VocabularyError};
use dray_platform::{Cache, Distance, WaitMode};
use dray_tier::modelled::{Pages, System as Migrator};
use dray_workload::{Buffers, LargerEach, Op, Operations, Shape};

use crate::migration::{Migration, System, Trace};
use crate::tenants::{Neighbour, Sharing, Tenants};
use crate::tiers::{Tiers, WorkingSet};
use crate::vhost::{Queues, Switching};
use crate::vocabulary::{self, VOCABULARY};
use crate::{FiguresError, Layout, List};

const KIB: u64 = 1024;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// A closed loop of operations on the device.
    Offload,
    /// The same on the core.
    Software,
    /// MOVDIR64B back to back.
    Burst,
    /// The same, counting what a full queue accepts.
    Overflow,
    /// Operations on pages that are not present.
    Fault,
    /// The size from which the device is worth it.
    BreakEven,
    /// The migrations of a trace.
    Migration,
    /// A core that forwards packets to a guest and from it.
    Vhost,
    /// One call that migrates pages.
    MigrateCall,
    /// A program on two tiers.
    Tiering,
}

/// How many operations are outstanding, where no number says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One.
    Sync,
    /// As many as the queue holds.
    Async,
}

/// Where buffers are when they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Memory.
    Dram,
    /// The last-level cache.
    Llc,
    /// The core's own cache.
    L1,
}

/// Who resolves page faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultMode {
    /// Software, by touching the page.
    Touch,
    /// The device, by a page request.
    Block,
}

/// The meaning of a point's word, or `default` if it has none.
///
/// # Errors
/// A word that is not among `words`.
fn word<T: Copy>(
    point: &Point,
    name: &str,
    words: &[(&str, T)],
    default: T,
) -> Result<T, FiguresError> {
    Ok(optional_word(point, name, words)?.unwrap_or(default))
}

fn optional_word<T: Copy>(
    point: &Point,
    name: &str,
    words: &[(&str, T)],
) -> Result<Option<T>, FiguresError> {
    let Some(value) = point.get(name) else {
        return Ok(None);
    };
    let text = value.to_string();
    match words.iter().find(|(known, _)| *known == text) {
        Some((_, meaning)) => Ok(Some(*meaning)),
        None => Err(FiguresError::Vocabulary(VocabularyError::NotAChoice {
            name: name.to_owned(),
            hint: dray_suggest::suggest(&text, words.iter().map(|(known, _)| *known)),
            value: text,
        })),
    }
}

/// One point, ready to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Workload {
    /// What is done.
    pub what: What,
    /// Operation.
    pub op: Op,
    /// Bytes of one operation.
    pub size: u32,
    /// Descriptors outstanding; `None`: the queue kept full.
    pub depth: Option<u32>,
    /// Operations in a batch descriptor.
    pub batch: u32,
    /// Shared queue, or dedicated; `None`: as the profile has it.
    pub shared: Option<bool>,
    /// Engines; `None`: as the profile has it.
    pub engines: Option<u16>,
    /// Queue entries; `None`: as the profile has it.
    pub wq_size: Option<u16>,
    /// How the core waits.
    pub wait: WaitMode,
    /// Each MOVDIR64B goes to another line of the portal page.
    pub portal_rotates: bool,
    /// Where buffers are.
    pub cache: Cache,
    /// Software finds its buffers in its own caches.
    pub hot: bool,
    /// Memory of source and destination.
    pub nodes: [Distance; 2],
    /// Alignment of the destination.
    pub dst_align: u64,
    /// Write to the cache.
    pub cache_control: bool,
    /// Software walks its buffers at random.
    pub random: bool,
    /// Software is the kernel's, which copies without vector registers.
    pub kernel: bool,
    /// Descriptors of a burst.
    pub count: u32,
    /// Bytes of each descriptor of an overflow burst.
    pub payload: u32,
    /// The device resolves page faults.
    pub block_on_fault: bool,
    /// Cores, devices and neighbour that work at the same time.
    pub tenants: Tenants,
    /// Read buffers that the group may hold; `None`: as the profile has it.
    pub read_buffers: Option<u16>,
    /// Pages that are copied together; they stand for size and batch.
    pub list: Option<List>,
    /// Whose migrations are copied by whom.
    pub(crate) migration: Option<Migration>,
    /// How a virtual switch copies its packets.
    pub(crate) switching: Option<Switching>,
    /// Migration between two tiers.
    pub tiers: Tiers,
}

impl Workload {
    /// Reads a point. Names that it lacks have the defaults of the published experiments: memory
    /// move, 4 KiB, one outstanding, local DRAM.
    ///
    /// # Errors
    /// A value that does not fit what it is for.
    pub fn from_point(point: &Point) -> Result<Workload, FiguresError> {
        for (name, value) in point.iter() {
            if name != "backend" {
                VOCABULARY.check(name, value)?;
            }
        }
        let number = |name, default| point.integer(name).unwrap_or(default);
        let optional = |name| point.integer(name).map(|n| n as u16);
        let op = word(point, "op", &vocabulary::OPERATIONS, Op::Move)?;
        let node = |name| word(point, name, &vocabulary::NODES, Distance::Local);
        let placement = word(point, "placement", &vocabulary::PLACEMENTS, Placement::Dram)?;
        let what = optional_word(point, "kind", &vocabulary::KINDS)?;
        let mode = match what {
            // A switch goes on while its packets are copied.
            Some(What::Vhost) => Mode::Async,
            _ => Mode::Sync,
        };
        let mode = word(point, "mode", &vocabulary::MODES, mode)?;
        let cache_control = match optional_word(point, "cache_control", &vocabulary::FLAGS)? {
            Some(stated) => stated,
            // The two fills differ in just this: allocating against non-allocating writes.
            None => op == Op::Fill && matches!(what, None | Some(What::Software)),
        };
        let tiers = Tiers {
            system: word(point, "migrator", &vocabulary::MIGRATORS, Migrator::Kernel)?,
            slow: optional_word(point, "slow", &vocabulary::SLOW_TIERS)?,
            promotes: word(point, "direction", &vocabulary::DIRECTIONS, false)?,
            pages: Pages {
                huge: number("huge_pages", 0),
                base: number("base_pages", 0),
            },
            folio: number("folio", 1),
            working_set: word(
                point,
                "working_set",
                &vocabulary::WORKING_SETS,
                WorkingSet::Large,
            )?,
            policy: word(point, "policy", &vocabulary::POLICIES, 0)?,
            second: point.integer("second"),
            stable: word(point, "phase", &vocabulary::PHASES, false)?,
        };
        let tenants = Tenants {
            cores: optional("cores"),
            core_node: word(point, "core_node", &vocabulary::CORE_NODES, Distance::Local)?,
            devices: number("devices", 1) as u16,
            priority: optional("priority").map(|p| p as u8),
            neighbour: match number("neighbour_size", 0) {
                0 => None,
                size => Some(Neighbour {
                    size: size as u32,
                    priority: optional("neighbour_priority").map(|p| p as u8),
                    sharing: word(point, "sharing", &vocabulary::SHARINGS, Sharing::Queue)?,
                }),
            },
        };
        let workload = Workload {
            what: what.unwrap_or(What::Offload),
            op,
            size: number("size", 4 * KIB) as u32,
            depth: match (point.integer("depth"), point.integer("buffers")) {
                (Some(depth), _) => Some(depth as u32),
                (None, Some(buffers)) => Some((buffers / number("batch", 1)).max(1) as u32),
                (None, None) => match mode {
                    Mode::Sync => Some(1),
                    Mode::Async => None,
                },
            },
            batch: number("batch", 1) as u32,
            shared: optional_word(point, "submit", &vocabulary::SUBMITS)?,
            engines: optional("engines"),
            wq_size: optional("wq_size"),
            wait: word(point, "wait", &vocabulary::WAITS, WaitMode::Poll)?,
            portal_rotates: word(point, "portal", &vocabulary::PORTALS, false)?,
            cache: match placement {
                Placement::Dram => Cache::Memory,
                Placement::Llc | Placement::L1 => Cache::Llc,
            },
            hot: placement == Placement::L1,
            nodes: match tiers.nodes() {
                Some(nodes) => nodes,
                None => [node("src_node")?, node("dst_node")?],
            },
            dst_align: word(point, "dst_align", &vocabulary::ALIGNMENTS, 64)?,
            cache_control,
            random: word(point, "access", &vocabulary::ACCESSES, false)?,
            kernel: word(point, "core", &vocabulary::CORES, false)?,
            count: number("count", 1) as u32,
            payload: number("payload", 0) as u32,
            block_on_fault: optional_word(point, "fault", &vocabulary::FAULTS)?
                == Some(FaultMode::Block),
            tenants,
            read_buffers: optional("read_buffers"),
            list: None,
            migration: match what {
                Some(What::Migration) => Some(Migration {
                    trace: word(point, "trace", &vocabulary::TRACES, Trace::Demotion)?,
                    system: word(point, "system", &vocabulary::SYSTEMS, System::Core)?,
                    copy_share: number("copy_share", 25) as u8,
                    order: point.integer("order").map(|order| order as u32),
                }),
                _ => None,
            },
            switching: match what {
                Some(What::Vhost) => Some(Switching {
                    by_core: word(point, "copier", &vocabulary::COPIERS, false)?,
                    threshold: number("threshold", 0) as u32,
                    queues: word(point, "queues", &vocabulary::QUEUES, Queues::Own)?,
                }),
                _ => None,
            },
            tiers,
        };
        let workload = match point.integer("pages") {
            Some(pages) => List {
                pages: pages as u32,
                layout: word(point, "layout", &vocabulary::LAYOUTS, Layout::Contiguous)?,
                channels: optional("channels"),
            }
            .fill(workload),
            None => workload,
        };
        workload.consistent()
    }

    /// The same, if its parts do not contradict each other.
    fn consistent(self) -> Result<Workload, FiguresError> {
        let contradiction = |first, second, reason| {
            Err(FiguresError::Contradiction {
                first,
                second,
                reason,
            })
        };
        match (self.what, self.op, self.list) {
            (What::Fault, Op::Nop, _) => {
                contradiction("kind fault", "op noop", "a NOOP touches no page")
            }
            (What::Fault, _, Some(_)) => contradiction(
                "kind fault",
                "pages",
                "faults are counted for single operations",
            ),
            (What::Vhost, op, _) if op != Op::Move => {
                contradiction("kind vhost", "op", "a switch copies its packets")
            }
            (What::Vhost, _, Some(_)) => {
                contradiction("kind vhost", "pages", "a switch copies packets of one size")
            }
            (What::BreakEven, _, Some(_)) => contradiction(
                "kind break-even",
                "pages",
                "a list has the size that its pages make",
            ),
            _ => Ok(self),
        }
    }

    /// Bytes of the largest operation.
    pub(crate) fn largest(&self) -> u64 {
        match self.list {
            Some(list) => u64::from(list.largest(self)),
            None => self.bytes(),
        }
    }

    /// Its operations, on these buffers.
    pub(crate) fn operations(&self, buffers: Buffers) -> Operations {
        Operations {
            cache_control: self.cache_control,
            // A NOOP has no operands, and the flag is reserved there.
            block_on_fault: self.block_on_fault && self.op != Op::Nop,
            larger: self.list.and_then(|list| {
                let (every, size) = (list.members(self).into(), list.largest(self));
                (list.layout == Layout::Mixed).then_some(LargerEach { every, size })
            }),
            ..Operations::new(Shape::new(self.op, self.size), buffers)
        }
    }

    /// Payload bytes of one operation.
    pub fn bytes(&self) -> u64 {
        match self.op {
            Op::Nop => 0,
            _ => u64::from(self.size),
        }
    }
}
