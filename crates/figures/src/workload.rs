//! What one point of an experiment does: from names and values to numbers.

use dray_experiment::Point;
use dray_platform::{Cache, Distance, WaitMode};
use dray_workload::{Buffers, LargerEach, Op, Operations, Shape};

use crate::company::{Company, Neighbour, Sharing};
use crate::vocabulary::VOCABULARY;
use crate::{FiguresError, Layout, List};

const KIB: u64 = 1024;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

/// One point, ready to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Descriptors of a burst.
    pub count: u32,
    /// Bytes of each descriptor of an overflow burst.
    pub payload: u32,
    /// The device resolves page faults.
    pub block_on_fault: bool,
    /// Who works at the same time, and on what.
    pub company: Company,
    /// Read buffers that the group may hold; `None`: as the profile has it.
    pub read_buffers: Option<u16>,
    /// Pages that are copied together; they stand for size and batch.
    pub list: Option<List>,
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
        let text = |name, default| point.text(name).unwrap_or(default);
        let number = |name, default| point.integer(name).unwrap_or(default);
        let optional = |name| point.integer(name).map(|n| n as u16);
        let node = |name| match text(name, "local") {
            "remote" => Distance::Remote,
            "cxl" => Distance::Cxl,
            _ => Distance::Local,
        };
        let sync = text("mode", "sync") == "sync";
        let op = match text("op", "memmove") {
            "noop" => Op::Nop,
            "fill" => Op::Fill,
            "nt_fill" => Op::NtFill,
            "compare" => Op::Compare,
            "compval" => Op::ComparePattern,
            "dualcast" => Op::Dualcast,
            "crc" => Op::Crc,
            "copy_crc" => Op::CopyCrc,
            _ => Op::Move,
        };
        let aligned = match point.get("dst_align").map(ToString::to_string).as_deref() {
            Some("8") => 8,
            Some("32") => 32,
            _ => 64,
        };
        let cache_control = match point.text("cache_control") {
            Some(stated) => stated == "true",
            // The two fills differ in just this: allocating against non-allocating writes.
            None => op == Op::Fill && matches!(point.text("kind"), None | Some("software")),
        };
        let company = Company {
            cores: optional("cores"),
            core_node: node("core_node"),
            devices: number("devices", 1) as u16,
            priority: optional("priority").map(|p| p as u8),
            beside: match number("beside_size", 0) {
                0 => None,
                size => Some(Neighbour {
                    size: size as u32,
                    priority: optional("beside_priority").map(|p| p as u8),
                    sharing: match text("sharing", "queue") {
                        "engine" => Sharing::Engine,
                        "device" => Sharing::Device,
                        _ => Sharing::Queue,
                    },
                }),
            },
        };
        let workload = Workload {
            what: match text("kind", "offload") {
                "software" => What::Software,
                "burst" => What::Burst,
                "overflow" => What::Overflow,
                "fault" => What::Fault,
                "break-even" => What::BreakEven,
                _ => What::Offload,
            },
            op,
            size: number("size", 4 * KIB) as u32,
            depth: match (point.integer("depth"), point.integer("buffers")) {
                (Some(depth), _) => Some(depth as u32),
                (None, Some(buffers)) => Some((buffers / number("batch", 1)).max(1) as u32),
                (None, None) if sync => Some(1),
                (None, None) => None,
            },
            batch: number("batch", 1) as u32,
            shared: point.text("submit").map(|s| s == "enqcmd"),
            engines: optional("engines"),
            wq_size: optional("wq_size"),
            wait: match text("wait", "poll") {
                "pause" => WaitMode::Pause,
                "umwait" => WaitMode::Umwait,
                _ => WaitMode::Poll,
            },
            portal_rotates: text("portal", "fixed") == "rotating",
            cache: match text("placement", "dram") {
                "dram" => Cache::Memory,
                _ => Cache::Llc,
            },
            hot: text("placement", "dram") == "l1",
            nodes: [node("src_node"), node("dst_node")],
            dst_align: aligned,
            cache_control,
            random: text("access", "sequential") == "random",
            count: number("count", 1) as u32,
            payload: number("payload", 0) as u32,
            block_on_fault: text("fault", "") == "block",
            company,
            read_buffers: optional("read_buffers"),
            list: None,
        };
        Ok(match point.integer("pages") {
            Some(pages) => List::new(pages as u32, text("layout", "contiguous")).fill(workload),
            None => workload,
        })
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
            block_on_fault: self.block_on_fault,
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
