//! Programs that poll with PAUSE beside programs that poll with sched_yield(2), under `dray run`: how
//! many copies of 64 KiB a second, by 1, 2, 10 and 64 threads, as root and as an ordinary user.
//!
//! `cargo bench -p dray-run --bench polling [-- ROUNDS]`. Each round is a session of both variants, one
//! after the other; medians and quartiles over the rounds. As another user only where it is root.

use std::arch::asm;
use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dray_idxd::Profile;
use dray_run::{Presence, Recording, Session, Supervise};
use dray_spec::{Descriptor, Flags, Opcode};
use zerocopy::{FromZeros, IntoBytes};

const BYTES: usize = 64 << 10;
const THREADS: [usize; 4] = [1, 2, 10, 64];
const WAYS: [&str; 2] = ["pause", "yield"];
/// Rounds, if the command line does not say.
const ROUNDS: usize = 7;
/// How long each variant is counted, and how long it runs before.
const COUNTED: Duration = Duration::from_millis(500);
const BEFORE: Duration = Duration::from_millis(300);
/// A user without privileges.
const NOBODY: u32 = 65534;

type Answer<T> = Result<T, Box<dyn Error>>;

fn main() -> Answer<()> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["session", threads] => session(threads),
        ["client", threads, way] => client(threads.parse()?, way == "pause"),
        [] => compare(ROUNDS),
        [rounds] => compare(rounds.parse()?),
        _ => Err("usage: polling [ROUNDS]".into()),
    }
}

/// Prints the table.
fn compare(rounds: usize) -> Answer<()> {
    // Where an ordinary user can execute it.
    let directory = tempfile::tempdir()?;
    let program = directory.path().join("polling");
    fs::copy(std::env::current_exe()?, &program)?;
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(directory.path(), everybody)?;
    let root = rustix::process::getuid().is_root();
    let users: &[(&str, Option<u32>)] = match root {
        true => &[("root", None), ("user", Some(NOBODY))],
        false => &[("user", None)],
    };
    println!("{rounds} rounds; copies of 64 KiB a second, median (quartiles)\n");
    println!("| user | threads | PAUSE | sched_yield | yield / pause |");
    println!("|---|---|---|---|---|");
    for (name, user) in users {
        for threads in THREADS {
            let mut rates = [const { Vec::new() }; 2];
            let mut ratios = Vec::new();
            for _ in 0..rounds {
                let round = round(&program, *user, threads)?;
                for (rates, rate) in rates.iter_mut().zip(round) {
                    rates.push(rate);
                }
                ratios.push(round[1] / round[0]);
            }
            let [pause, yields] = rates.map(|mut rates| shown(&mut rates, 0));
            let ratio = shown(&mut ratios, 2);
            println!("| {name} | {threads} | {pause} | {yields} | {ratio} |");
        }
    }
    Ok(())
}

/// Median and quartiles.
fn shown(values: &mut [f64], digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    let [low, median, high] = [1, 2, 3].map(|n| values[(values.len() - 1) * n / 4]);
    format!("{median:.digits$} ({low:.digits$} to {high:.digits$})")
}

/// Both variants in one session: copies a second.
fn round(program: &Path, user: Option<u32>, threads: usize) -> Answer<[f64; 2]> {
    let mut command = Command::new(program);
    command.args(["session", &threads.to_string()]);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let output = command.output()?;
    let text = String::from_utf8(output.stdout)?;
    let rates: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let rates: Result<[f64; 2], _> = rates.try_into();
    rates.map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned().into())
}

/// Runs the clients in a session. This process has one thread.
fn session(threads: &str) -> Answer<()> {
    let program = std::env::current_exe()?.into_os_string();
    let script = WAYS
        .map(|way| format!("\"$0\" client {threads} {way}"))
        .join(" && ");
    let words = ["sh".into(), "-c".into(), OsString::from(script), program];
    let ended = dray_run::run(&Session {
        command: words.to_vec(),
        personality: "6.8".parse()?,
        profile: Some(Profile::resolve("4e1w-s")?),
        iax: false,
        portal: dray_preload::library(),
        presence: Presence::Strict,
        require: None,
        redirect: false,
        supervise: Supervise::Never,
        recording: Recording::default(),
        chaos: None,
        thread_sanitizer: false,
        deviation: None,
        injected_panic: None,
    })?;
    ended.ending.pass_on()
}

/// Copies by so many threads at once; prints how many a second.
fn client(threads: usize, pauses: bool) -> Answer<()> {
    use std::os::fd::AsRawFd;
    let node = File::options()
        .read(true)
        .write(true)
        .open("/dev/dsa/wq0.0")?;
    let (null, fd) = (std::ptr::null_mut(), node.as_raw_fd());
    let (protection, flags) = (libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
    // SAFETY: a new mapping.
    let portal = unsafe { libc::mmap(null, 4096, protection, flags, fd, 0) };
    if portal == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error().into());
    }
    let (portal, copies, over) = (portal.addr(), AtomicU64::new(0), AtomicBool::new(false));
    let (begin, counted) = std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| copy(portal, pauses, &copies, &over));
        }
        std::thread::sleep(BEFORE);
        let (begin, first) = (Instant::now(), copies.load(Ordering::Relaxed));
        std::thread::sleep(COUNTED);
        let counted = copies.load(Ordering::Relaxed) - first;
        let took = begin.elapsed();
        over.store(true, Ordering::Relaxed);
        (took, counted)
    });
    println!("{}", counted as f64 / begin.as_secs_f64());
    Ok(())
}

#[repr(align(64))]
struct Record([u8; 32]);

/// One copy after the other, each waited for.
fn copy(portal: usize, pauses: bool, copies: &AtomicU64, over: &AtomicBool) {
    let (from, mut to) = (vec![1u8; BYTES], vec![2u8; BYTES]);
    let mut record = Box::new(Record([0; 32]));
    let status = &raw mut record.0[0];
    let mut descriptor = Descriptor::new_zeroed();
    let flags = Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD;
    descriptor.flags_opcode = flags.bits() | u32::from(Opcode::Memmove as u8) << 24;
    descriptor.completion_addr = status.addr() as u64;
    descriptor.address1 = from.as_ptr().addr() as u64;
    descriptor.address2 = to.as_mut_ptr().addr() as u64;
    descriptor.size = BYTES as u32;
    while !over.load(Ordering::Relaxed) {
        // SAFETY: it is this thread's byte, and the device's.
        unsafe { status.write_volatile(0) };
        while !enqcmd(portal, descriptor.as_bytes()) {
            wait(pauses);
        }
        // SAFETY: as above.
        while unsafe { status.read_volatile() } == 0 {
            wait(pauses);
        }
        // SAFETY: as above.
        let ended = unsafe { status.read_volatile() };
        assert_eq!(ended, 1, "the copy was successful");
        copies.fetch_add(1, Ordering::Relaxed);
    }
}

fn wait(pauses: bool) {
    match pauses {
        true => std::hint::spin_loop(),
        false => rustix::thread::sched_yield(),
    }
}

/// Whether the queue has accepted it.
fn enqcmd(portal: usize, words: &[u8]) -> bool {
    let refused: u8;
    // SAFETY: the page is a portal, and the descriptor has 64 bytes.
    unsafe {
        asm!(
            // enqcmd rdi, [rsi], for older assemblers.
            ".byte 0xf2, 0x0f, 0x38, 0xf8, 0x3e",
            "setz {refused}",
            in("rdi") portal,
            in("rsi") words.as_ptr(),
            refused = out(reg_byte) refused,
            options(nostack),
        );
    }
    refused == 0
}
