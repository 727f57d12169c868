//! Faults that end a process, and portals of its children: each in a process of its own.

mod common;

use common::{Log, alone, enqcmd, map, movdir64b};
use dray_portal::Words;
use dray_portal::hook::{memory, signal};
use std::sync::atomic::{AtomicU64, Ordering};

/// How a child ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Exit(i32),
    Signal(i32),
}

/// Runs `action` in a child that is forked, and says how that ended.
fn child(action: impl FnOnce()) -> End {
    // SAFETY: the child calls what a child of a process with threads may call.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: no core dumps of deaths that are wanted.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
        action();
        // SAFETY: ends the child without cleaning up.
        unsafe { libc::_exit(0) };
    }
    assert!(pid > 0);
    let mut status = 0;
    // SAFETY: it waits for this child.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    match libc::WIFSIGNALED(status) {
        true => End::Signal(libc::WTERMSIG(status)),
        false => End::Exit(libc::WEXITSTATUS(status)),
    }
}

/// What the handler below got.
static SIGNAL: AtomicU64 = AtomicU64::new(0);
static CODE: AtomicU64 = AtomicU64::new(0);
static ADDRESS: AtomicU64 = AtomicU64::new(0);
static RIP: AtomicU64 = AtomicU64::new(0);

/// Notes what it gets, and leaves.
unsafe extern "C" fn note(number: i32, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel's.
    let info = unsafe { &*info };
    // SAFETY: of such a signal.
    let address = unsafe { info.si_addr() };
    SIGNAL.store(number as u64, Ordering::SeqCst);
    CODE.store(info.si_code as u64, Ordering::SeqCst);
    ADDRESS.store(address.addr() as u64, Ordering::SeqCst);
    // SAFETY: the kernel's.
    let rip = unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] };
    RIP.store(rip as u64, Ordering::SeqCst);
    // SAFETY: ends the child.
    unsafe { libc::_exit(77) };
}

/// Installs a handler of the program, by the function that programs call.
fn handle(number: i32, handler: usize) {
    // SAFETY: all zero is an action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler is one.
    let answer = unsafe { signal::sigaction(number, &action, std::ptr::null_mut()) };
    assert_eq!(answer, 0);
}

/// Shared with children.
fn shared() -> &'static [AtomicU64; 4] {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: new pages.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: zeros are atomics, and the page stays.
    unsafe { &*page.cast() }
}

static LOG: Log = Log::new();
const WORDS: Words = [0, 2, 3, 4, 5, 6, 7, 8];

/// Patches both sites.
fn patched() -> usize {
    let portal = map(&LOG);
    // SAFETY: it is mapped.
    unsafe { movdir64b(portal, &WORDS) };
    // SAFETY: it is mapped.
    unsafe { enqcmd(portal, &WORDS) };
    portal
}

#[test]
fn a_forked_child_faults_at_the_portal() {
    let _alone = alone();
    let portal = patched();
    let before = LOG.counts();
    // SAFETY: it faults, as on hardware.
    let end = child(|| unsafe { movdir64b(portal, &WORDS) });
    assert_eq!(end, End::Signal(libc::SIGSEGV));
    // SAFETY: it faults, as on hardware.
    let end = child(|| assert!(!unsafe { enqcmd(portal, &WORDS) }));
    assert_eq!(end, End::Signal(libc::SIGSEGV));
    assert_eq!(LOG.counts(), before);
    // A portal of its own works at the same sites.
    let end = child(|| {
        let own = map(&LOG);
        let (posted, _) = LOG.counts();
        // SAFETY: it is mapped.
        unsafe { movdir64b(own, &WORDS) };
        // SAFETY: ends the child.
        unsafe { libc::_exit((LOG.counts().0 - posted) as i32) };
    });
    assert_eq!(end, End::Exit(1));
}

#[test]
fn a_child_that_shares_memory_can_submit() {
    let _alone = alone();
    let portal = patched();
    let (posted, _) = LOG.counts();
    extern "C" fn submit(portal: *mut libc::c_void) -> i32 {
        // SAFETY: it is mapped.
        unsafe { movdir64b(portal.addr(), &WORDS) };
        0
    }
    let mut stack = vec![0u128; 1 << 14];
    let top = stack.as_mut_ptr_range().end.cast();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: as vfork, but on a stack of its own.
    let pid = unsafe { libc::clone(submit, top, flags, portal as *mut _) };
    assert!(pid > 0);
    let mut status = 0;
    // SAFETY: it waits for this child.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
    assert_eq!(LOG.counts().0, posted + 1);
}

#[test]
fn use_after_munmap_is_a_fault_at_the_exact_address() {
    let _alone = alone();
    let seen = shared();
    let end = child(|| {
        let portal = patched();
        handle(libc::SIGSEGV, report as *const () as usize);
        TELL.store((&raw const *seen).addr() as u64, Ordering::SeqCst);
        // SAFETY: the page is this child's.
        unsafe { dray_portal::hook::memory::munmap(portal as *mut _, 4096) };
        seen[3].store(portal as u64 + 0x1c0, Ordering::SeqCst);
        // SAFETY: it faults.
        unsafe { movdir64b(portal + 0x1c0, &WORDS) };
    });
    assert_eq!(end, End::Exit(77));
    let [code, address, rip, expected] = seen.each_ref().map(|w| w.load(Ordering::SeqCst));
    assert_eq!(code, 1, "SEGV_MAPERR");
    assert_eq!(address, expected);
    assert_eq!(rip, movdir64b as *const () as u64);
}

static TELL: AtomicU64 = AtomicU64::new(0);

/// Reports to the parent what the handler got.
unsafe extern "C" fn report(_: i32, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the page that the parent shares.
    let seen = unsafe { &*(TELL.load(Ordering::SeqCst) as *const [AtomicU64; 4]) };
    // SAFETY: the kernel's.
    let info = unsafe { &*info };
    seen[0].store(info.si_code as u64, Ordering::SeqCst);
    // SAFETY: of such a signal.
    seen[1].store(unsafe { info.si_addr() }.addr() as u64, Ordering::SeqCst);
    // SAFETY: the kernel's.
    let rip = unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] };
    seen[2].store(rip as u64, Ordering::SeqCst);
    // SAFETY: ends the child.
    unsafe { libc::_exit(77) };
}

#[test]
fn mprotect_of_a_range_protects_the_pages_around_a_portal() {
    let _alone = alone();
    let end = child(|| {
        let portal = map(&LOG);
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: new pages.
        let room = unsafe { libc::mmap(std::ptr::null_mut(), 3 * 4096, protection, flags, -1, 0) };
        let middle = room as usize + 4096;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the pages are this child's.
        let moved =
            unsafe { memory::mremap(portal as *mut _, 4096, 4096, flags, middle as *mut _) };
        assert_eq!(moved as usize, middle);
        let (first, bytes) = (middle - 4096, 3 * 4096);
        // SAFETY: these pages are this child's.
        let answer = unsafe { memory::mprotect(first as *mut _, bytes, libc::PROT_READ) };
        assert_eq!(answer, 0);
        // SAFETY: as above.
        let answer = unsafe { memory::mprotect(middle as *mut _, 4096, libc::PROT_WRITE) };
        assert_eq!(answer, 0);
        let before = LOG.counts().0;
        // SAFETY: it is mapped.
        unsafe { movdir64b(middle, &WORDS) };
        assert_eq!(LOG.counts().0, before + 1);
        handle(libc::SIGSEGV, note as *const () as usize);
        let last = (middle + 4096) as *mut u8;
        // SAFETY: it faults.
        unsafe { last.write_volatile(1) };
    });
    assert_eq!(end, End::Exit(77), "the last page cannot be written");
}

#[test]
fn an_unreadable_source_is_a_fault_of_the_program() {
    let _alone = alone();
    for warm in [false, true] {
        let seen = shared();
        let end = child(|| {
            let portal = map(&LOG);
            let page = shared() as *const _ as usize;
            // SAFETY: the page is this child's.
            unsafe { libc::munmap(page as *mut _, 4096) };
            handle(libc::SIGSEGV, report as *const () as usize);
            TELL.store((&raw const *seen).addr() as u64, Ordering::SeqCst);
            seen[3].store(page as u64, Ordering::SeqCst);
            if warm {
                // SAFETY: it is mapped.
                unsafe { movdir64b(portal, &WORDS) };
            }
            // SAFETY: it faults.
            unsafe { movdir64b(portal, page as *const Words) };
        });
        assert_eq!(end, End::Exit(77));
        let [code, address, rip, expected] = seen.each_ref().map(|w| w.load(Ordering::SeqCst));
        assert_eq!((code, address), (1, expected), "warm {warm}");
        assert_eq!(rip, movdir64b as *const () as u64);
    }
}

#[test]
fn misaligned_and_reserved_forms_raise_general_protection() {
    let _alone = alone();
    let portal = patched();
    // Not on a line.
    // SAFETY: it faults.
    let end = child(|| unsafe { movdir64b(portal + 8, &WORDS) });
    // The child has no portal, but the line comes first.
    assert_eq!(end, End::Signal(libc::SIGSEGV));
    for (words, destination) in [([1, 0, 0, 0, 0, 0, 0, 0], 0), (WORDS, 4)] {
        let seen = shared();
        let end = child(|| {
            let portal = map(&LOG);
            handle(libc::SIGSEGV, report as *const () as usize);
            TELL.store((&raw const *seen).addr() as u64, Ordering::SeqCst);
            // SAFETY: it faults.
            unsafe { enqcmd(portal + destination, &words) };
        });
        assert_eq!(end, End::Exit(77));
        let [code, address, ..] = seen.each_ref().map(|w| w.load(Ordering::SeqCst));
        assert_eq!((code, address), (0x80, 0));
    }
}

#[test]
fn other_faults_reach_the_handler_of_the_program_or_end_it() {
    let _alone = alone();
    patched();
    // By no handler.
    // SAFETY: it faults.
    let end = child(|| unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) });
    assert_eq!(end, End::Signal(libc::SIGSEGV));
    // SAFETY: an invalid instruction.
    let end = child(|| unsafe { std::arch::asm!("ud2") });
    assert_eq!(end, End::Signal(libc::SIGILL));
    // By a handler, and submissions still work.
    let end = child(|| {
        handle(libc::SIGSEGV, note as *const () as usize);
        let portal = map(&LOG);
        let before = LOG.counts().0;
        // SAFETY: it is mapped.
        unsafe { movdir64b(portal, &WORDS) };
        assert_eq!(LOG.counts().0, before + 1);
        // SAFETY: it faults.
        unsafe { std::ptr::without_provenance_mut::<u8>(24).write_volatile(1) };
    });
    assert_eq!(end, End::Exit(77));
    // A signal from outside too.
    let end = child(|| {
        handle(libc::SIGILL, note as *const () as usize);
        // SAFETY: to this process.
        unsafe { libc::raise(libc::SIGILL) };
    });
    assert_eq!(end, End::Exit(77));
    // Back to the default, as crash handlers do.
    let end = child(|| {
        handle(libc::SIGSEGV, note as *const () as usize);
        // SAFETY: a valid action.
        let old = unsafe { signal::signal(libc::SIGSEGV, libc::SIG_DFL) };
        assert_eq!(old, note as *const () as usize);
        // SAFETY: it faults.
        unsafe { std::ptr::without_provenance_mut::<u8>(24).write_volatile(1) };
    });
    assert_eq!(end, End::Signal(libc::SIGSEGV));
    // Ignored: a fault ends the process all the same, a signal does not.
    let end = child(|| {
        // SAFETY: a valid action.
        unsafe { signal::signal(libc::SIGSEGV, libc::SIG_IGN) };
        // SAFETY: to this process.
        unsafe { libc::raise(libc::SIGSEGV) };
        // SAFETY: ends the child.
        unsafe { libc::_exit(5) };
    });
    assert_eq!(end, End::Exit(5));
}

#[test]
fn a_handler_may_leave_by_longjmp_more_than_once() {
    let _alone = alone();
    patched();
    // SA_RESETHAND holds once, SA_NODEFER and masks do not stick.
    let end = child(|| {
        // SAFETY: all zero is an action.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESETHAND;
        // SAFETY: the handler is one.
        unsafe { signal::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()) };
        let mut now = action;
        // SAFETY: the place is written to.
        unsafe { signal::sigaction(libc::SIGSEGV, std::ptr::null(), &mut now) };
        assert_eq!(now.sa_sigaction, action.sa_sigaction);
        assert_eq!(now.sa_flags & libc::SA_RESETHAND, libc::SA_RESETHAND);
        // SAFETY: it faults.
        unsafe { std::ptr::without_provenance_mut::<u8>(24).write_volatile(1) };
    });
    assert_eq!(end, End::Exit(77));
}
