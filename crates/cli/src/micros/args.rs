//! What `dray micros` takes.

use clap::{ArgAction, ValueEnum};
use dray_bench::micros::opcode;
use dray_bench::real::DeviceChoice;
use dray_bench::{Op, parse_block_size};
use dray_experiment::parse_bytes;

const EXAMPLES: &str = "\
Examples (dsa_perf_micros's own):
  dray micros -n128 -s4k -j -c -f -i1000 -k5 -w0 -zF,F -o3      dedicated queue
  dray micros -n128 -s4k -j -f -i1000 -k5-8 -w1 -zF,F -o3       shared queue
  dray micros -n512 -b4 -s4k -j -f -i1000 -k5 -w1 -zF,F -o3     batches
  dray micros -n2 -w0 -o3 -zF,F -f -s1k -i100 -k1 -q1 -t4k      latency, misses
  dray micros -n1 -w0 -o3 -zF,F -f -s1k -i100 -k1 -q1           latency, hits
  dray micros -jcf -K[0-3]@dsa0,0 -K[4-7]@dsa2,0 -n32 -o3 -zF,F several devices

  dray micros -m -n128 -s4k -i25 -zF,F -o3                      this CPU
  dray micros --device hw:wq0.0 -n128 -s4k -j -i1000 -o3        this DSA
  dray micros -m -S0,1 --platform spr-2s -zF,F -o3              modelled core
  dray micros -n1 -q1 -s4k --format json                        as JSON

Misses and hits are those of address translation.
Without --config, -w0 is 1e1w-d (a device for each CPU) and -w1 is 1e1w-s.
Without -m all runs in modelled time. The result line is dsa_perf_micros's,
cycles are of a 2 GHz time stamp counter.
Exit codes: 0 ok, 1 failed, 2 usage or bad input, 3 there is no DSA (--device
hw).";

/// Flags are dsa_perf_micros's, with their meaning.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// DSA opcode or its name, such as 3 (memmove, copy) or 0x10 (crcgen).
    #[arg(short = 'o', value_name = "OPCODE", default_value = "3", value_parser = opcode)]
    pub(super) op: Op,
    /// Bytes of an operation; k, m, g.
    #[arg(short = 's', value_name = "SIZE", default_value = "4k", value_parser = parse_block_size)]
    pub(super) size: u32,
    /// Buffers, one operation each, in an iteration.
    #[arg(short = 'n', value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(super) buffers: u32,
    /// Operations in a batch.
    #[arg(short = 'b', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(super) batch: u32,
    /// Descriptors in flight.
    #[arg(short = 'q', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(super) queue_depth: Option<u32>,
    /// Iterations; -1: as many as -T seconds hold.
    #[arg(
        short = 'i',
        value_name = "N",
        default_value_t = 1000,
        allow_hyphen_values = true
    )]
    pub(super) iterations: i64,
    /// Seconds, with -i-1.
    #[arg(short = 'T', value_name = "S", default_value_t = 10)]
    pub(super) seconds: u32,
    /// Nothing: submission goes on across iterations, as with the tool since November 2022.
    #[arg(short = 'j')]
    pub(super) _continuous: bool,
    /// Distance of two buffers.
    #[arg(short = 't', value_name = "SIZE", value_parser = parse_bytes)]
    pub(super) stride: Option<u64>,
    /// Offset of each operand, in 4 KiB pages.
    #[arg(short = 'O', value_name = "B1,B2,B3")]
    pub(super) offsets: Option<String>,
    /// CPUs, such as 0-3,5.
    #[arg(short = 'k', value_name = "CPUS")]
    pub(super) cpus: Option<String>,
    /// CPUs and their work queue, such as [0-3]@dsa0,0; may be repeated.
    #[arg(short = 'K', value_name = "CPUS@DEV,WQ")]
    pub(super) cpu_queues: Vec<String>,
    /// Work queue: 0 dedicated, 1 shared.
    #[arg(short = 'w', value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(super) shared: Option<u8>,
    /// Memory node of each operand, -1 the CPU's; once for each CPU.
    #[arg(short = 'S', value_name = "N1,N2,N3", allow_hyphen_values = true)]
    pub(super) nodes: Vec<String>,
    /// How the CPU accesses each operand before: N, R or W.
    #[arg(short = 'y', value_name = "LIST")]
    pub(super) access: Option<String>,
    /// Where each operand is before: P first-level cache, D last-level cache, F memory.
    #[arg(short = 'z', value_name = "LIST")]
    pub(super) placement: Option<String>,
    /// Cache control: results go to the cache.
    #[arg(short = 'f')]
    pub(super) cache_control: bool,
    /// Descriptor flags to clear and to set, on every nth descriptor.
    #[arg(short = 'F', value_name = "CLEAR:SET:NTH")]
    pub(super) flags: Option<String>,
    /// Descriptors take their buffers in another order than that of the addresses.
    #[arg(short = 'a')]
    pub(super) shuffle: bool,
    /// Each descriptor goes to another line of the portal.
    #[arg(short = 'c')]
    pub(super) portal_rotates: bool,
    /// Hexadecimal: 80 pause, 100 umwait, 8000000 MOVDIR64B rate, 40000000 ENQCMD rate.
    ///
    /// With --device the rates are of NOOPs in bursts of half a queue, so that none is lost or refused; -i
    /// is how many.
    #[arg(short = 'x', value_name = "MASK", default_value = "0")]
    pub(super) misc: String,
    /// Count the preparation of descriptors as work of the CPU.
    #[arg(short = 'C')]
    pub(super) count_preparation: bool,
    /// Check the bytes: 0 or 1.
    #[arg(short = 'v', value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(super) verify: u8,
    /// Large pages: 0 for 2 MiB, 1 for 1 GiB; with -m and --device, the modelled device translates small ones.
    #[arg(short = 'l', value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(super) large_pages: Option<u8>,
    /// Words that differ, in percent, for delta records (-o 7 and 8).
    #[arg(short = 'D', value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(super) delta: u8,
    /// Block of DIF and DIX operations: 0 to 3 for 512, 520, 4096 and 4104 bytes.
    #[arg(short = 'e', value_name = "0-3", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(super) block: u8,
    /// Processes instead of threads: the same in modelled time, refused elsewhere.
    #[arg(short = 'P', hide = true)]
    pub(super) processes: bool,
    /// Accepted and ignored, as by the peer.
    #[arg(short = 'M', hide = true)]
    pub(super) ignored: bool,
    /// Accepted: warm-up is by rounds of the queue.
    #[arg(short = 'W', value_name = "N", hide = true)]
    pub(super) warm_up: Option<u32>,
    /// The CPU of this machine does the work: measured, not modelled.
    ///
    /// With --platform it is a core of that platform, modelled; and so it is, of spr-2s, where -S names a
    /// memory node that this machine has not.
    #[arg(short = 'm', action = ArgAction::SetTrue, conflicts_with = "config")]
    pub(super) cpu: bool,
    /// A device of this machine does the work: hw, the first free work queues, or hw:wqX.Y. Measured.
    #[arg(long, value_name = "hw[:wqX.Y]", value_parser = DeviceChoice::parse, conflicts_with_all = ["platform", "config", "cpu"])]
    pub(super) device: Option<DeviceChoice>,
    #[arg(short = 'Y', hide = true)]
    pub(super) drain: bool,
    #[arg(short = 'X', hide = true)]
    pub(super) fetch: Option<String>,
    #[arg(short = 'B', hide = true)]
    pub(super) mmio: Option<String>,
    #[arg(short = 'u', hide = true, num_args = 0..=1)]
    pub(super) user_driver: Option<Option<String>>,
    #[arg(short = 'R', hide = true)]
    pub(super) owners: Option<String>,
    #[arg(short = 'r', hide = true)]
    pub(super) window: Option<String>,

    /// Output: the result line, JSON or CSV.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Form::Line)]
    pub(super) format: Form,
    /// Machine to model: a built-in platform (spr-2s, emr-2s, dsa2-2s) or a platform file; without it
    /// spr-2s.
    #[arg(long, value_name = "FILE|NAME")]
    pub(super) platform: Option<String>,
    /// Device configuration: an accel-config file, or a name such as 4e1w-s.
    #[arg(long, value_name = "FILE|NAME")]
    pub(super) config: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// dsa_perf_micros's line.
    #[value(alias = "table")]
    Line,
    /// One JSON document.
    Json,
    /// One CSV table.
    Csv,
}

impl Args {
    /// Whether this machine may be measured.
    pub(crate) fn measures(&self) -> bool {
        self.device.is_some() || (self.cpu && self.platform.is_none())
    }
}
