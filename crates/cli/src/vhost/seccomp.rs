//! `--seccomp`: the system calls that a running switch needs, and no others (seccomp(2)).
//!
//! It bounds what a guest's front end could make of a fault in this process: no program is started, no process
//! forked, no memory becomes executable by mapping, no socket but a local one is made, no other process is traced or
//! signalled. A call that is not on the list fails with EPERM.
//!
//! What it does not bound: paths. All files that the user may open stay open to it, `/proc/self/mem` among them,
//! which writes to executable memory too, and all local sockets that the user may connect to. A user of its own and
//! a file system of its own (see the unit file in `docs/examples`) bound those.

use std::collections::BTreeMap;

use anyhow::Context;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// Allowed whatever their arguments are.
const CALLS: &[libc::c_long] = &[
    // Packets, messages, notifications.
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_eventfd2,
    libc::SYS_getsockopt,
    libc::SYS_io_getevents,
    libc::SYS_io_submit,
    libc::SYS_listen,
    libc::SYS_ppoll,
    libc::SYS_preadv2,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_shutdown,
    libc::SYS_write,
    libc::SYS_writev,
    // Memory of guests, and of this process.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    // Files: sockets, counters, devices.
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    // A work queue's device is looked for by name.
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_readlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_statx,
    libc::SYS_umask,
    libc::SYS_unlinkat,
    // Threads, time, signals, the end.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    // Another filter has it fail as unknown: flags in memory cannot be looked at. The C library takes clone.
    libc::SYS_clone3,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    // What older calls are on this processor.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
];

/// `TCGETS2` of linux/termios.h: newer C libraries ask so whether a file is a terminal.
const TCGETS2: u64 = 0x802c_542a;

/// `ioctl` requests: the interface of a tap port (linux/if_tun.h), and whether stderr is a terminal, and how wide.
#[allow(clippy::unnecessary_cast)] // musl has them as c_int.
const IOCTLS: [u64; 7] = [
    libc::TUNSETIFF as u64,
    libc::TUNSETOFFLOAD as u64,
    libc::TUNSETVNETHDRSZ as u64,
    libc::TCGETS as u64,
    TCGETS2,
    libc::TIOCGWINSZ as u64,
    libc::FIONBIO as u64,
];

/// Allowed if an argument is so: call, number of the argument, comparison, value.
fn conditions() -> Vec<(libc::c_long, u8, Op, u64)> {
    let thread = libc::CLONE_THREAD as u64;
    let not_executable = || (2, Op::MaskedEq(libc::PROT_EXEC as u64), 0);
    let mut all = vec![
        (libc::SYS_socket, 0, Op::Eq, libc::AF_UNIX as u64),
        (libc::SYS_prctl, 0, Op::Eq, libc::PR_SET_NAME as u64),
        // Of the calling thread: those that it starts run on other cores than it.
        (libc::SYS_sched_setaffinity, 0, Op::Eq, 0),
        // Threads, and no process.
        (libc::SYS_clone, 0, Op::MaskedEq(thread), thread),
        (libc::SYS_tgkill, 0, Op::Eq, std::process::id().into()),
    ];
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let (argument, op, value) = not_executable();
        all.push((call, argument, op, value));
    }
    all.extend(IOCTLS.map(|request| (libc::SYS_ioctl, 1, Op::Eq, request)));
    all
}

/// Calls that match a rule have one result, all others another.
fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    (others, matching): (SeccompAction, SeccompAction),
) -> anyhow::Result<BpfProgram> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, others, matching, arch)?;
    Ok(filter.try_into()?)
}

/// The filters, in the order in which they are installed.
fn programs() -> anyhow::Result<[BpfProgram; 2]> {
    let unknown = SeccompAction::Errno(libc::ENOSYS as u32);
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        CALLS.iter().map(|c| (*c, Vec::new())).collect();
    for (call, argument, op, value) in conditions() {
        let condition = SeccompCondition::new(argument, Len::Dword, op, value)?;
        let rule = SeccompRule::new(vec![condition])?;
        rules.entry(call).or_default().push(rule);
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    Ok([
        program(clone3, (SeccompAction::Allow, unknown))?,
        program(rules, (refused, SeccompAction::Allow))?,
    ])
}

/// Installs the filters in all threads, for good.
pub(super) fn install() -> anyhow::Result<()> {
    for program in programs().context("cannot make the seccomp filters")? {
        let installed = seccompiler::apply_filter_all_threads(&program);
        installed.context("cannot install the seccomp filters; run without --seccomp")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    /// On a thread of its own, which ends with the filter.
    #[test]
    fn calls_that_are_not_on_the_list_are_refused() {
        let thread = std::thread::spawn(|| {
            for program in programs().expect("filters") {
                seccompiler::apply_filter(&program).expect("installed");
            }
            let refused = |result: Option<ErrorKind>, what: &str| {
                assert_eq!(result, Some(ErrorKind::PermissionDenied), "{what}");
            };
            let inet = std::net::UdpSocket::bind("127.0.0.1:0");
            refused(inet.err().map(|e| e.kind()), "a socket of the network");
            let program = std::process::Command::new("/bin/true").status();
            refused(program.err().map(|e| e.kind()), "another program");
            // SAFETY: it has no effect but an error.
            let forked = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
            if forked == 0 {
                // SAFETY: a process that there should not be ends.
                unsafe { libc::_exit(0) };
            }
            assert_eq!(forked, -1, "another process");
            // SAFETY: signal 0 has no effect.
            let signalled = unsafe { libc::syscall(libc::SYS_tgkill, 1, 1, 0) };
            let why = (signalled == -1).then(|| std::io::Error::last_os_error().kind());
            refused(why, "a signal to another process");
            let own = std::process::id();
            // SAFETY: as above.
            let signalled = unsafe { libc::syscall(libc::SYS_tgkill, own, own, 0) };
            assert_eq!(signalled, 0, "one to this process");
            let thread = std::thread::spawn(|| 7);
            assert_eq!(thread.join().expect("a thread"), 7);
            let map = |prot| {
                let (none, flags) = (
                    std::ptr::null_mut(),
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                );
                // SAFETY: a new mapping, which is not used.
                let at = unsafe { libc::mmap(none, 4096, prot, flags, -1, 0) };
                (at == libc::MAP_FAILED).then(|| std::io::Error::last_os_error().kind())
            };
            refused(map(libc::PROT_READ | libc::PROT_EXEC), "executable memory");
            assert_eq!(map(libc::PROT_READ | libc::PROT_WRITE), None);
            // SAFETY: the kernel looks at no memory of ours.
            let traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
            assert_eq!(traced, -1, "a process that is looked into");
            let dir = std::env::temp_dir().join(format!("dray-seccomp-{}", std::process::id()));
            std::fs::write(&dir, "a file").expect("files are written");
            std::fs::remove_file(&dir).expect("and removed");
        });
        thread.join().expect("as it should be");
    }
}
