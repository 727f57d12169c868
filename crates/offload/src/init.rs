//! The start, when the program is loaded, and the end.

use std::ffi::{c_char, c_int};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use dray_placement::Reason;

use crate::calls::Call;
use crate::lanes::Lanes;
use crate::record::Record;
use crate::recorder::Recorder;
use crate::runtime::{self, Runtime};
use crate::settings::{Mover, Settings};
use crate::stats::{Executor, Stats};
use crate::survey::SurveyFile;
use crate::waiting::Waiting;
use crate::{entry, next, queues, table};

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

/// What the end needs.
struct Printing {
    log_file: Option<String>,
    pid: u32,
}

static PRINTING: std::sync::OnceLock<Printing> = std::sync::OnceLock::new();

extern "C" fn start(_: c_int, _: *const *const c_char, _: *const *const c_char) {
    if runtime::get().is_some() || !next::find() {
        return;
    }
    let (settings, errors) = Settings::from_variables(|name| std::env::var(name).ok());
    for error in errors {
        say(&format!("{error}; the default is used"));
    }
    let shared = settings.session.as_deref().map(Path::new);
    let opened = shared.map_or_else(Stats::anonymous, Stats::open);
    let stats = match opened.or_else(|_| Stats::anonymous()) {
        Ok(stats) => stats,
        // Without memory for counters nothing is offloaded, and all else works.
        Err(_) => return forward(),
    };
    if !Waiting::new(&settings).1 && settings.log_level > 0 {
        say("this processor has neither UMWAIT nor TPAUSE: threads wait with PAUSE");
    }
    let (lanes, executor) = lanes(&settings);
    stats.opened(executor);
    stats.adapted(
        settings.core_percent,
        usize::try_from(settings.min_bytes).unwrap_or(usize::MAX),
    );
    if settings.collect_stats && settings.session.is_none() {
        let pid = std::process::id();
        let log_file = settings.log_file.clone();
        let _ = PRINTING.set(Printing { log_file, pid });
    }
    let mut runtime = Runtime::new(&settings, lanes, stats, set_limits);
    if let Some(path) = &settings.survey {
        match SurveyFile::open(Path::new(path)) {
            Ok(file) => runtime.recorder = Some(Recorder::new(file)),
            Err(error) => say(&format!("{path}: {error}; nothing is surveyed")),
        }
    }
    if let Some(path) = &settings.record {
        match Record::new(Path::new(path)) {
            Ok(record) => runtime.record = Some(record),
            Err(error) => say(&format!("{path}: {error}; nothing is recorded")),
        }
    }
    let runtime = runtime::set(runtime);
    set_limits(runtime, runtime.adaptation.min_bytes());
}

/// Every call goes to the next function.
fn forward() {
    for call in Call::ALL {
        entry::set_limit(call, usize::MAX);
    }
}

fn set_limits(runtime: &Runtime, min_bytes: usize) {
    runtime
        .stats
        .adapted(runtime.adaptation.core_percent(), min_bytes);
    for call in Call::ALL {
        let all = runtime.count_small || runtime.recorder.is_some();
        let limit = match (runtime.calls[call as usize], all, &runtime.record) {
            (false, ..) => usize::MAX,
            (true, true, _) => 1,
            (true, false, Some(record)) => record.min_bytes(),
            (true, false, None) => min_bytes,
        };
        entry::set_limit(call, limit);
    }
}

fn lanes(settings: &Settings) -> (Result<Lanes, Reason>, Executor) {
    if settings.use_stdc {
        return (Err(Reason::Chosen), Executor::Core);
    }
    match settings.mover {
        Mover::Cpu => (Err(Reason::Chosen), Executor::Core),
        Mover::Virtual => match Lanes::on_virtual() {
            Ok(Some(lanes)) => (Ok(lanes), Executor::Virtual),
            Ok(None) => refuse("the kernel does not wipe pages in children", true),
            Err(error) => refuse(&format!("no virtual device: {error}"), true),
        },
        Mover::Hw | Mover::HwOrCpu => {
            let loud = settings.mover == Mover::Hw || settings.log_level > 0;
            match queues::choose(&settings.queues).map(Lanes::on_hardware) {
                Ok(Some(lanes)) => (Ok(lanes), Executor::Hardware),
                Ok(None) => refuse("the kernel does not wipe pages in children", loud),
                Err(error) => refuse(&format!("no work queue: {error}"), loud),
            }
        }
    }
}

fn refuse(message: &str, loud: bool) -> (Result<Lanes, Reason>, Executor) {
    if loud {
        say(&format!("{message}; the core executes"));
    }
    (Err(Reason::NoDevice), Executor::Core)
}

fn say(message: &str) {
    let line = format!("dray offload: {message}\n");
    // SAFETY: bytes of this string, to a file that may or may not be there.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

extern "C" fn end() {
    let (Some(printing), Some(runtime)) = (PRINTING.get(), runtime::get()) else {
        return;
    };
    // What a child of fork has done is in the counters of the process that began.
    if std::process::id() != printing.pid {
        return;
    }
    let text = table::render(&runtime.stats.snapshot());
    let file = printing.log_file.as_ref().and_then(|path| {
        let name = std::env::args_os().next().unwrap_or_default();
        let name = Path::new(&name).file_name().unwrap_or_default();
        let path = format!("{path}.{}.{}", name.to_string_lossy(), printing.pid);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.custom_flags(libc::O_NOFOLLOW);
        let regular = std::fs::symlink_metadata(&path).is_ok_and(|data| !data.is_file());
        (!regular).then(|| options.open(path).ok()).flatten()
    });
    let written = match file {
        Some(mut file) => file.write_all(text.as_bytes()),
        None => {
            say(&text);
            Ok(())
        }
    };
    if written.is_err() {
        say("the histogram cannot be written");
    }
}
