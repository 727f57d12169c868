//! The names that experiments and reference tables may use.

use dray_experiment::{Kind, Parameter, Vocabulary};
use dray_platform::{Distance, WaitMode};
use dray_tier::modelled::System as Migrator;
use dray_workload::Op;

use crate::Metric;
use crate::list::Layout;
use crate::migration::{System, Trace};
use crate::tenants::Sharing;
use crate::tiers::{Slow, WorkingSet};
use crate::vhost::Queues;
use crate::workload::{FaultMode, Mode, Placement, What};

/// The words of a parameter, each with what it means.
type Words<T, const N: usize> = [(&'static str, T); N];

/// The words alone.
const fn names<T: Copy, const N: usize>(words: &Words<T, N>) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = words[index].0;
        index += 1;
    }
    names
}

pub(crate) const KINDS: Words<What, 10> = [
    ("offload", What::Offload),
    ("software", What::Software),
    ("burst", What::Burst),
    ("overflow", What::Overflow),
    ("fault", What::Fault),
    ("break-even", What::BreakEven),
    ("migration", What::Migration),
    ("vhost", What::Vhost),
    ("migrate-call", What::MigrateCall),
    ("tiering", What::Tiering),
];
/// Whether the core copies packets.
pub(crate) const COPIERS: Words<bool, 2> = [("dsa", false), ("core", true)];
pub(crate) const QUEUES: Words<Queues, 3> = [
    ("own", Queues::Own),
    ("locked", Queues::Locked),
    ("shared", Queues::Shared),
];
pub(crate) const OPERATIONS: Words<Op, 9> = [
    ("noop", Op::Nop),
    ("memmove", Op::Move),
    ("fill", Op::Fill),
    ("nt_fill", Op::NtFill),
    ("compare", Op::Compare),
    ("compval", Op::ComparePattern),
    ("dualcast", Op::Dualcast),
    ("crc", Op::Crc),
    ("copy_crc", Op::CopyCrc),
];
pub(crate) const MODES: Words<Mode, 2> = [("sync", Mode::Sync), ("async", Mode::Async)];
/// Whether the work queue is a shared one.
pub(crate) const SUBMITS: Words<bool, 2> = [("movdir64b", false), ("enqcmd", true)];
pub(crate) const WAITS: Words<WaitMode, 3> = [
    ("poll", WaitMode::Poll),
    ("pause", WaitMode::Pause),
    ("umwait", WaitMode::Umwait),
];
/// Whether each MOVDIR64B goes to another line.
pub(crate) const PORTALS: Words<bool, 2> = [("fixed", false), ("rotating", true)];
pub(crate) const PLACEMENTS: Words<Placement, 3> = [
    ("dram", Placement::Dram),
    ("llc", Placement::Llc),
    ("l1", Placement::L1),
];
pub(crate) const NODES: Words<Distance, 3> = [
    ("local", Distance::Local),
    ("remote", Distance::Remote),
    ("cxl", Distance::Cxl),
];
pub(crate) const CORE_NODES: Words<Distance, 2> =
    [("local", Distance::Local), ("remote", Distance::Remote)];
pub(crate) const ALIGNMENTS: Words<u64, 3> = [("8", 8), ("32", 32), ("64", 64)];
pub(crate) const FLAGS: Words<bool, 2> = [("true", true), ("false", false)];
/// Whether software walks its buffers at random.
pub(crate) const ACCESSES: Words<bool, 2> = [("sequential", false), ("random", true)];
/// Whether software is the kernel's.
pub(crate) const CORES: Words<bool, 2> = [("user", false), ("kernel", true)];
pub(crate) const FAULTS: Words<FaultMode, 3> = [
    ("touch-write", FaultMode::Touch),
    ("touch-read", FaultMode::Touch),
    ("block", FaultMode::Block),
];
pub(crate) const SHARINGS: Words<Sharing, 3> = [
    ("queue", Sharing::Queue),
    ("engine", Sharing::Engine),
    ("device", Sharing::Device),
];
pub(crate) const LAYOUTS: Words<Layout, 3> = [
    ("contiguous", Layout::Contiguous),
    ("scattered", Layout::Scattered),
    ("mixed", Layout::Mixed),
];

pub(crate) const TRACES: Words<Trace, 5> = [
    ("demotion", Trace::Demotion),
    ("promotion", Trace::Promotion),
    ("compaction", Trace::Compaction),
    ("huge", Trace::Huge),
    ("all", Trace::All),
];
pub(crate) const SYSTEMS: Words<System, 5> = [
    ("core", System::Core),
    ("huge-pages", System::HugePages),
    ("threads", System::Threads),
    ("device", System::Device),
    ("every-list", System::EveryList),
];
pub(crate) const MIGRATORS: Words<Migrator, 6> = [
    ("kernel", Migrator::Kernel),
    ("huge-dsa", Migrator::HugeDsa),
    ("concurrent-threads", Migrator::ConcurrentThreads),
    ("concurrent-dsa", Migrator::ConcurrentDsa),
    ("user-core", Migrator::UserCore),
    ("user-dsa", Migrator::UserDsa),
];
pub(crate) const SLOW_TIERS: Words<Slow, 3> =
    [("dram", Slow::Dram), ("cxl", Slow::Cxl), ("pm", Slow::Pm)];
/// Whether pages go up.
pub(crate) const DIRECTIONS: Words<bool, 2> = [("demote", false), ("promote", true)];
pub(crate) const WORKING_SETS: Words<WorkingSet, 4> = [
    ("small", WorkingSet::Small),
    ("medium", WorkingSet::Medium),
    ("large", WorkingSet::Large),
    ("graph500", WorkingSet::Graph500),
];
/// Indices of the policies of `dray tier`.
pub(crate) const POLICIES: Words<usize, 4> = [("tpp", 0), ("memtis", 1), ("lru", 2), ("none", 3)];
/// Whether migration has come to rest.
pub(crate) const PHASES: Words<bool, 2> = [("in-progress", false), ("stable", true)];

const GIB: u64 = 1 << 30;

/// Every parameter that experiments and reference tables may name.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "kind",
        kind: Kind::Choice(&names(&KINDS)),
        help: "what is done: a stream of operations, or a special experiment",
    },
    Parameter {
        name: "op",
        kind: Kind::Choice(&names(&OPERATIONS)),
        help: "operation",
    },
    Parameter {
        name: "size",
        kind: Kind::Bytes {
            min: 1,
            max: 2 * GIB,
        },
        help: "bytes of one operation",
    },
    Parameter {
        name: "mode",
        kind: Kind::Choice(&names(&MODES)),
        help: "sync: one operation (or batch) outstanding; async: the queue kept full",
    },
    Parameter {
        name: "depth",
        kind: Kind::Count { min: 1, max: 1024 },
        help: "descriptors outstanding, batch descriptors counted once",
    },
    Parameter {
        name: "buffers",
        kind: Kind::Count { min: 1, max: 1024 },
        help: "operations outstanding, however many batch descriptors they make",
    },
    Parameter {
        name: "batch",
        kind: Kind::Count { min: 1, max: 1024 },
        help: "operations in a batch descriptor; 1: none",
    },
    Parameter {
        name: "submit",
        kind: Kind::Choice(&names(&SUBMITS)),
        help: "dedicated or shared work queue",
    },
    Parameter {
        name: "engines",
        kind: Kind::Count { min: 1, max: 64 },
        help: "engines of the group",
    },
    Parameter {
        name: "wq_size",
        kind: Kind::Count { min: 1, max: 1024 },
        help: "entries of the work queue",
    },
    Parameter {
        name: "wait",
        kind: Kind::Choice(&names(&WAITS)),
        help: "how the core waits for completions",
    },
    Parameter {
        name: "portal",
        kind: Kind::Choice(&names(&PORTALS)),
        help: "MOVDIR64B to one line of the portal page, or to another line each time",
    },
    Parameter {
        name: "placement",
        kind: Kind::Choice(&names(&PLACEMENTS)),
        help: "where the buffers are when they are read",
    },
    Parameter {
        name: "src_node",
        kind: Kind::Choice(&names(&NODES)),
        help: "memory of the source, as seen from the device",
    },
    Parameter {
        name: "dst_node",
        kind: Kind::Choice(&names(&NODES)),
        help: "memory of the destination, as seen from the device",
    },
    Parameter {
        name: "dst_align",
        kind: Kind::Choice(&names(&ALIGNMENTS)),
        help: "alignment of the destination in bytes",
    },
    Parameter {
        name: "cache_control",
        kind: Kind::Choice(&names(&FLAGS)),
        help: "write to the cache instead of memory",
    },
    Parameter {
        name: "access",
        kind: Kind::Choice(&names(&ACCESSES)),
        help: "order in which software walks its buffers",
    },
    Parameter {
        name: "core",
        kind: Kind::Choice(&names(&CORES)),
        help: "software of a program, or of the kernel, which copies without vector registers",
    },
    Parameter {
        name: "count",
        kind: Kind::Count {
            min: 1,
            max: 1 << 20,
        },
        help: "descriptors of a burst",
    },
    Parameter {
        name: "payload",
        kind: Kind::Bytes { min: 0, max: GIB },
        help: "bytes of each descriptor of an overflow burst",
    },
    Parameter {
        name: "fault",
        kind: Kind::Choice(&names(&FAULTS)),
        help: "who resolves page faults: software by a touch, or the device by a page request",
    },
    Parameter {
        name: "cores",
        kind: Kind::Count { min: 1, max: 64 },
        help: "cores that submit at the same time; fewer than devices: each feeds several",
    },
    Parameter {
        name: "core_node",
        kind: Kind::Choice(&names(&CORE_NODES)),
        help: "socket of the cores, as seen from the device",
    },
    Parameter {
        name: "devices",
        kind: Kind::Count { min: 1, max: 8 },
        help: "devices at work, those of socket 0 first",
    },
    Parameter {
        name: "read_buffers",
        kind: Kind::Count { min: 1, max: 1024 },
        help: "read buffers that the group may hold at most",
    },
    Parameter {
        name: "priority",
        kind: Kind::Count { min: 1, max: 15 },
        help: "priority of the work queue",
    },
    Parameter {
        name: "neighbour_size",
        kind: Kind::Bytes { min: 0, max: GIB },
        help: "bytes of each copy of a neighbour that keeps its queue full; 0: no neighbour",
    },
    Parameter {
        name: "neighbour_priority",
        kind: Kind::Count { min: 1, max: 15 },
        help: "priority of the neighbour's work queue",
    },
    Parameter {
        name: "sharing",
        kind: Kind::Choice(&names(&SHARINGS)),
        help: "what a neighbour shares: the work queue, the engines of the group, or the device alone",
    },
    Parameter {
        name: "pages",
        kind: Kind::Count {
            min: 1,
            max: 1 << 15,
        },
        help: "4 KiB pages of one list to copy",
    },
    Parameter {
        name: "channels",
        kind: Kind::Count { min: 1, max: 64 },
        help: "channels, each with a core of its own, that copy a share of a list each, in turn on the devices",
    },
    Parameter {
        name: "layout",
        kind: Kind::Choice(&names(&LAYOUTS)),
        help: "one range, each page for itself, or half of them in one range",
    },
    Parameter {
        name: "trace",
        kind: Kind::Choice(&names(&TRACES)),
        help: "migrations of a kernel that are replayed",
    },
    Parameter {
        name: "system",
        kind: Kind::Choice(&names(&SYSTEMS)),
        help: "who copies what is migrated: one core; the device huge pages alone; what is migrated together four threads, or the device; the device without a threshold",
    },
    Parameter {
        name: "order",
        kind: Kind::Count { min: 0, max: 9 },
        help: "order n: more than half of 2^n pages that were copied together, and at most 2^n",
    },
    Parameter {
        name: "copy_share",
        kind: Kind::Count { min: 1, max: 99 },
        help: "percent of the time in which one core migrates 4 KiB pages that is copying",
    },
    Parameter {
        name: "copier",
        kind: Kind::Choice(&names(&COPIERS)),
        help: "who copies the packets of a virtual switch",
    },
    Parameter {
        name: "queues",
        kind: Kind::Choice(&names(&QUEUES)),
        help: "work queues of a virtual switch: a dedicated one for each core, or one for all, under a lock or shared",
    },
    Parameter {
        name: "threshold",
        kind: Kind::Bytes { min: 0, max: GIB },
        help: "packets below this are copied by the core of a virtual switch",
    },
    Parameter {
        name: "migrator",
        kind: Kind::Choice(&names(&MIGRATORS)),
        help: "who migrates pages, and who copies them",
    },
    Parameter {
        name: "slow",
        kind: Kind::Choice(&names(&SLOW_TIERS)),
        help: "memory of the slow tier: DRAM of the other socket, CXL memory or persistent memory",
    },
    Parameter {
        name: "direction",
        kind: Kind::Choice(&names(&DIRECTIONS)),
        help: "from the fast tier to the slow one, or back",
    },
    Parameter {
        name: "huge_pages",
        kind: Kind::Count { min: 0, max: 1024 },
        help: "2 MiB pages of one call",
    },
    Parameter {
        name: "base_pages",
        kind: Kind::Count {
            min: 0,
            max: 1 << 20,
        },
        help: "4 KiB pages of one call",
    },
    Parameter {
        name: "folio",
        kind: Kind::Count { min: 1, max: 256 },
        help: "4 KiB pages of a folio, in which the base pages of one call come",
    },
    Parameter {
        name: "working_set",
        kind: Kind::Choice(&names(&WORKING_SETS)),
        help: "what a program on two tiers accesses",
    },
    Parameter {
        name: "policy",
        kind: Kind::Choice(&names(&POLICIES)),
        help: "which pages change tier",
    },
    Parameter {
        name: "second",
        kind: Kind::Count { min: 1, max: 600 },
        help: "seconds since the program started",
    },
    Parameter {
        name: "phase",
        kind: Kind::Choice(&names(&PHASES)),
        help: "the first seconds, while pages find their tier, or the last",
    },
];

/// Names that experiment files may use.
pub const VOCABULARY: Vocabulary = Vocabulary::new(PARAMETERS)
    .with_backends(&["model", "cpu"])
    .with_metrics(Metric::NAMES);

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of files and columns that have changed, before and after.
    const RENAMED: [(&str, &str); 4] = [
        ("beside_size", "neighbour_size"),
        ("beside_priority", "neighbour_priority"),
        ("beside_gbps", "neighbour_gbps"),
        ("beside_latency_us", "neighbour_latency_us"),
    ];

    #[test]
    fn renamed_columns_have_only_their_new_names() {
        let known = |name: &str| {
            VOCABULARY.check_name(name).is_ok() || VOCABULARY.metrics().contains(&name)
        };
        for (before, after) in RENAMED {
            assert!(!known(before) && known(after), "{before} {after}");
        }
    }
}
