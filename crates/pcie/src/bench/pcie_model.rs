//! Ceilings of links against pcie-bench's pcie-model: no latency, no limit of tags.

use super::check::{Check, CheckRow};
use crate::LinkRate;
use crate::PcieError;
use crate::Topology;
use crate::sim::{Operation, Scheduling, Simulation, SimulationOptions, Stream};

/// Payload ceilings of 4 KiB operations in GB/s as pcie-model prints them: generation, width, MPS,
/// write, read, read with completions of 64 B, each direction of both at once.
const CEILINGS: [(u32, u32, u32, [f64; 4]); 27] = include!("pcie_model.in");

/// 2^30 bytes in GB.
const GIB_IN_GB: f64 = 1.073_741_824;

/// One row per generation, width, MPS and kind of traffic.
pub(super) fn check() -> Result<Check, PcieError> {
    let mut rows = Vec::new();
    for (generation, width, mps, [write, read, read_64, both]) in CEILINGS {
        let results = [
            (
                "write",
                write,
                run(generation, width, mps, 0, &[Operation::D2h])?[0],
            ),
            (
                "read",
                read,
                run(generation, width, mps, 0, &[Operation::H2d])?[0],
            ),
            (
                "read in 64 B",
                read_64,
                run(generation, width, mps, 64, &[Operation::H2d])?[0],
            ),
            (
                "both at once",
                both,
                run(generation, width, mps, 0, &[Operation::D2h, Operation::H2d])?[0],
            ),
        ];
        for (kind, target, result) in results {
            let name = format!("Gen{generation} x{width} MPS {mps}, {kind}");
            rows.push(CheckRow::new(name, "GB/s", target, result * GIB_IN_GB, 1.0));
        }
    }
    Ok(Check {
        number: 20,
        title: "payload ceilings of a link".to_owned(),
        source: "pcie-bench/pcie-model, 4 KiB operations, MRRS 512, 64-bit addresses; Neugebauer et al., SIGCOMM 2018".to_owned(),
        parameters: "one link without latency, at the rate that pcie-model gives it; 256 tags; reads alone ask for 1024 B where the MPS is 1024; an engine of 10 GHz and 4096 B a clock; infinite credits".to_owned(),
        rows,
    })
}

fn run(
    generation: u32,
    width: u32,
    mps: u32,
    completion: u32,
    operations: &[Operation],
) -> Result<Vec<f64>, PcieError> {
    // A completion never spans two requests, as pcie-model has it where the MPS is above the MRRS.
    let mrrs = if operations.len() == 1 {
        mps.max(512)
    } else {
        512
    };
    let rate = LinkRate::of_pcie_model(generation, width, mps).payload_gib_s(mps);
    let text = format!(
        "name = \"link\"\n\
         [[host]]\nname = \"h\"\n[host.timing]\nroot_ns = 0.0\nsubmit_ns = 0.0\npoll_ns = 0.0\ncompletion_bytes = {completion}\n\
         [[device]]\nname = \"d\"\n[device.timing]\nport_ns = 0.0\nbus_ns = 0.0\non_chip_bus_ns = 0.0\n\
         [device.engine]\nclock_mhz = 10000.0\noverhead_ns = 0.0\ndatapath_bytes = 4096\nwrite_issue_cycles = 1\n\
         read_issue_cycles = 0\nread_request_cycles = 0\nmemory_hold_cycles = 0\nmemory_gib_s = 100000.0\n\
         tags = 256\nread_commands = 256\ndata_fifo_bytes = 1048576\n\
         [[endpoint]]\nname = \"e\"\ndevice = \"d\"\n\
         [[link]]\nends = [\"h.0\", \"e\"]\ngeneration = {generation}\nwidth = {width}\nmps = {mps}\nmrrs = {mrrs}\n\
         latency_ns = 0.0\ncredit_update_ns = 0.0\ndown_gib_s = {rate}\nup_gib_s = {rate}\n\
         credits = {{ posted_headers = 0, posted_data = 0, non_posted_headers = 0, non_posted_data = 0, completion_headers = 0, completion_data = 0 }}\n"
    );
    let topology = Topology::from_toml(&text, "pcie-model")?;
    let (host, device) = (topology.find("h")?, topology.find("e")?);
    let streams: Vec<Stream> = operations
        .iter()
        .map(|operation| Stream {
            chunk: 4096,
            scheduling: Scheduling::Fixed(0),
            ..Stream::new("s", *operation, host, device, 1 << 30)
        })
        .collect();
    // As many bytes on links of every speed.
    let end = 4_000_000 / u64::from(width * (1 << generation));
    let options = SimulationOptions {
        warmup_ns: end / 4,
        ..SimulationOptions::default()
    };
    let mut simulation = Simulation::new(&topology, &streams, &[], &options)?;
    simulation.run_until(end)?;
    Ok(simulation
        .streams()
        .iter()
        .map(|result| result.gib_s)
        .collect())
}
