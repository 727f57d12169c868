//! Our measurement of memcpy beside Google Benchmark's own, taken in turns on one CPU:
//!
//! ```sh
//! cargo bench -p dray-bench --bench google            # 21 repetitions of each
//! cargo bench -p dray-bench --bench google -- 41
//! ```
//!
//! Exit code 1 if the medians differ by more than 5 %.

#![allow(clippy::unwrap_used, reason = "a benchmark ends by panic")]

use std::fs;
use std::path::Path as File;
use std::process::{Command, ExitCode};

use dray_bench::compare::{Measurement, Ratio, ResultFile, compare};
use dray_bench::real::{Real, available_cpus, context};
use dray_bench::{Api, Case, Exec, Location, MinTime, Op, Output, Path, Timer};
use rustix::thread::{CpuSet, sched_setaffinity};

const INSTALL: &str = "apt-get install -y g++ libbenchmark-dev";
const REPETITIONS: usize = 21;
const SECONDS: f64 = 0.05;
/// Of the medians, either way.
const TOLERANCE: f64 = 0.05;

struct Pair {
    what: &'static str,
    /// Name of Google Benchmark's case.
    theirs: &'static str,
    ours: Case,
}

/// One repetition: time of a copy in ns, on the clock and of the core.
#[derive(Clone, Copy)]
struct Took {
    real: f64,
    cpu: f64,
}

fn main() -> ExitCode {
    let count = std::env::args().find_map(|word| word.parse().ok());
    let repetitions = count.unwrap_or(REPETITIONS).max(2);
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = build(directory.path()) else {
        eprintln!("error: Google Benchmark's memcpy benchmark cannot be built");
        eprintln!("hint: {INSTALL}");
        return ExitCode::FAILURE;
    };
    let priority = alone();
    let head = context("google");
    println!(
        "{}, kernel {}",
        head.dray_platform, head.extra["dray_kernel"]
    );
    println!(
        "{repetitions} repetitions of {SECONDS} s each, in turns, on one CPU, {priority} priority"
    );
    for warning in &head.dray_warnings {
        println!("warning: {warning}");
    }
    let real = Real::new(MinTime::Seconds(SECONDS), None).unwrap();
    let pairs = [
        Pair {
            what: "4 KiB, hot",
            theirs: "^Hot/4096$",
            ours: case(4096, Location::L1),
        },
        Pair {
            what: "1 MiB, cold",
            theirs: "^Cold/1048576$",
            ours: case(1 << 20, Location::Ram),
        },
    ];
    let mut taken = vec![(Vec::new(), Vec::new()); pairs.len()];
    for turn in 0..repetitions {
        for (pair, (theirs, ours)) in pairs.iter().zip(&mut taken) {
            // Who comes first changes: neither always finds what the other left.
            if turn % 2 == 0 {
                theirs.push(google(&program, pair.theirs));
            }
            let found = real.run(&pair.ours).unwrap().timing;
            ours.push(Took {
                real: found.real_ns,
                cpu: found.cpu_ns,
            });
            if turn % 2 == 1 {
                theirs.push(google(&program, pair.theirs));
            }
        }
    }
    println!(
        "{:<12} {:<5} {:>12} {:>12} {:>8}   95 % interval",
        "memcpy", "time", "theirs ns", "ours ns", "ratio"
    );
    let mut apart = 0;
    for (pair, (theirs, ours)) in pairs.iter().zip(&taken) {
        let real = ratio(theirs, ours, |t| t.real);
        let cpu = ratio(theirs, ours, |t| t.cpu);
        for (name, r) in [("real", &real), ("cpu", &cpu)] {
            let (low, high) = r.interval.unwrap();
            println!(
                "{:<12} {name:<5} {:>12.2} {:>12.2} {:>8.4}   {low:.4} to {high:.4}",
                pair.what, r.old_ns, r.new_ns, r.ratio
            );
        }
        // What other programs took from the CPU is no part of either measurement.
        apart += usize::from((cpu.ratio - 1.0).abs() > TOLERANCE);
    }
    match apart {
        0 => {
            println!("medians of core time agree within {} %", TOLERANCE * 100.0);
            ExitCode::SUCCESS
        }
        _ => {
            println!(
                "medians of core time differ by more than {} %",
                TOLERANCE * 100.0
            );
            ExitCode::FAILURE
        }
    }
}

fn case(size: u32, location: Location) -> Case {
    Case {
        op: Op::Copy,
        api: Api::Glibc,
        path: Path::Cpu,
        exec: Exec::Sync,
        qsize: 1,
        bsize: 0,
        in_mem: location,
        out_mem: Output {
            location,
            cache_control: false,
        },
        timer: Timer::Full,
        size,
        threads: 1,
    }
}

fn build(directory: &File) -> Option<std::path::PathBuf> {
    let program = directory.join("google");
    let source = File::new(env!("CARGO_MANIFEST_DIR")).join("benches/google.cpp");
    let status = Command::new("g++")
        .args(["-O2", "-std=c++17", "-o"])
        .arg(&program)
        .arg(source)
        .args(["-lbenchmark", "-lpthread"])
        .status();
    status.is_ok_and(|s| s.success()).then_some(program)
}

/// Keeps this process and its children on the last CPU that it may use, and, where that is
/// allowed, before other programs there.
fn alone() -> &'static str {
    let mut set = CpuSet::new();
    set.set(available_cpus().last().copied().unwrap_or(0).into());
    let _ = sched_setaffinity(None, &set);
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) } {
        0 => "real-time",
        _ => "usual",
    }
}

fn google(program: &File, filter: &str) -> Took {
    let out = program.with_extension("json");
    let status = Command::new(program)
        .arg(format!("--benchmark_filter={filter}"))
        .arg(format!("--benchmark_min_time={SECONDS}"))
        .arg(format!("--benchmark_out={}", out.display()))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let text = fs::read_to_string(out).unwrap();
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    let row = &result["benchmarks"][0];
    assert_eq!(row["time_unit"], "ns");
    Took {
        real: row["real_time"].as_f64().unwrap(),
        cpu: row["cpu_time"].as_f64().unwrap(),
    }
}

fn ratio(theirs: &[Took], ours: &[Took], which: fn(&Took) -> f64) -> Ratio {
    let file = |took: &[Took]| ResultFile {
        time: None,
        cases: vec![Measurement {
            name: "memcpy".to_owned(),
            ns: took.iter().map(which).collect(),
        }],
        failed: Vec::new(),
    };
    let mut compared = compare(&file(theirs), &file(ours)).unwrap();
    compared.ratios.remove(0)
}
