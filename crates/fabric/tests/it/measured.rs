//! Rates by defaults alone beside published measurements of copies, and ranges around them.

use dray_fabric::{Values, intervals, makespan, network, parse_flows, parse_jobs};
use dray_flow::{Estimator, Flows, MaxMin, Policy};
use dray_pcie::Topology;

/// GPUs, a drive and a card on root ports of one socket.
fn machine(generation: u32, host: &str) -> Topology {
    let mut text = format!(
        "name = \"m\"\n[link_defaults]\ngeneration = {generation}\n[[host]]\nname = \"host\"\n{host}\n\
         [[device]]\nname = \"wide\"\n[device.timing]\npayload_bytes = 256\n"
    );
    for (name, kind, width, device) in [
        ("gpu", "gpu", 16, ""),
        ("gpu1", "gpu", 16, ""),
        ("amd", "gpu", 16, "device = \"wide\""),
        ("disk", "nvme", 4, ""),
        ("fpga", "fpga", 16, ""),
    ] {
        text += &format!(
            "[[endpoint]]\nname = \"{name}\"\nkind = \"{kind}\"\n{device}\n\
             [[link]]\nends = [\"host.0\", \"{name}\"]\nwidth = {width}\n"
        );
    }
    Topology::from_toml(&text, "m.toml").unwrap()
}

/// Rates and ranges of flows, GB/s.
fn rates(topology: &Topology, flows: &str) -> Vec<(f64, f64, f64)> {
    let network = network(topology).unwrap();
    let rows = format!("from,to\n{flows}");
    let named = parse_flows(&rows, true, "flows.csv", topology, &network).unwrap();
    let mut set = Flows::new(&network);
    for flow in &named {
        set.push(&flow.flow).unwrap();
    }
    let estimate = MaxMin.estimate(&set).unwrap();
    let ranges = intervals(topology, &network, &named).unwrap();
    let gb_s = |gib_s: f64| gib_s * 1.073_741_824;
    let rates = estimate.rates().iter().zip(ranges);
    rates
        .map(|(rate, range)| (gb_s(*rate), gb_s(range.low), gb_s(range.high)))
        .collect()
}

const AMD: &str = "[host.timing]\ncompletion_bytes = 256";

/// Generation, what the file says of the host, flow, measured GB/s, and the machine and where it was published.
const MEASURED: [(u32, &str, &str, f64, &str); 31] = [
    (
        3,
        "",
        "host,gpu",
        12.15,
        "P100: mpicbg-scicomp/gearshifft#82",
    ),
    (
        3,
        "",
        "gpu,host",
        12.89,
        "P100: mpicbg-scicomp/gearshifft#82",
    ),
    (3, "", "host,gpu", 13.1, "RTX 2080 Ti: usadellab/Helixer#22"),
    (3, "", "host,gpu", 12.0, "V100: ZaidQureshi/bam#54"),
    (
        3,
        "",
        "host,amd",
        12.56,
        "MI25, X11DGQ: ROCm/ROCmValidationSuite#289",
    ),
    (
        3,
        "",
        "host,amd",
        12.57,
        "MI25, X11DGQ: ROCm/ROCmValidationSuite#289",
    ),
    (
        3,
        AMD,
        "host,amd",
        14.25,
        "Radeon Pro VII, Threadripper: ROCm/rocm_smi_lib#110",
    ),
    (3, "", "host,fpga", 11.01, "U250: Xilinx/XRT#937"),
    (3, "", "fpga,host", 12.15, "U250: Xilinx/XRT#937"),
    (
        3,
        "",
        "host,fpga",
        13.1,
        "U55C, Xeon 6248: NSDI 2024, figure 5",
    ),
    (
        3,
        "",
        "fpga,host",
        13.2,
        "U55C, Xeon 6248: NSDI 2024, figure 6",
    ),
    (
        4,
        "",
        "host,gpu",
        24.81,
        "A100: forums.developer.nvidia.com 352186",
    ),
    (
        4,
        "",
        "gpu,host",
        25.0,
        "A100: forums.developer.nvidia.com 352186",
    ),
    (4, "", "host,gpu", 25.5, "A100: NVIDIA/nvbandwidth#11"),
    (4, "", "host,gpu", 25.13, "A100: NVIDIA/nvbandwidth#42"),
    (4, "", "host,gpu", 25.0, "A100: ZaidQureshi/bam#54"),
    (4, "", "gpu,gpu1", 26.34, "A6000: NVIDIA/nvbandwidth#50"),
    (
        4,
        "",
        "gpu,host",
        25.0,
        "RTX 4090, Xeon 8360Y: NVIDIA/cuda-samples#219",
    ),
    (4, "", "gpu,gpu1", 26.0, "RTX 4090: NVIDIA/nccl#1614"),
    (4, "", "host,gpu", 26.3, "RTX 4090: NVIDIA/nvbandwidth#15"),
    (4, "", "gpu,host", 27.1, "RTX 4090: NVIDIA/nvbandwidth#15"),
    (4, "", "host,gpu", 23.9, "RTX 4090: NVlabs/cuda-oxide#976"),
    (4, "", "gpu,host", 26.6, "RTX 4090: NVlabs/cuda-oxide#976"),
    (
        4,
        "",
        "gpu,gpu1",
        20.7,
        "RTX 4090: tinygrad/open-gpu-kernel-modules#6",
    ),
    (4, "", "disk,host", 7.2, "P5800X: vendor's data sheet"),
    (4, "", "host,disk", 6.2, "P5800X: vendor's data sheet"),
    (
        5,
        "",
        "host,gpu",
        56.35,
        "RTX 5090, Xeon 8458P: tinygrad/open-gpu-kernel-modules#29",
    ),
    (
        5,
        "",
        "gpu,host",
        57.33,
        "RTX 5090, Xeon 8458P: tinygrad/open-gpu-kernel-modules#29",
    ),
    (
        5,
        "",
        "gpu,gpu1",
        56.9,
        "RTX 5090: ikawrakow/ik_llama.cpp#1022",
    ),
    (5, "", "gpu,host", 52.77, "H100: NVIDIA/nvbandwidth#24"),
    (
        5,
        "",
        "disk,host",
        13.3,
        "SSD on four lanes: spdk/spdk#3637",
    ),
];

#[test]
fn defaults_are_near_what_has_been_measured() {
    let mut errors = Vec::new();
    let mut outside = Vec::new();
    for (generation, host, flow, measured, who) in MEASURED {
        let topology = machine(generation, host);
        let (rate, low, high) = rates(&topology, &format!("{flow}\n"))[0];
        println!("Gen{generation} {flow} {measured} {rate:.2} ({low:.2} to {high:.2}): {who}");
        errors.push((rate / measured - 1.0).abs());
        // Tools differ by some percent from run to run.
        if measured < low * 0.95 || measured > high * 1.05 {
            outside.push((who, measured, low, high));
        }
    }
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    assert!(median < 0.05, "{median}");
    let near = errors.iter().filter(|error| **error <= 0.1).count();
    assert!(near * 10 >= errors.len() * 9, "{errors:?}");
    // The engine of one card, and its reads.
    assert!(outside.len() <= 2, "{outside:?}");
}

#[test]
fn both_directions_at_once_share_what_requests_take() {
    for generation in [3, 4, 5] {
        let topology = machine(generation, "");
        let alone: f64 = ["host,gpu\n", "gpu,host\n"]
            .map(|flow| rates(&topology, flow)[0].0)
            .iter()
            .sum();
        let both = rates(&topology, "host,gpu\ngpu,host\n");
        let part = (both[0].0 + both[1].0) / alone;
        assert!((0.85..0.97).contains(&part), "Gen{generation}: {part}");
        // Writes ask for nothing.
        let peers = rates(&topology, "gpu,gpu1\ngpu1,gpu\n");
        assert_eq!(peers[0], peers[1]);
        assert_eq!(peers[0], rates(&topology, "gpu,gpu1\n")[0]);
    }
}

#[test]
fn a_range_holds_the_rate_and_what_a_file_says_has_none() {
    let topology = machine(4, AMD);
    let (rate, low, high) = rates(&topology, "amd,host\n")[0];
    assert_eq!((low, high), (rate, rate));
    let (rate, low, high) = rates(&topology, "gpu,gpu1\n")[0];
    assert!(
        low < 10.0 && low < rate && rate < high,
        "{low} {rate} {high}"
    );
    // Time as rates.
    let network = network(&topology).unwrap();
    let jobs = "from,to,bytes\ngpu,host,1G\n";
    let jobs = parse_jobs(jobs, true, "jobs.csv", &topology, &network).unwrap();
    let range = makespan(&topology, &network, &jobs, Policy::StartAll).unwrap();
    let (rate, low, high) = rates(&topology, "gpu,host\n")[0];
    let seconds = |rate: f64| 1.073_741_824 / rate;
    assert!((range.low / seconds(high) - 1.0).abs() < 1e-3);
    assert!((range.high / seconds(low.min(rate)) - 1.0).abs() < 1e-3);
}

#[test]
fn a_transfer_takes_one_of_several_links_between_sockets() {
    let text = "name = \"m\"\n[link_defaults]\ngeneration = 5\n[[host]]\nname = \"host\"\nsockets = 2\n\
        [host.timing]\nsocket_gib_s = 120.0\nsocket_links = 3\n\
        [[endpoint]]\nname = \"a\"\n[[endpoint]]\nname = \"b\"\n[[endpoint]]\nname = \"c\"\n[[endpoint]]\nname = \"d\"\n\
        [[link]]\nends = [\"host.0\", \"a\"]\n[[link]]\nends = [\"host.0\", \"b\"]\n\
        [[link]]\nends = [\"host.0\", \"c\"]\n[[link]]\nends = [\"host.0\", \"d\"]\n";
    let topology = Topology::from_toml(text, "m.toml").unwrap();
    let gib_s = |gb_s: f64| gb_s / 1.073_741_824;
    let far = |flows: &str| -> Vec<f64> {
        let rates = rates(&topology, flows).into_iter();
        rates.map(|(rate, ..)| gib_s(rate)).collect()
    };
    assert!((far("a,host.1\n")[0] - 40.0).abs() < 1e-9);
    // A demand does not lift it.
    let network = network(&topology).unwrap();
    let rows = "from,to,demand_gib_s\na,host.1,50\na,host.1,30\n";
    let named = parse_flows(rows, true, "flows.csv", &topology, &network).unwrap();
    let demands: Vec<_> = named
        .iter()
        .map(|named| (named.flow.demand, named.held_by))
        .collect();
    assert_eq!(demands, [(40.0, Some("socket link")), (30.0, None)]);
    for rate in far("a,host.1\nb,host.1\nc,host.1\nd,host.1\n") {
        assert!((rate - 30.0).abs() < 1e-9, "{rate}");
    }
}

/// Four drives to an H100 behind a Xeon 6442Y: 45.2 GB/s (xnvme.io/aisio); GPUs of Gen4 on a Xeon 6430: 20
/// (tinygrad/open-gpu-kernel-modules#26), where lines have 22.9.
#[test]
fn what_intels_root_complexes_forward_is_cut_into_lines() {
    const XEON: &str = "[host.timing]\npeer_write_bytes = 64";
    let alone = |generation| rates(&machine(generation, XEON), "gpu,gpu1\n")[0].0;
    assert!((alone(5) / 45.2 - 1.0).abs() < 0.05, "{}", alone(5));
    assert!((alone(4) / 20.0 - 1.0).abs() < 0.15, "{}", alone(4));
    // The range has what other root complexes do.
    let (rate, low, high) = rates(&machine(5, XEON), "gpu,gpu1\n")[0];
    assert!(low < rate && high > 55.0, "{low} {high}");
    // A drive's own link is narrower: nothing is said of the root complex, and a NIC's ports are as wide as they are in lines.
    let slow = rates(&machine(5, XEON), "disk,gpu\n")[0].0;
    assert!((slow - rates(&machine(5, ""), "disk,gpu\n")[0].0).abs() < 1e-9);
    let ports = "name = \"m\"\n[link_defaults]\ngeneration = 5\n[[host]]\nname = \"host\"\n[host.timing]\npeer_write_bytes = 64\n\
        [[endpoint]]\nname = \"gpu\"\nkind = \"gpu\"\n[[endpoint]]\nname = \"nic\"\n[[link]]\nends = [\"host.0\", \"gpu\"]\n\
        [[link]]\nends = [\"host.0\", \"nic\"]\ndown_gib_s = 45.8\nup_gib_s = 45.8\n";
    let ports = Topology::from_toml(ports, "m.toml").unwrap();
    let lines = rates(&ports, "gpu,nic\n")[0].0;
    assert!((lines - alone(5)).abs() < 0.5, "{lines} {}", alone(5));
    // Its sender has that pace, in the simulator, too, and the way to memory is as before.
    let topology = machine(5, XEON);
    let network = network(&topology).unwrap();
    let named = parse_flows(
        "from,to\ngpu,gpu1\ngpu,host\n",
        true,
        "f.csv",
        &topology,
        &network,
    );
    let named = named.unwrap();
    assert_eq!(named[0].held_by, Some("root complex"));
    assert!((named[0].flow.demand * 1.073_741_824 - alone(5)).abs() < 1e-9);
    assert_eq!((named[1].held_by, named[1].flow.costs.len()), (None, 0));
}

/// 148.9 GB/s have been measured for 12 flows among 4 GPUs of one switch, 163.6 on another machine; each alone has 53 to 57.
#[test]
fn the_range_of_an_all_to_all_holds_what_gpus_reach_with_several_peers() {
    let mut text = "name = \"m\"\n[link_defaults]\ngeneration = 5\n[[host]]\nname = \"host\"\n[[switch]]\nname = \"s\"\n\
        [[link]]\nends = [\"host.0\", \"s\"]\n"
        .to_owned();
    let mut flows = String::new();
    for a in 0..4 {
        text += &format!(
            "[[endpoint]]\nname = \"g{a}\"\nkind = \"gpu\"\n[[link]]\nends = [\"s\", \"g{a}\"]\n"
        );
        for b in (0..4).filter(|b| *b != a) {
            flows += &format!("g{a},g{b}\n");
        }
    }
    let topology = Topology::from_toml(&text, "m.toml").unwrap();
    let rows = rates(&topology, &flows);
    let sum = |of: fn(&(f64, f64, f64)) -> f64| rows.iter().map(of).sum::<f64>();
    assert!(
        sum(|row| row.1) < 148.9 && sum(|row| row.2) > 163.6,
        "{rows:?}"
    );
    let pair = rates(&topology, "g0,g1\n")[0];
    assert!(pair.1 > 50.0, "{pair:?}");
}

#[test]
fn who_moves_the_data_is_read_from_files() {
    let topology = machine(4, "");
    let network = network(&topology).unwrap();
    let rate = |flow: &str| {
        let rows = format!("from,to,operation\n{flow}\n");
        let named = parse_flows(&rows, true, "flows.csv", &topology, &network).unwrap();
        let mut set = Flows::new(&network);
        set.push(&named[0].flow).unwrap();
        (MaxMin.estimate(&set).unwrap().rates()[0], named[0].clone())
    };
    // A core stores lines of 64 bytes, and loads one line in a round trip.
    let (stores, _) = rate("host,gpu,mmio");
    assert!((stores / rate("host,gpu,write").0 - (280.0 / 256.0) / (88.0 / 64.0)).abs() < 1e-9);
    let (loads, flow) = rate("gpu,host,mmio");
    assert_eq!(flow.held_by, Some("tags"));
    assert!((loads * flow.flow.latency / 64.0 - 1.0).abs() < 1e-9);
    // A peer that reads has its requests on the way against the data.
    let (_, read) = rate("gpu,gpu1,read");
    assert_eq!(read.flow.sides.len(), 2);
    assert_eq!(read.flow.packets.request, 128);
    let wide = read.with(&topology, &network, Values::Greatest);
    assert_eq!((wide.packets.payload, wide.packets.request), (256, 512));
    let rows = "from,to,operation\nhost,gpu,copy\n";
    assert!(parse_flows(rows, true, "flows.csv", &topology, &network).is_err());
}

#[test]
fn a_measured_capacity_is_that_of_what_goes_there() {
    let topology = Topology::resolve("validation").unwrap();
    let network = network(&topology).unwrap();
    let rows = "from,to\nhost,A\nB,A\nA,host\n";
    let named = parse_flows(rows, true, "flows.csv", &topology, &network).unwrap();
    for flow in &named {
        // The host's own link has no capacity in the file: completions have shorter headers.
        let costs = flow.flow.costs.iter().skip(1);
        assert!(costs.copied().all(|cost| cost == 1.0), "{}", flow.name);
        assert_eq!(flow.flow.packets.payload, 256, "{}", flow.name);
        assert!(!flow.flow.packets.is_halved);
    }
    // Its reads have 32 tags of 512 bytes for a round trip.
    let read = &named[0];
    assert_eq!(read.held_by, Some("tags"));
    assert!((read.flow.demand * read.flow.latency / 16384.0 - 1.0).abs() < 1e-9);
}
