//! The names that experiments and reference tables may use.

use dray_experiment::{Kind, Parameter, Vocabulary};

const GIB: u64 = 1 << 30;

/// Every parameter that experiments and reference tables may name.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "kind",
        kind: Kind::Choice(&[
            "offload",
            "software",
            "burst",
            "overflow",
            "fault",
            "break-even",
        ]),
        help: "what is done: a stream of operations, or a special experiment",
    },
    Parameter {
        name: "op",
        kind: Kind::Choice(OPERATIONS),
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
        kind: Kind::Choice(&["sync", "async"]),
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
        kind: Kind::Choice(&["movdir64b", "enqcmd"]),
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
        kind: Kind::Choice(&["poll", "pause", "umwait"]),
        help: "how the core waits for completions",
    },
    Parameter {
        name: "portal",
        kind: Kind::Choice(&["fixed", "rotating"]),
        help: "MOVDIR64B to one line of the portal page, or to another line each time",
    },
    Parameter {
        name: "placement",
        kind: Kind::Choice(&["dram", "llc", "l1"]),
        help: "where the buffers are when they are read",
    },
    Parameter {
        name: "src_node",
        kind: Kind::Choice(NODES),
        help: "memory of the source, as seen from the device",
    },
    Parameter {
        name: "dst_node",
        kind: Kind::Choice(NODES),
        help: "memory of the destination, as seen from the device",
    },
    Parameter {
        name: "dst_align",
        kind: Kind::Choice(&["8", "32", "64"]),
        help: "alignment of the destination in bytes",
    },
    Parameter {
        name: "cache_control",
        kind: Kind::Choice(&["true", "false"]),
        help: "write to the cache instead of memory",
    },
    Parameter {
        name: "access",
        kind: Kind::Choice(&["sequential", "random"]),
        help: "order in which software walks its buffers",
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
        kind: Kind::Choice(&["touch-write", "touch-read", "block"]),
        help: "who resolves page faults: software by a touch, or the device by a page request",
    },
    Parameter {
        name: "cores",
        kind: Kind::Count { min: 1, max: 64 },
        help: "cores that submit at the same time",
    },
    Parameter {
        name: "core_node",
        kind: Kind::Choice(&["local", "remote"]),
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
        name: "beside_size",
        kind: Kind::Bytes { min: 0, max: GIB },
        help: "bytes of each copy of a neighbour that keeps its queue full; 0: nobody beside",
    },
    Parameter {
        name: "beside_priority",
        kind: Kind::Count { min: 1, max: 15 },
        help: "priority of the neighbour's work queue",
    },
    Parameter {
        name: "sharing",
        kind: Kind::Choice(&["queue", "engine", "device"]),
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
        name: "layout",
        kind: Kind::Choice(&["contiguous", "scattered", "mixed"]),
        help: "one range, each page for itself, or half of them in one range",
    },
];

const OPERATIONS: &[&str] = &[
    "noop", "memmove", "fill", "nt_fill", "compare", "compval", "dualcast", "crc", "copy_crc",
];

const NODES: &[&str] = &["local", "remote", "cxl"];

/// What is measured of a point.
const METRICS: &[&str] = &[
    "throughput_gbps",
    "latency_ns",
    "period_ns",
    "prepare_ns",
    "submit_ns",
    "wait_ns",
    "busy_share",
    "free_share",
    "rate_mops",
    "retry_share",
    "burst_ns",
    "accepted",
    "fault_page_ns",
    "beside_gbps",
    "beside_latency_us",
    "list_ns",
    "break_even_bytes",
    "core_break_even_bytes",
];

/// Names that experiment files may use.
pub const VOCABULARY: Vocabulary = Vocabulary::new(PARAMETERS)
    .with_backends(&["model", "cpu"])
    .with_metrics(METRICS);
