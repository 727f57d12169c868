//! State of the program that must be kept: threads, vector registers, handlers, masks, small stacks.

mod common;

use std::arch::asm;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use common::{Log, code, enqcmd, map, movdir64b};
use dray_portal::{Caller, Portal, Submit, Words};

/// Adds up what it takes: no order counts.
struct Sum([AtomicU64; 8]);

impl Submit for Sum {
    fn post(&self, words: &Words, _: Caller<'_>) {
        for (sum, word) in self.0.iter().zip(words) {
            sum.fetch_add(*word, Ordering::Relaxed);
        }
    }

    fn enqueue(&self, words: &Words, caller: Caller<'_>) -> bool {
        self.post(words, caller);
        true
    }
}

#[test]
fn threads_that_trap_at_one_site_at_once_lose_no_descriptor() {
    const THREADS: u64 = 4;
    const EACH: u64 = 500;
    for _ in 0..20 {
        let sum: &'static Sum = Box::leak(Box::new(Sum([const { AtomicU64::new(0) }; 8])));
        let portal = map(sum);
        // movdir64b rdi, [rsi]; ret — in a place that was not executed yet.
        let at = code(4096) + 4091 - 64;
        let bytes = [0x66, 0x0f, 0x38, 0xf8, 0x3e, 0xc3];
        // SAFETY: memory of the test.
        unsafe { (at as *mut [u8; 6]).write(bytes) };
        // SAFETY: it is such a function.
        let submit: extern "C" fn(usize, *const Words) = unsafe { std::mem::transmute(at) };
        let barrier = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    for turn in 0..EACH {
                        let words: Words = std::array::from_fn(|i| (thread + turn) << i);
                        submit(portal + (turn as usize % 64) * 64, &words);
                    }
                });
            }
        });
        let one: u64 = (0..THREADS)
            .flat_map(|t| (0..EACH).map(move |n| t + n))
            .sum();
        let sums: Vec<_> = sum.0.iter().map(|s| s.load(Ordering::Relaxed)).collect();
        let expected: Vec<_> = (0..8).map(|i| one << i).collect();
        assert_eq!(sums, expected);
        // While a thread of another test is patching, no other thread patches.
        let patched = (0..100_000).any(|_| {
            submit(portal, &[0; 8]);
            std::thread::yield_now();
            // SAFETY: the code that was executed.
            unsafe { (at as *const u8).read_volatile() == 0xe9 }
        });
        assert!(patched);
    }
}

#[test]
fn vector_registers_and_the_red_zone_are_kept() {
    static LOG: Log = Log::new();
    let portal = map(&LOG);
    let words: Words = [7; 8];
    let values: [[u64; 2]; 16] = std::array::from_fn(|i| [i as u64 + 1, !(i as u64)]);
    // Once trapped, then patched.
    for turn in 0..3 {
        let mut after = [[0u64; 2]; 16];
        let zone: u64;
        // SAFETY: the registers are named, and what is written lies in the red zone, which this
        // function leaves to it (it calls others).
        unsafe {
            asm!(
                "mov qword ptr [rsp - 8], 1234",
                "mov qword ptr [rsp - 128], 4321",
                "movups xmm0, [{v}]", "movups xmm1, [{v} + 16]", "movups xmm2, [{v} + 32]",
                "movups xmm3, [{v} + 48]", "movups xmm4, [{v} + 64]", "movups xmm5, [{v} + 80]",
                "movups xmm6, [{v} + 96]", "movups xmm7, [{v} + 112]", "movups xmm8, [{v} + 128]",
                "movups xmm9, [{v} + 144]", "movups xmm10, [{v} + 160]",
                "movups xmm11, [{v} + 176]", "movups xmm12, [{v} + 192]",
                "movups xmm13, [{v} + 208]", "movups xmm14, [{v} + 224]",
                "movups xmm15, [{v} + 240]",
                ".byte 0x66, 0x0f, 0x38, 0xf8, 0x3e",
                "movups [{a}], xmm0", "movups [{a} + 16], xmm1", "movups [{a} + 32], xmm2",
                "movups [{a} + 48], xmm3", "movups [{a} + 64], xmm4", "movups [{a} + 80], xmm5",
                "movups [{a} + 96], xmm6", "movups [{a} + 112], xmm7", "movups [{a} + 128], xmm8",
                "movups [{a} + 144], xmm9", "movups [{a} + 160], xmm10",
                "movups [{a} + 176], xmm11", "movups [{a} + 192], xmm12",
                "movups [{a} + 208], xmm13", "movups [{a} + 224], xmm14",
                "movups [{a} + 240], xmm15",
                "mov {z}, [rsp - 8]",
                "add {z}, [rsp - 128]",
                v = in(reg) values.as_ptr(),
                a = in(reg) after.as_mut_ptr(),
                z = out(reg) zone,
                in("rdi") portal,
                in("rsi") &words,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
                out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _,
                out("xmm15") _,
            );
        }
        assert_eq!(after, values, "turn {turn}");
        assert_eq!(zone, 1234 + 4321, "turn {turn}");
    }
    assert_eq!(LOG.counts(), (3, 0));
}

#[test]
fn flags_are_kept() {
    static LOG: Log = Log::new();
    let portal = map(&LOG);
    let words: Words = [7; 8];
    // CF, PF, AF, ZF, SF, DF, OF.
    let bits = [0, 2, 4, 6, 7, 10, 11];
    let mask: u64 = bits.iter().map(|at| 1 << at).sum();
    // Trapped at first, patched then.
    for set in 0..1_u64 << bits.len() {
        let bit = |(n, at): (usize, &u32)| (set >> n & 1) << at;
        let flags: u64 = bits.iter().enumerate().map(bit).sum();
        let after: u64;
        // SAFETY: the direction is put back; what is pushed is popped.
        unsafe {
            asm!(
                "pushfq",
                "and qword ptr [rsp], {m}",
                "or [rsp], {f}",
                "popfq",
                ".byte 0x66, 0x0f, 0x38, 0xf8, 0x3e",
                "pushfq",
                "pop {a}",
                "cld",
                f = in(reg) flags,
                m = in(reg) !mask,
                a = out(reg) after,
                in("rdi") portal,
                in("rsi") &words,
            );
        }
        assert_eq!(after & mask, flags, "{set:#b}");
    }
    assert_eq!(LOG.counts(), (1 << bits.len(), 0));
}

#[test]
fn plain_stores_are_dropped_and_loads_return_all_ones() {
    static LOG: Log = Log::new();
    let portal = map(&LOG);
    let at = portal as *mut u64;
    // SAFETY: the page is mapped for stores to be dropped.
    unsafe { at.write_volatile(5) };
    // SAFETY: as above.
    unsafe { at.cast::<u8>().wrapping_add(3).write_volatile(5) };
    // SAFETY: as above; loads give ones.
    assert_eq!(unsafe { at.read_volatile() }, u64::MAX);
    // SAFETY: as above.
    assert_eq!(unsafe { at.cast::<u32>().read_volatile() }, u32::MAX);
    // SAFETY: as above.
    let byte = unsafe { at.cast::<u8>().wrapping_add(77).read_volatile() };
    assert_eq!(byte, 0xff);
    let (mut to, mut left): (usize, usize) = (portal, 64);
    let source = [1u8; 64];
    let mut from = source.as_ptr();
    // SAFETY: 64 bytes are read, and dropped.
    unsafe { asm!("rep movsb", inout("rdi") to, inout("rsi") from, inout("rcx") left) };
    let read = from.addr() - source.as_ptr().addr();
    assert_eq!((to, left, read), (portal + 64, 0, 64));
    let sse: u64;
    // SAFETY: as above.
    unsafe {
        asm!("movdqu xmm3, [{p}]", "movups [{p} + 64], xmm3", "movq {s}, xmm3",
            p = in(reg) portal, s = out(reg) sse, out("xmm3") _);
    }
    assert_eq!(sse, u64::MAX);
    assert_eq!(LOG.counts(), (0, 0));
}

#[test]
fn movdir64b_to_other_memory_copies_and_enqcmd_answers_retry() {
    static LOG: Log = Log::new();
    let portal = map(&LOG);
    #[repr(align(64))]
    struct Line(Words);
    let mut to = Line([0; 8]);
    let words: Words = [9, 8, 7, 6, 5, 4, 3, 2];
    let zero_pasid: Words = [0, 8, 7, 6, 5, 4, 3, 2];
    for turn in 0..3 {
        to.0 = [0; 8];
        let at = (&raw mut to.0).addr();
        // SAFETY: both are mine.
        unsafe { movdir64b(at, &words) };
        assert_eq!(to.0, words, "turn {turn}");
        // SAFETY: as above.
        let again = unsafe { enqcmd(at, &zero_pasid) };
        assert!(again, "turn {turn}");
        assert_eq!(to.0, words, "turn {turn}");
        // The same site writes to a portal.
        // SAFETY: the portal is mapped.
        assert!(!unsafe { enqcmd(portal, &zero_pasid) });
    }
    assert_eq!(LOG.counts(), (0, 3));
}

#[test]
fn a_node_can_be_mapped_twice_with_one_page_each() {
    static LOG: Log = Log::new();
    let (first, second) = (map(&LOG), map(&LOG));
    let words: Words = [0; 8];
    // SAFETY: both are mapped.
    unsafe { movdir64b(first, &words) };
    // SAFETY: as above.
    unsafe { movdir64b(second + 4032, &words) };
    assert_eq!(LOG.counts(), (2, 0));
    // SAFETY: the page is this test's.
    let unmapped = unsafe { dray_portal::hook::memory::munmap(first as *mut _, 4096) };
    assert_eq!(unmapped, 0);
    assert_eq!(LOG.unmapped.load(Ordering::SeqCst), 1);
    assert!(!dray_portal::mapping::is_portal(first, 4096));
    // SAFETY: it is mapped.
    unsafe { movdir64b(second, &words) };
    assert_eq!(LOG.counts(), (3, 0));
    let refused = dray_portal::mapping::map(0, 4097, 2, libc::MAP_SHARED, None, Portal::leak(&LOG));
    assert_eq!(refused, Err(libc::EINVAL));
    // Another mapping in its place ends it.
    let (protection, flags) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let place = second as *mut _;
    // SAFETY: the page is this test's.
    let over = unsafe {
        dray_portal::hook::memory::mmap(place, 4096, protection, flags | libc::MAP_FIXED, -1, 0)
    };
    assert_eq!(over.addr(), second);
    assert_eq!(LOG.unmapped.load(Ordering::SeqCst), 2);
}

#[test]
fn a_small_alternate_stack_is_enough() {
    static LOG: Log = Log::new();
    let portal = map(&LOG);
    // What the kernel itself needs at least (AT_MINSIGSTKSZ), and what glibc calls enough.
    // SAFETY: it reads a number.
    let least = unsafe { libc::getauxval(51) } as usize;
    let size = libc::SIGSTKSZ.max(least + 4096);
    let worker = std::thread::spawn(move || {
        let mut stack = vec![0x5au8; size + 4096];
        let own = libc::stack_t {
            // Below it lies what must stay as it is.
            ss_sp: stack[4096..].as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: size,
        };
        // SAFETY: the stack outlives its use.
        assert_eq!(unsafe { libc::sigaltstack(&own, std::ptr::null_mut()) }, 0);
        let words: Words = [3; 8];
        let at = code(4096);
        // SAFETY: memory of the test.
        unsafe { (at as *mut [u8; 6]).write([0x66, 0x0f, 0x38, 0xf8, 0x3e, 0xc3]) };
        // SAFETY: it is such a function.
        let submit: extern "C" fn(usize, *const Words) = unsafe { std::mem::transmute(at) };
        submit(portal, &words);
        submit(portal, &words);
        let off = libc::stack_t {
            ss_flags: libc::SS_DISABLE,
            ..own
        };
        // SAFETY: as above.
        assert_eq!(unsafe { libc::sigaltstack(&off, std::ptr::null_mut()) }, 0);
        let used = size
            - stack[4096..]
                .iter()
                .take_while(|byte| **byte == 0x5a)
                .count();
        assert!(
            stack[..4096].iter().all(|byte| *byte == 0x5a),
            "the stack is too small"
        );
        used
    });
    let used = worker.join().expect("the stack sufficed");
    println!("{used} bytes of the alternate stack used, at least {least}");
    assert_eq!(LOG.counts(), (2, 0));
}

#[test]
fn a_wait_without_waitpkg_ends_by_a_store() {
    static LOG: Log = Log::new();
    map(&LOG);
    let record = AtomicUsize::new(0);
    let address = (&raw const record).addr();
    std::thread::scope(|scope| {
        scope.spawn(|| record.store(1, Ordering::Release));
        while record.load(Ordering::Acquire) == 0 {
            // SAFETY: a monitored line of this test's memory; the deadline is far.
            unsafe {
                asm!(
                    ".byte 0xf3, 0x0f, 0xae, 0xf0", // umonitor rax
                    in("rax") address,
                );
            }
            if record.load(Ordering::Acquire) != 0 {
                break;
            }
            // SAFETY: as above.
            unsafe {
                asm!(
                    ".byte 0xf2, 0x0f, 0xae, 0xf1", // umwait ecx
                    in("ecx") 0, in("eax") u32::MAX, in("edx") u32::MAX,
                );
            }
        }
    });
    assert_eq!(record.load(Ordering::Acquire), 1);
}
