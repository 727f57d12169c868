//! Starting a session and seeing it to its end.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dray_idxd::driver::{Driver, Options};
use dray_interpose::{for_glibc, plain};
use dray_remote::{RemoteMemory, Spaces};
use fuser::{Config, Session as FuseSession, SessionACL};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};

use crate::admission::Admission;
use crate::child::Program;
use crate::clients::{Clients, Rules};
use crate::error::{Facility, forbidden, system};
use crate::fault_injection::Countdowns;
use crate::filesystem::Files;
use crate::init::{self, GO, Word};
use crate::machine::SessionDevices;
use crate::openers::Unreached;
use crate::panics::Panics;
use crate::pci;
use crate::recorder::{Recorded, Recorder};
use crate::redirect::{Redirect, Redirected, descendants, is_library, remover};
use crate::sanitize::Findings;
use crate::serial_executor::SerialExecutor;
use crate::signals::Signals;
use crate::supervise::{Followed, Rule, Supervise, Supervision};
use crate::tree::Tree;
use crate::{
    RunError, Session, Stats, Traced, child, cpu, module, mounts, namespace, parts, service,
    thread_sanitizer,
};
use dray_wire::{
    REDIRECT_VARIABLE, SANITIZE_VARIABLE, SOCKET_VARIABLE, STATE_DIRECTORY, SUPERVISE_VARIABLE,
    THREAD,
};

/// What programs have to say when the device has ended, and again to be gone.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// Between two looks whether they are.
const LOOK: Duration = Duration::from_millis(1);

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Exited(u8),
    /// By this signal.
    Signalled(i32),
}

impl Ending {
    fn of(status: i32) -> Ending {
        match libc::WIFSIGNALED(status) {
            true => Ending::Signalled(libc::WTERMSIG(status)),
            false => Ending::Exited(libc::WEXITSTATUS(status) as u8),
        }
    }

    /// Ends this process as the command ended. A parent that waits for it sees the same, but for a dump of
    /// its memory.
    pub fn pass_on(self) -> ! {
        let signal = match self {
            Ending::Exited(code) => std::process::exit(code.into()),
            Ending::Signalled(signal) => signal,
        };
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the limit is one.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: it empties the set.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: it has been written.
        let mut set = unsafe { set.assume_init() };
        // SAFETY: the set is one.
        unsafe { libc::sigaddset(&raw mut set, signal) };
        // SAFETY: the set is one.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
        // SAFETY: it ends this process.
        unsafe { libc::raise(signal) };
        std::process::exit(128 + signal)
    }
}

/// What a session leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How the command ended.
    pub ending: Ending,
    /// What it did, if that was [asked for](crate::Recording::stats).
    pub stats: Option<Stats>,
    /// What became of the [trace](crate::Recording::trace).
    pub traced: Option<Traced>,
    /// Which rules programs broke, if that was [asked for](crate::Recording::sanitize); each was said when it was found.
    pub findings: Option<Findings>,
    /// What became of the [recording](crate::Recording::requests).
    pub requests: Option<dray_recording::Closed>,
    /// Portals that programs mapped.
    pub portals: u64,
    /// Programs that opened a node, and submitted nothing by it.
    pub unreached: Vec<Unreached>,
}

/// Runs a command on virtual devices and waits for its end. For a process with one thread, which
/// stays in the session's namespaces.
///
/// # Errors
/// A profile that cannot be, and what the system does not allow. A command that cannot be started is
/// no error: it ends with code 126 or 127, as under `env`.
pub fn run(session: &Session) -> Result<Ended, RunError> {
    if session.thread_sanitizer {
        thread_sanitizer::check(&session.command)?;
    }
    let spaces = Arc::new(Spaces::new());
    let mut recorder = Recorder::new(
        &session.recording,
        &spaces,
        session.chaos.is_some(),
        session.portal,
    )?;
    let mut driver = Driver::new(
        Options::new(session.personality),
        parts::parts(session.profile.as_ref(), session.personality)?,
    );
    if let Some(profile) = &session.profile {
        driver = parts::load(driver, profile)?;
    }
    let led = std::env::var_os(REDIRECT_VARIABLE).is_some_and(|paths| !paths.is_empty());
    if led && !session.redirect {
        return Err(RunError::Redirected);
    }
    let signals = Signals::block()?;
    let socket = service::Listener::new()?;
    let name = socket.name().trim_start_matches('@').to_owned();
    let redirect = match session.redirect {
        true => Some(Redirect::new(session, &driver)?),
        false => None,
    };
    // Open until this process and the first one have ended.
    let held = match &redirect {
        Some(redirect) => Some(remover::start(&redirect.directory)?),
        None => None,
    };
    std::mem::forget(held);
    let variables = variables(session, &socket, redirect.as_ref());
    let program = Program::new(&session.command, &variables, signals.before())?;
    let followed = Followed::new(session.supervise, socket.name());
    let (ours, theirs) = init::line()?;
    let early = signals.early();
    let (first, privileged, descendants) = match redirect {
        None => {
            let privileged = namespace::enter()?;
            (namespace::fork()?, privileged, None)
        }
        Some(_) => {
            let descendants = descendants::adopt()?;
            (child::fork()?, namespace::is_root(), Some(descendants))
        }
    };
    if first == 0 {
        drop((ours, socket));
        let directory = redirect.as_ref().map(|redirect| &redirect.directory);
        init::be(&theirs, &signals, &program, &followed, directory);
    }
    drop(theirs);
    outrun_programs();
    let panics = Panics::watch()?;
    let countdowns = Countdowns::to(session.injected_panic);
    let memory = RemoteMemory::new(spaces.clone(), session.presence);
    let countdown = &countdowns.dispatcher;
    let machine = SessionDevices::start(
        driver,
        &memory,
        &mut recorder,
        countdown,
        session.chaos,
        session.deviation,
    )?;
    let machine = Arc::new(machine.with_iax(session).with_char_links());
    let rules = Rules {
        require: session.require,
        privileged,
        preloaded: session.redirect,
    };
    let clients = Arc::new(Clients::new(
        machine.clone(),
        spaces,
        recorder.owners(),
        rules,
        countdowns.driver,
    ));
    let executor = SerialExecutor::open(machine.device_ids())?;
    let redirected = match &redirect {
        Some(redirect) => {
            let tree = Tree { machine: &machine };
            let files = redirect.render(&tree)?;
            Some(Arc::new(Redirected::new(
                clients.clone(),
                files,
                socket.name(),
            )))
        }
        None => None,
    };
    let rule = match redirect {
        // What such programs find is not there to be mapped.
        Some(_) => Rule::FindNothing,
        None => Rule::By(session.supervise),
    };
    let supervision = Supervision::new(rule, clients.clone(), executor.clone());
    let after = socket.serve(
        clients.clone(),
        executor.clone(),
        supervision.clone(),
        redirected,
        Admission::new(first as u32),
    )?;
    if redirect.is_none() {
        let files = Files::new(
            clients.clone(),
            executor,
            after,
            supervision,
            countdowns.files,
        );
        serve(session, &name, &machine, files)?;
    }
    recorder.begin()?;
    for number in early {
        // SAFETY: the first process is a child that has not been waited for.
        unsafe { libc::kill(first, number) };
    }
    write(&ours, &[GO]).map_err(system("write"))?;
    let injected = session.injected_panic.and_then(|panic| panic.last_words);
    let last_words = injected.unwrap_or(LAST_WORDS);
    let ending = watch(&ours, &signals, &panics, last_words, first);
    if let Some(descendants) = descendants {
        // Those that the first process would have ended, if it was killed.
        descendants.end();
    }
    for id in machine.device_ids() {
        let polled = machine.device(id).map(|device| device.polling_time());
        if let Some(time) = polled.filter(|time| !time.is_zero()) {
            eprintln!(
                "note: dsa{id} polled for a program under a seccomp filter: {:.3} s of CPU time",
                time.as_secs_f64()
            );
        }
    }
    let Recorded {
        stats,
        traced,
        findings,
        requests,
    } = recorder.end(&machine)?;
    let unreached = clients.openers.sum_up();
    let stats = stats.map(|stats| stats.with(unreached.clone(), ending.as_ref().ok().copied()));
    Ok(Ended {
        ending: ending?,
        stats,
        traced,
        findings,
        requests,
        portals: clients.openers.portals(),
        unreached,
    })
}

/// Gives the threads that are started from now on precedence over programs that poll without giving
/// way: a device makes progress whatever its clients do. Without the privilege the priority stays as it is.
fn outrun_programs() {
    const FIRST: i32 = -20;
    // SAFETY: it concerns this thread alone, and those that it starts.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, FIRST) };
}

/// Where programs find the shared object: in a directory that is in memory.
pub(crate) const PORTAL: &str = "/dev/.dray-portal.so";

/// Variables that programs find in their environment.
fn variables(
    session: &Session,
    socket: &service::Listener,
    redirect: Option<&Redirect>,
) -> Vec<(&'static str, OsString)> {
    let mut variables = vec![
        (SOCKET_VARIABLE, socket.name().into()),
        (SUPERVISE_VARIABLE, session.supervise.name().into()),
    ];
    if session.portal.is_some() {
        let library = redirect.map(|redirect| redirect.library().into_os_string());
        let mut preload = library.unwrap_or_else(|| PORTAL.into());
        if session.supervise == Supervise::Never {
            // Nobody takes it out of the environment of programs that are not glibc's.
            preload = for_glibc(Path::new(&preload));
        }
        for other in others() {
            preload.push(":");
            preload.push(other);
        }
        variables.push(("LD_PRELOAD", preload));
        // It would end the program because a library is preloaded before its own.
        variables.push(with_option("ASAN_OPTIONS", "verify_asan_link_order=0"));
    }
    if session.thread_sanitizer {
        variables.push((SANITIZE_VARIABLE, THREAD.into()));
    }
    if session.supervise == Supervise::Always {
        // It traces the program itself, which a supervisor forbids, and would end it.
        variables.push(with_option("LSAN_OPTIONS", "detect_leaks=0"));
    }
    if std::env::var_os(REDIRECT_VARIABLE).is_some() {
        // That of a session around this one.
        variables.push((REDIRECT_VARIABLE, OsString::new()));
    }
    if let Some((name, value)) = redirect.map(Redirect::variable) {
        variables.retain(|(other, _)| *other != name);
        variables.push((name, value));
    }
    let commands = redirect.map(Redirect::commands);
    variables.extend(path(commands.unwrap_or_else(|| module::COMMANDS.into())));
    variables
}

/// A variable of this environment with the options of a memory checker, and one more.
fn with_option(name: &'static str, option: &str) -> (&'static str, OsString) {
    let mut options = std::env::var_os(name).unwrap_or_default();
    if !options.is_empty() {
        options.push(":");
    }
    options.push(option);
    (name, options)
}

/// The search path, with the commands of a session before those of the machine.
fn path(commands: PathBuf) -> Option<(&'static str, OsString)> {
    let before = std::env::var_os("PATH")?;
    let mut path = commands.into_os_string();
    path.push(":");
    // One of a session around this one is hidden by it.
    let rest = before.as_bytes().strip_prefix(path.as_bytes());
    path.push(OsStr::from_bytes(rest.unwrap_or(before.as_bytes())));
    Some(("PATH", path))
}

/// What is preloaded already, but for the library of a session around this one.
fn others() -> Vec<OsString> {
    let preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let names = preloaded
        .as_bytes()
        .split(|byte| matches!(byte, b':' | b' '));
    let others = names.filter(|name| {
        let path = plain(OsStr::from_bytes(name));
        !name.is_empty() && path != Path::new(PORTAL) && !is_library(path)
    });
    others
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect()
}

/// Mounts the tree and shows its directories where a machine has them.
fn serve(
    session: &Session,
    name: &str,
    machine: &SessionDevices,
    files: Files,
) -> Result<(), RunError> {
    let (stage, fuse) = mounts::stage(name)?;
    // What changes the machine is done in the order in which one thread reads it.
    let config = Config::default();
    let served = FuseSession::from_fd(files, fuse, SessionACL::All, config)
        .map_err(forbidden(Facility::Fuse))?;
    served.spawn().map_err(forbidden(Facility::Fuse))?;
    for directory in [
        "/sys/bus/dsa",
        "/sys/module/idxd",
        "/sys/dev/char",
        "/dev/dsa",
        "/dev/char",
    ] {
        stage.show(Path::new(directory))?;
    }
    let drivers = Path::new("/sys/bus/pci/drivers");
    if drivers.is_dir() {
        stage.show(&drivers.join("idxd"))?;
    }
    for address in machine.pci_addresses() {
        let bus = pci::bus(address);
        let root = format!("devices/pci{bus}");
        stage.show(&Path::new("/sys").join(&root))?;
        let link = Path::new("/sys/bus/pci/devices").join(address);
        stage.link(&format!("../../../{root}/{address}"), &link)?;
    }
    stage.directory(Path::new(STATE_DIRECTORY))?;
    if let Some(bytes) = session.portal {
        stage.put(bytes, Path::new(PORTAL))?;
    }
    let modules = std::fs::read_to_string(module::MODULES).unwrap_or_default();
    stage.put(cpu::shown().as_bytes(), Path::new(cpu::INFO))?;
    stage.put(module::list(&modules).as_bytes(), Path::new(module::LIST))?;
    stage.directory(Path::new(module::COMMANDS))?;
    for (name, script) in module::scripts(Path::new(module::COMMANDS), Path::new(module::LIST)) {
        let file = Path::new(module::COMMANDS).join(name);
        stage.put(script.as_bytes(), &file)?;
    }
    stage.keep(Path::new(module::COMMANDS))?;
    stage.clear()
}

/// Waits for the end of the command, and passes signals on to it.
fn watch(
    line: &OwnedFd,
    signals: &Signals,
    panics: &Panics,
    last_words: Duration,
    first: libc::pid_t,
) -> Result<Ending, RunError> {
    let ending = loop {
        let mut files = [
            PollFd::new(line, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(panics, PollFlags::IN),
        ];
        match poll(&mut files, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(system("poll")(errno)),
        }
        let spoken = !files[0].revents().is_empty();
        // Before the end of a command that may have come of it.
        if let Some(error) = panics.error() {
            kill(line, first, last_words);
            return Err(error);
        }
        if spoken {
            break listen(line);
        }
        while let Some(signal) = signals.next() {
            match signal.number {
                libc::SIGCHLD => {}
                libc::SIGTSTP if !signal.sent => {
                    // The terminal has stopped the programs, too. The shell waits for this one.
                    // SAFETY: it stops this process until it is continued.
                    unsafe { libc::raise(libc::SIGSTOP) };
                }
                number if signal.sent => {
                    // SAFETY: the first process is a child that has not been waited for.
                    unsafe { libc::kill(first, number) };
                }
                _ => {}
            }
        }
    };
    // SAFETY: without a place for the status; the first process is a child.
    while unsafe { libc::waitpid(first, std::ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    ending
}

/// Ends a session whose device has ended. Before that its programs have a moment to handle the errors with
/// which their descriptors and calls end.
fn kill(line: &OwnedFd, first: libc::pid_t, last_words: Duration) {
    let until = Instant::now() + last_words;
    // The command may end by itself.
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        let mut file = [PollFd::new(line, PollFlags::IN)];
        let left = Timespec::try_from(left).unwrap_or_default();
        if poll(&mut file, Some(&left)) != Err(Errno::INTR) {
            break;
        }
    }
    // SAFETY: the first process is a child that has not been waited for.
    unsafe { libc::kill(first, libc::SIGKILL) };
    // One that waits for the file system of this process goes when this one does.
    let since = Instant::now();
    // SAFETY: without a place for the status; the first process is a child.
    while unsafe { libc::waitpid(first, std::ptr::null_mut(), libc::WNOHANG) } == 0
        && since.elapsed() < LAST_WORDS
    {
        thread::sleep(LOOK);
    }
}

/// The last word of the first process.
fn listen(line: &OwnedFd) -> Result<Ending, RunError> {
    let mut bytes = [0; 8];
    let word = match read(line, &mut bytes) {
        Ok(8) => Word::from_bytes(bytes),
        _ => None,
    };
    let error = io::Error::from_raw_os_error;
    match word {
        Some(Word::Ended(status)) => Ok(Ending::of(status)),
        Some(Word::NoProc(errno)) => Err(forbidden(Facility::Proc)(error(errno))),
        Some(Word::NoProcess(errno)) => Err(system("fork")(error(errno))),
        None => Err(RunError::InitDied),
    }
}
