//! What `HwMover` takes more than the instructions alone to submit a NOOP: from `enqueue` to the doorbell.
//!
//! `cargo bench -p dray --bench submission`: a burst of half a queue by each side, one right after the
//! other, thousands of times, on a thread that stays on its CPU. Only the submission is timed, not the
//! wait for its completions. Printed is the median of the differences of the pairs, with the 95 % interval
//! of that median by order statistics.
//!
//! The portal is a page of a file, plain memory: the processor must have MOVDIR64B, and no device is
//! needed. Where there are two dedicated work queues, as in `dray run --profile 1e2w-d -- BINARY --bench`,
//! the same is measured on them, by each side on each queue. (With one engine the virtual device is one
//! thread. Where it has no processor for itself, the thread that submits waits for its completion meanwhile.)
//!
//! `BINARY count plain|library N` submits N NOOPs to the page and ends, for a program that counts
//! instructions: `valgrind --tool=cachegrind --cache-sim=no`. MOVDIR64B is then emulated by a signal
//! handler, alike on both sides, where valgrind does not know it.

#[cfg(all(feature = "hw", target_arch = "x86_64"))]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [count, side, number] if count == "count" => measured::count(side, number),
        _ => measured::all(),
    }
}

#[cfg(not(all(feature = "hw", target_arch = "x86_64")))]
fn main() {}

#[cfg(all(feature = "hw", target_arch = "x86_64"))]
#[path = "support/memory_queue.rs"]
mod memory_queue;

#[cfg(all(feature = "hw", target_arch = "x86_64"))]
mod measured {
    use std::hint::black_box;
    use std::time::Instant;

    use dray::hw::{self, HwMover, HwOptions, Portal, QueueInfo};
    use dray::{Completion, Mover, Operation, WaitPolicy};
    use dray_device::WorkQueueMode;
    use dray_spec::Descriptor;

    use super::memory_queue::of_memory;

    /// On plain memory.
    const PAIRS: usize = 20_000;
    /// On work queues, where a pair also waits for a device.
    const PAIRS_ON_QUEUES: usize = 2_000;
    /// Where a descriptor has the address of its completion record (spec 8.1).
    const RECORD_OFFSET: u64 = 8;

    /// Completion records of the plain side.
    #[repr(align(64))]
    struct Records([[u8; 64]; 1024]);

    /// The instructions alone, with records that are used in turn.
    struct Plain {
        portal: Portal,
        records: Box<Records>,
    }

    impl Plain {
        fn open(queue: &QueueInfo) -> Plain {
            Plain {
                portal: Portal::open(queue, true).expect("a portal"),
                records: Box::new(Records([[0; 64]; 1024])),
            }
        }

        fn record(&mut self, n: usize) -> *mut u8 {
            self.records.0[n % 1024].as_mut_ptr()
        }

        #[inline]
        fn submit(&mut self, n: usize) {
            let record = self.record(n);
            // SAFETY: a record of this value.
            unsafe { record.write_volatile(0) };
            let descriptor = Descriptor::noop().with_completion(record.expose_provenance() as u64);
            // SAFETY: a NOOP has no operands; the record lives as long as the portal.
            unsafe { self.portal.movdir64b(&black_box(descriptor)) };
        }
    }

    #[inline]
    fn submit(mover: &mut HwMover) {
        // SAFETY: a NOOP has no operands.
        let taken = unsafe { mover.enqueue(black_box(&Operation::noop())) };
        assert!(taken.is_ok());
        mover.submit();
    }

    /// Completes what was written to the lines of a portal that is memory.
    fn complete(page: &std::fs::File, lines: usize) {
        use std::os::unix::fs::FileExt;
        let mut bytes = [0; 4096];
        page.read_exact_at(&mut bytes, 0).expect("the page");
        for line in bytes.chunks_exact(64).take(lines) {
            let at = RECORD_OFFSET as usize;
            let record = u64::from_le_bytes(line[at..at + 8].try_into().expect("8 bytes"));
            let status = std::ptr::with_exposed_provenance_mut::<u8>(record as usize);
            // SAFETY: the record of a descriptor that this process has submitted and not yet reaped.
            unsafe { status.write_volatile(1) };
        }
    }

    /// Keeps this thread where it is.
    fn pin() {
        // SAFETY: no arguments.
        let cpu = unsafe { libc::sched_getcpu() };
        // SAFETY: a set of bits, which zero is a value of.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is this function's.
        unsafe { libc::CPU_SET(cpu.max(0) as usize, &mut set) };
        // SAFETY: as above, with its size.
        let failed = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
        if failed != 0 {
            eprintln!("not pinned to a CPU: {}", std::io::Error::last_os_error());
        }
    }

    /// Times bursts by both sides; `end_plain` and `end` wait for the completions of each.
    fn pairs(
        name: &str,
        (pairs, burst): (usize, usize),
        plain: &mut Plain,
        mover: &mut HwMover,
        mut end_plain: impl FnMut(&mut Plain),
        mut end: impl FnMut(&mut HwMover),
    ) {
        let mut sides: [Vec<f64>; 3] = Default::default();
        for pair in 0..pairs + pairs / 10 {
            let mut times = [0.0; 2];
            for side in [pair % 2, 1 - pair % 2] {
                let start = Instant::now();
                match side {
                    0 => (0..burst).for_each(|n| plain.submit(n)),
                    _ => (0..burst).for_each(|_| submit(mover)),
                }
                times[side] = start.elapsed().as_nanos() as f64 / burst as f64;
                match side {
                    0 => end_plain(plain),
                    _ => end(mover),
                }
            }
            // The first ones warm up.
            if pair >= pairs / 10 {
                sides[0].push(times[0]);
                sides[1].push(times[1]);
                sides[2].push(times[1] - times[0]);
            }
        }
        for side in &mut sides {
            side.sort_by(f64::total_cmp);
        }
        let quartiles = |side: &[f64]| [1, 2, 3].map(|quarter| side[(pairs - 1) * quarter / 4]);
        let [plain, library, more] = sides.each_ref().map(|side| quartiles(side));
        // The rank of a median is binomial: half of the pairs, and 1.96 standard deviations.
        let far = (0.98 * (pairs as f64).sqrt()).ceil() as usize;
        let (low, high) = (sides[2][pairs / 2 - far], sides[2][pairs / 2 + far]);
        println!(
            "{name}: {pairs} pairs of bursts of {burst}, ns a NOOP: plain {:.1} ({:.1} to {:.1}), library {:.1} ({:.1} to {:.1}), more {:.2} (95 % interval {low:.2} to {high:.2}; quartiles {:.1} to {:.1})",
            plain[1],
            plain[0],
            plain[2],
            library[1],
            library[0],
            library[2],
            more[1],
            more[0],
            more[2]
        );
    }

    /// Half of the lines of a page, as of a queue of 128 entries, are one page.
    fn on_memory() {
        // CPUID leaf 7: MOVDIR64B is bit 28 of ECX.
        if std::arch::x86_64::__cpuid_count(7, 0).ecx & 1 << 28 == 0 {
            println!("plain memory: not measured, the processor has no MOVDIR64B");
            return;
        }
        let directory =
            std::env::temp_dir().join(format!("dray-submission-{}", std::process::id()));
        std::fs::create_dir(&directory).expect("a directory");
        let queues = ["plain", "library"].map(|name| of_memory(&directory.join(name), 128));
        let mut plain = Plain::open(&queues[0]);
        let mut mover = HwMover::open(&queues[1], HwOptions::default()).expect("a queue");
        let page = std::fs::File::open(&queues[1].path).expect("the page");
        let end = |mover: &mut HwMover| {
            complete(&page, 64);
            let (mut left, mut ended) = (64, [Completion::default(); 64]);
            while left > 0 {
                left -= mover.poll(&mut ended);
            }
        };
        // Both pages are read alike: a line in the cache is written otherwise.
        let other = std::fs::File::open(&queues[0].path).expect("the page");
        let end_plain = |_: &mut Plain| complete(&other, 64);
        pairs(
            "plain memory",
            (PAIRS, 64),
            &mut plain,
            &mut mover,
            end_plain,
            end,
        );
        drop(mover);
        std::fs::remove_dir_all(&directory).expect("a directory of this program");
    }

    fn on_queues() {
        let queues = hw::discover().unwrap_or_default();
        let dedicated = |queue: &&QueueInfo| queue.mode == WorkQueueMode::Dedicated;
        let queues: Vec<_> = queues.iter().filter(dedicated).collect();
        let [first, second, ..] = queues[..] else {
            println!("work queues: not measured, there are no two dedicated ones");
            return;
        };
        // Each side on each queue: a difference of the queues is in neither.
        for [of_plain, of_library] in [[first, second], [second, first]] {
            let burst = usize::from(of_plain.entries.min(of_library.entries) / 2).max(1);
            let mut plain = Plain::open(of_plain);
            let mut mover = HwMover::open(of_library, HwOptions::default()).expect("a work queue");
            let end_plain = |plain: &mut Plain| {
                for n in 0..burst {
                    // SAFETY: a record of this value.
                    while unsafe { plain.record(n).read_volatile() } == 0 {
                        std::thread::yield_now();
                    }
                }
            };
            let end = |mover: &mut HwMover| {
                let (mut left, mut ended) = (burst, [Completion::default(); 64]);
                while left > 0 {
                    let wait = WaitPolicy::Yield;
                    left -= dray::wait(mover, &mut ended, wait, None).expect("they end");
                }
            };
            let name = format!("library on {}", of_library.name());
            let count = (PAIRS_ON_QUEUES, burst);
            pairs(&name, count, &mut plain, &mut mover, end_plain, end);
        }
    }

    pub(super) fn all() {
        pin();
        on_memory();
        on_queues();
    }

    /// MOVDIR64B where the program that counts does not know it: the copy is left out.
    extern "C" fn skip(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let context = context.cast::<libc::ucontext_t>();
        // SAFETY: the kernel's context of this signal.
        let registers = unsafe { &mut (*context).uc_mcontext.gregs };
        let rip = &mut registers[libc::REG_RIP as usize];
        let at = std::ptr::with_exposed_provenance::<u8>(*rip as usize);
        // SAFETY: the instruction that was met.
        let byte = |offset: usize| {
            let at = at.wrapping_add(offset);
            // SAFETY: a byte of the instruction that was met.
            unsafe { at.read() }
        };
        // 66 [REX] 0F 38 F8 /r, with registers alone.
        let rex = usize::from(byte(1) & 0xf0 == 0x40);
        let opcode = [byte(0), byte(1 + rex), byte(2 + rex), byte(3 + rex)];
        if opcode != [0x66, 0x0f, 0x38, 0xf8] {
            std::process::abort();
        }
        let modrm = byte(4 + rex);
        let scaled = usize::from(modrm & 7 == 4);
        let displacement = match modrm >> 6 {
            0 => 0,
            1 => 1,
            _ => 4,
        };
        *rip += (5 + rex + scaled + displacement) as i64;
    }

    pub(super) fn count(side: &str, number: &str) {
        let number: u16 = number.parse().expect("a number up to 65535");
        // SAFETY: all zero is an action.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = skip as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        // SAFETY: a handler that only reads the context and writes its program counter.
        let failed =
            unsafe { libc::sigaction(libc::SIGILL, &raw const action, std::ptr::null_mut()) };
        assert_eq!(failed, 0);
        let directory =
            std::env::temp_dir().join(format!("dray-submission-{}", std::process::id()));
        std::fs::create_dir(&directory).expect("a directory");
        let queue = of_memory(&directory.join("queue"), u16::MAX);
        let options = HwOptions {
            slots: 1 << 16,
            ..HwOptions::default()
        };
        let mut plain = Plain::open(&queue);
        let mut mover = HwMover::open(&queue, options).expect("a queue");
        std::fs::remove_dir_all(&directory).expect("a directory of this program");
        match side {
            "plain" => (0..number.into()).for_each(|n| plain.submit(n)),
            "library" => (0..number).for_each(|_| submit(&mut mover)),
            _ => panic!("plain or library"),
        }
        // Nothing will complete them.
        std::mem::forget(mover);
    }
}
