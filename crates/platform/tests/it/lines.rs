//! The closed form of an engine against a slow simulator that follows each 64-byte line.

use dray_clock::{Duration, Time};
use dray_platform::{
    Cache, EnginePipe, LINE_BYTES, MemoryLocation, NodeId, PlatformFile, Requester, Stream,
    Transfer, builtin,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

const SEED: u64 = 0x6c69_6e65;

const REQUESTER: Requester = Requester {
    device: 0,
    buffers: 96,
    translated: true,
    alone: true,
};

fn platform() -> PlatformFile {
    builtin("spr-2s").expect("built in")
}

fn stream(address: u64, bytes: u64, node: u16) -> Option<Stream> {
    Some(Stream {
        address,
        bytes,
        place: MemoryLocation {
            node: NodeId(node),
            cache: Cache::Memory,
        },
    })
}

fn copy(bytes: u64, destination: u64) -> Transfer {
    Transfer {
        reads: [stream(1 << 20, bytes, 0), None],
        writes: [stream((1 << 30) + destination, bytes, 0), None],
        cache_control: false,
        readback: false,
        transforms: false,
    }
}

/// When the last write of a descriptor alone on its engine is acknowledged, by the closed form.
fn closed_form(platform: &PlatformFile, transfer: &Transfer) -> f64 {
    let service = platform.service(REQUESTER, transfer);
    let moved = Time((service.lines * service.demand.alone_fs()).div_ceil(1000));
    let issue = EnginePipe::default().issue(
        Time::ZERO,
        moved,
        Duration::ZERO,
        &service,
        &platform.recorded_parameters(),
    );
    Duration(issue.data_done.0).as_ns()
}

/// The same by following lines: a request each time the port is free and a buffer too, a random
/// latency for its data, the write when the data is there and the write port is free, a random
/// latency for its acknowledgement.
fn follow_lines(platform: &PlatformFile, reads: u64, writes: u64, rng: &mut ChaCha8Rng) -> f64 {
    let p = platform.parameters();
    let mut latency = |mean: Duration, spread: Duration| {
        let uniform = (f64::from(rng.next_u32()) + 1.0) / (f64::from(u32::MAX) + 1.0);
        mean.as_ns() - spread.as_ns() - spread.as_ns() * uniform.ln()
    };
    let turnaround = match reads > 0 && writes > 0 {
        true => p.port_turnaround.as_ns(),
        false => 0.0,
    };
    let read_step = p.port_read as f64 / 1e6 + turnaround;
    let write_step = p.port_write as f64 / 1e6 + turnaround;
    let window = (p.read_buffers * p.read_buffer_bytes / LINE_BYTES) as usize;
    let mut ready: Vec<f64> = Vec::new();
    let mut port = 0.0f64;
    for line in 0..reads as usize {
        // Its buffer is free once as many lines have arrived as have no room beside it.
        let buffer = match line.checked_sub(window) {
            Some(before) => {
                let mut arrived = ready.clone();
                *arrived.select_nth_unstable_by(before, f64::total_cmp).1
            }
            None => 0.0,
        };
        port = port.max(buffer) + read_step;
        ready.push(port + latency(p.read_dram, p.read_spread));
    }
    ready.sort_by(f64::total_cmp);
    ready.resize(writes.max(reads) as usize, 0.0);
    let (mut port, mut last) = (0.0f64, 0.0f64);
    for at in ready {
        last = match writes {
            0 => last.max(at),
            _ => {
                port = port.max(at) + write_step;
                last.max(port + latency(p.write_ack, p.write_spread))
            }
        };
    }
    // The record's half line takes its turn at the write port too.
    match writes {
        0 => last,
        _ => last + p.port_completion.as_ns(),
    }
}

fn agree(transfer: &Transfer, reads: u64, writes: u64, tolerance: f64) {
    let platform = platform();
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let runs = (20_000 / reads.max(writes)).clamp(20, 300) as u32;
    let followed: f64 = (0..runs)
        .map(|_| follow_lines(&platform, reads, writes, &mut rng))
        .sum::<f64>()
        / f64::from(runs);
    let closed = closed_form(&platform, transfer);
    assert!(
        (closed / followed - 1.0).abs() < tolerance,
        "{reads} reads, {writes} writes, seed {SEED:#x}: \
         closed form {closed:.1} ns, lines {followed:.1} ns"
    );
}

#[test]
fn reads_alone_agree_with_a_simulation_of_their_lines() {
    for bytes in [64, 256, 1024, 4096, 16384, 65536] {
        let transfer = Transfer {
            reads: [stream(1 << 20, bytes, 0), None],
            ..Transfer::default()
        };
        agree(&transfer, bytes / LINE_BYTES, 0, 0.06);
    }
}

#[test]
fn writes_alone_agree_with_a_simulation_of_their_lines() {
    for bytes in [64, 256, 1024, 4096, 16384, 65536] {
        let transfer = Transfer {
            writes: [stream(1 << 20, bytes, 0), None],
            ..Transfer::default()
        };
        agree(&transfer, 0, bytes / LINE_BYTES, 0.06);
    }
}

#[test]
fn copies_agree_with_a_simulation_of_their_lines() {
    // The slowest read and the slowest write are rarely the same line: the closed form, which
    // adds them, is late by up to a seventh for copies of about 1 KiB.
    for bytes in [64, 256, 1024, 4096, 16384, 65536] {
        let lines = bytes / LINE_BYTES;
        agree(&copy(bytes, 0), lines, lines, 0.15);
    }
}

#[test]
fn an_engine_takes_the_next_descriptor_after_issue_or_data() {
    let platform = platform();
    let p = &platform.recorded_parameters();
    let start = Time(1_000_000);
    for (bytes, by_issue) in [(64, true), (65536, false)] {
        let service = platform.service(REQUESTER, &copy(bytes, 0));
        let data = Duration((service.lines * service.demand.alone_fs()).div_ceil(1000));
        let issue = EnginePipe::default().issue(start, start + data, Duration::ZERO, &service, p);
        let expected = match by_issue {
            true => start + p.engine_issue(),
            false => start + data + p.engine_gap(),
        };
        assert_eq!(issue.next_start, expected, "{bytes} bytes");
        assert_eq!(issue.record_written, issue.data_done + p.completion_write());
    }
}

/// Data that an engine computes over comes later, and so does the next descriptor.
#[test]
fn a_transform_holds_the_engine() {
    let platform = platform().with("engine_transform", 50.0).unwrap();
    let p = &platform.recorded_parameters();
    let issue = |transforms: bool| {
        let transfer = Transfer {
            transforms,
            ..copy(64, 0)
        };
        let service = platform.service(REQUESTER, &transfer);
        EnginePipe::default().issue(Time::ZERO, Time::ZERO, Duration::ZERO, &service, p)
    };
    let (plain, longer) = (issue(false), issue(true));
    assert_eq!(longer.next_start, plain.next_start + p.engine_transform());
    assert_eq!(longer.data_done, plain.data_done + p.engine_transform());
}

#[test]
fn a_slot_is_free_exactly_at_the_end_of_the_first_descriptor() {
    let platform = platform();
    let p = &platform.recorded_parameters();
    let service = platform.service(REQUESTER, &copy(64, 0));
    let mut pipe = EnginePipe::default();
    let mut first = Time::NEVER;
    for n in 0..p.engine_in_flight() {
        let start = Time(n);
        assert_eq!(pipe.slot_free(start, p), start, "slot {n} is free");
        first = first.min(
            pipe.issue(start, start, Duration::ZERO, &service, p)
                .data_done,
        );
    }
    let before = Time(first.0 - 1);
    assert_eq!(pipe.slot_free(before, p), first, "none is free at t - 1");
    assert_eq!(pipe.slot_free(first, p), first, "one is free at t");
}

/// Time per descriptor of many in a row, so that hold-ups and not latencies show.
fn pipelined(platform: &PlatformFile, transfer: &Transfer) -> Duration {
    let service = platform.service(REQUESTER, transfer);
    let data = Duration((service.lines * service.demand.alone_fs()).div_ceil(1000));
    let mut pipe = EnginePipe::default();
    let mut start = Time::ZERO;
    let mut done = Vec::new();
    for _ in 0..64 {
        let issue = pipe.issue(
            start,
            start + data,
            Duration::ZERO,
            &service,
            &platform.recorded_parameters(),
        );
        done.push(issue.data_done);
        start = issue.next_start;
    }
    Duration((done[63].0 - done[31].0) / 32)
}

#[test]
fn partial_lines_delay_writes_unless_cache_control_is_set() {
    let platform = platform();
    let p = platform.parameters();
    assert!(pipelined(&platform, &copy(1024, 0)) < p.partial_line);
    for (offset, cost) in [(32, p.partial_line), (8, p.partial_sector)] {
        let period = pipelined(&platform, &copy(1024, offset));
        assert!(period >= cost * 2, "offset {offset}: {period}");
        assert!(
            period < cost * 2 + p.engine_issue,
            "offset {offset}: {period}"
        );
    }
    let cached = Transfer {
        cache_control: true,
        readback: false,
        transforms: false,
        ..copy(1024, 8)
    };
    assert!(pipelined(&platform, &cached) < p.partial_line);
}

/// Published for packed buffers in the cache: 228 ns a line.
#[test]
fn a_partial_line_costs_what_reading_it_costs_where_it_is() {
    let platform = platform();
    let p = platform.parameters();
    let period = |node, cache| {
        let mut transfer = copy(64, 8);
        transfer.reads = [None; 2];
        let write = transfer.writes[0].as_mut().unwrap();
        write.place = MemoryLocation {
            node: NodeId(node),
            cache,
        };
        pipelined(&platform, &transfer)
    };
    let near = period(0, Cache::Memory);
    assert_eq!(period(1, Cache::Memory), near + p.remote_extra * 2);
    let cached = period(0, Cache::Llc);
    let less = p.partial_sector - (p.read_llc + p.write_ack);
    assert_eq!(cached, near - less * 2);
    assert!((220..=240).contains(&(cached.0 / 2000)), "{cached}");
}

#[test]
fn what_is_read_from_the_cache_needs_no_bandwidth_of_its_node() {
    let slow = platform().measured("node_read", 20.0, [20.0; 2], "slower than the port");
    let slow = slow.unwrap();
    let p = slow.parameters();
    let per_line = |cache| {
        let mut transfer = copy(4096, 0);
        transfer.writes = [None; 2];
        let read = transfer.reads[0].as_mut().unwrap();
        read.place.cache = cache;
        slow.service(REQUESTER, &transfer).demand.alone_fs()
    };
    assert_eq!(per_line(Cache::Memory), p.node_read);
    // 64 lines and the descriptor through the read port.
    assert_eq!(per_line(Cache::Llc), 65 * p.port_read / 64);
}

#[test]
fn read_buffers_limit_reads_of_far_memory() {
    let platform = platform();
    let p = platform.parameters();
    let cxl = platform.topology.cxl_node().unwrap();
    let far = Transfer {
        reads: [stream(1 << 20, 1 << 20, cxl.0), None],
        ..Transfer::default()
    };
    let per_line = |buffers| {
        let requester = Requester {
            buffers,
            ..REQUESTER
        };
        platform.service(requester, &far).demand.alone_fs()
    };
    let latency_fs = (p.read_dram + p.cxl_extra).0 * 1000;
    let window = |buffers: u64| buffers * p.read_buffer_bytes / LINE_BYTES;
    // With few buffers their turn-over decides (Little's law), with all of them the link.
    assert_eq!(per_line(16), latency_fs / window(16));
    assert_eq!(per_line(96), p.cxl_read);
}

/// How long a line that comes at a random moment waits at the read port, by following the lines of a neighbour that
/// holds as many read buffers: each buffer asks for the next line as soon as its line is there.
fn wait_of_lines(platform: &PlatformFile, buffers: u64, rng: &mut ChaCha8Rng) -> f64 {
    let p = platform.parameters();
    let mut uniform = || (f64::from(rng.next_u32()) + 1.0) / (f64::from(u32::MAX) + 2.0);
    let step = p.port_read as f64 / 1e6;
    let window = (buffers * p.read_buffer_bytes / LINE_BYTES) as usize;
    // When each buffer asks, earliest first; the port serves them in this order.
    let mut asks: Vec<f64> = (0..window).map(|_| uniform()).collect();
    let (mut port, mut waited, mut looks) = (0.0f64, 0.0, 0);
    for turn in 0..200 * window {
        asks.sort_unstable_by(|a, b| b.total_cmp(a));
        let ask = asks.pop().expect("a buffer");
        port = port.max(ask) + step;
        // After a start from empty buffers; now and then another's line comes as this one does.
        if turn > 50 * window && uniform() < 0.01 {
            waited += port - step - ask;
            looks += 1;
        }
        asks.push(port + p.read_dram.as_ns() - p.read_spread.as_ns() * (1.0 + uniform().ln()));
    }
    waited / f64::from(looks)
}

#[test]
fn the_wait_for_a_neighbours_lines_agrees_with_a_simulation_of_them() {
    let platform = platform();
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let newcomer = platform.service(REQUESTER, &copy(64, 0)).outstanding;
    for buffers in [24, 48, 80, 96] {
        let requester = Requester {
            buffers,
            ..REQUESTER
        };
        let neighbour = platform.service(requester, &copy(1 << 20, 0)).outstanding;
        let closed = newcomer.wait([(0, neighbour)].into_iter()).as_ns();
        let followed = wait_of_lines(&platform, buffers, &mut rng);
        assert!(
            (closed - followed).abs() < 8.0,
            "{buffers} buffers, seed {SEED:#x}: closed form {closed:.1} ns, lines {followed:.1} ns"
        );
    }
}

#[test]
fn only_what_keeps_the_ports_busy_makes_others_wait() {
    let platform = platform();
    let outstanding = |transfer: &Transfer| platform.service(REQUESTER, transfer).outstanding;
    let wait = |of: &Transfer, others: &[Transfer]| {
        let others: Vec<_> = others.iter().map(|one| (0, outstanding(one))).collect();
        outstanding(of).wait(others.into_iter())
    };
    let (small, large) = (copy(64, 0), copy(1 << 20, 0));
    let fill = Transfer {
        writes: [stream(1 << 20, 1 << 20, 0), None],
        ..Transfer::default()
    };
    assert_eq!(wait(&small, &[]), Duration::ZERO);
    let busy = wait(&small, &[large]);
    assert!(busy > Duration::from_ns(100), "{busy}");
    // All buffers are held by one neighbour already.
    assert_eq!(wait(&small, &[large, large]), busy);
    // Neither has reads at the port.
    assert_eq!(wait(&small, &[fill]), Duration::ZERO);
    assert_eq!(wait(&fill, &[large]), Duration::ZERO);
    // Engines of one group share what it may hold, and groups do not.
    let few = Requester {
        buffers: 40,
        ..REQUESTER
    };
    let few = platform.service(few, &large).outstanding;
    let together = |groups: [u16; 2]| {
        let others = groups.map(|group| (group, few));
        outstanding(&small).wait(others.into_iter())
    };
    assert_eq!(together([0, 0]), Duration::ZERO);
    assert!(together([0, 1]) > Duration::from_ns(50));
    // A few lines, and one whose lines wait at the memory and not at the port.
    assert_eq!(wait(&small, &[small]), Duration::ZERO);
    let cxl = Transfer {
        reads: [stream(1 << 20, 1 << 20, 2), None],
        ..Transfer::default()
    };
    assert_eq!(wait(&small, &[cxl]), Duration::ZERO);
}
