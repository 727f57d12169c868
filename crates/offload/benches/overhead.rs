//! What the library costs programs whose calls are below the threshold.
//!
//! `cargo bench -p dray-offload --bench overhead [calls] [sqlite] [redis]`: by name, or all. Each
//! round runs every variant once, in turns; ratios are those within a round.

use std::ffi::c_void;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A library that does nothing but go on to the next function: what any library in front costs.
const FORWARD: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static void *(*next)(void *, const void *, size_t);
__attribute__((constructor)) static void start(void) { next = dlsym(RTLD_NEXT, "memcpy"); }
void *memcpy(void *to, const void *from, size_t len) { return next(to, from, len); }
"#;
/// Set in the process that measures.
const MEASURE: &str = "DRAY_OFFLOAD_BENCH";

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    if std::env::var_os(MEASURE).is_some() {
        println!("{}", calls_ns());
        return Ok(());
    }
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let asked = |name: &str| {
        let names = asked.iter().filter(|word| !word.starts_with('-'));
        names.clone().count() == 0 || names.clone().any(|word| word == name)
    };
    let directory = tempfile::tempdir()?;
    let library = directory.path().join("libdray_offload.so");
    let bytes = dray_preload::offload_library().ok_or("no library for this platform")?;
    fs::write(&library, bytes)?;
    println!(
        "load average {}",
        fs::read_to_string("/proc/loadavg")?.trim()
    );
    if asked("calls") {
        calls(directory.path(), &library)?;
    }
    for (name, run) in [("sqlite", sqlite as Run), ("redis", redis as Run)] {
        if asked(name) {
            paired(name, &library, directory.path(), run)?;
        }
    }
    Ok(())
}

/// Nanoseconds of one memcpy of 32 bytes: the lower quartile of many short batches, which other
/// processes have disturbed least.
fn calls_ns() -> f64 {
    const CALLS: u32 = 20_000;
    let from = [7_u8; 32];
    let mut to = [0_u8; 32];
    let mut batches: Vec<f64> = (0..400)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                let to = std::hint::black_box(to.as_mut_ptr().cast::<c_void>());
                let len = std::hint::black_box(32);
                // SAFETY: both are 32 bytes long.
                unsafe { libc::memcpy(to, from.as_ptr().cast(), len) };
            }
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    quartiles(&mut batches)[0]
}

fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|part| values[(values.len() - 1) * part / 4])
}

fn calls(directory: &Path, library: &Path) -> Result<(), Error> {
    let source = directory.join("forward.c");
    fs::write(&source, FORWARD)?;
    let forward = directory.join("forward.so");
    let built = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .args([&forward, &source])
        .status()?;
    if !built.success() {
        return Err("cc has failed".into());
    }
    let this = std::env::current_exe()?;
    let measure = |preload: Option<&Path>| -> Result<f64, Error> {
        let mut command = Command::new(&this);
        command.env(MEASURE, "1").env("DRAY_OFFLOAD_MOVER", "cpu");
        if let Some(preload) = preload {
            command.env("LD_PRELOAD", preload);
        }
        let output = command.output()?;
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    };
    let (mut plain, mut forwarded, mut offload) = (vec![], vec![], vec![]);
    for _ in 0..21 {
        plain.push(measure(None)?);
        forwarded.push(measure(Some(&forward))?);
        offload.push(measure(Some(library))?);
    }
    let pairs = |a: &[f64], b: &[f64], of: fn(f64, f64) -> f64| {
        let mut all: Vec<f64> = a.iter().zip(b).map(|(a, b)| of(*a, *b)).collect();
        quartiles(&mut all)
    };
    println!("memcpy of 32 bytes, ns a call: quartiles of 21 rounds");
    let [a, b, c] = quartiles(&mut plain.clone());
    println!("  C library alone           {a:.2} {b:.2} {c:.2}");
    for (name, values) in [("bare forward", &forwarded), ("libdray_offload", &offload)] {
        let [a, b, c] = quartiles(&mut values.clone());
        let [d, e, f] = pairs(values, &plain, |with, without| with - without);
        let [g, h, i] = pairs(values, &plain, |with, without| with / without);
        println!(
            "  {name:25} {a:.2} {b:.2} {c:.2}   added {d:.2} {e:.2} {f:.2}   ratio {g:.3} {h:.3} {i:.3}"
        );
    }
    Ok(())
}

/// CPU seconds of a program, with or without the library.
type Run = fn(&Path, Option<&Path>) -> Result<f64, Error>;

fn paired(name: &str, library: &Path, directory: &Path, run: Run) -> Result<(), Error> {
    const ROUNDS: usize = 25;
    run(directory, None)?;
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        // Which goes first changes, so that what drifts falls on both.
        let (with, without);
        if round % 2 == 0 {
            without = run(directory, None)?;
            with = run(directory, Some(library))?;
        } else {
            with = run(directory, Some(library))?;
            without = run(directory, None)?;
        }
        ratios.push(with / without);
    }
    let [a, b, c] = quartiles(&mut ratios);
    // Of 25 values, the 8th and the 18th enclose the median at 95.7 % (binomial).
    println!(
        "{name}: CPU time with the library by that without: quartiles {a:.4} {b:.4} {c:.4}, 95 % \
         interval of the median {:.4} to {:.4} ({ROUNDS} pairs)",
        ratios[7], ratios[17]
    );
    Ok(())
}

fn command(program: &str, library: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    if let Some(library) = library {
        // No device is opened: what is measured is the way to the C library.
        command
            .env("LD_PRELOAD", library)
            .env("DRAY_OFFLOAD_MOVER", "cpu");
    }
    command
}

/// User and system time, of a child that has ended.
fn cpu_seconds(child: &Child) -> Result<f64, Error> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let mut status = 0;
    // SAFETY: places for both.
    let ended = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, usage.as_mut_ptr()) };
    if ended < 0 || status != 0 {
        return Err(format!("the program ended with {status}").into());
    }
    // SAFETY: written above.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

fn sqlite(_: &Path, library: Option<&Path>) -> Result<f64, Error> {
    const SQL: &str = "create table t(k integer primary key, v text);\
        with recursive n(x) as (select 1 union all select x+1 from n where x<120000)\
        insert into t select x, hex(zeroblob(40)) || x from n;\
        create index i on t(v); update t set v = v || k where k % 3 = 0;\
        select count(*), sum(length(v)) from t where v like '%7%'; pragma integrity_check;";
    let child = command("sqlite3", library)
        .args([":memory:", SQL])
        .stdout(Stdio::null())
        .spawn()?;
    cpu_seconds(&child)
}

fn redis(directory: &Path, library: Option<&Path>) -> Result<f64, Error> {
    let path: PathBuf = directory.join("redis");
    let _ = fs::remove_file(&path);
    let mut child = command("redis-server", library)
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut out = child.stdout.take().ok_or("no output")?;
    let mut said = Vec::new();
    let mut block = [0; 4096];
    while !String::from_utf8_lossy(&said).contains("eady to accept connections") {
        let count = out.read(&mut block)?;
        if count == 0 {
            return Err("redis-server has not started".into());
        }
        said.extend_from_slice(&block[..count]);
    }
    let done = Command::new("redis-benchmark")
        .args([
            "-q", "-t", "set,get", "-d", "100", "-n", "60000", "-P", "16", "-s",
        ])
        .arg(&path)
        .stdout(Stdio::null())
        .status()?;
    if !done.success() {
        return Err("redis-benchmark has failed".into());
    }
    let mut connection = UnixStream::connect(&path)?;
    connection.write_all(b"SHUTDOWN NOSAVE\r\n")?;
    out.read_to_end(&mut said)?;
    cpu_seconds(&child)
}
