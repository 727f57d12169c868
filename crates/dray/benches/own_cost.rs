//! What the library costs beside what it carries out: on the core, as futures, and on page lists.
//!
//! `cargo bench -p dray --bench own_cost`. Both sides of a comparison take turns, so that what disturbs the
//! machine disturbs both. Printed are median and quartiles. What `hw` costs beside the instructions alone
//! is measured by `submission`.

mod paired;

use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use dray::pages::{PageCopy, PageListOptions, copy_page_lists};
use dray::{Channel, Completion, CpuMover, Mover, Operation, Request, WaitPolicy, task};
use paired::{paired, quartiles};

fn address(bytes: &[u8]) -> u64 {
    bytes.as_ptr().expose_provenance() as u64
}

fn own_cost_on_the_core() {
    const EACH: usize = 2048;
    let (source, mut target) = ([7_u8; 64], [0_u8; 64]);
    let (from, to) = (
        address(&source),
        target.as_mut_ptr().expose_provenance() as u64,
    );
    let copy = Operation::memmove(from, to, 64);
    let mut mover = CpuMover::new(64);
    let plain = || {
        for _ in 0..EACH {
            let (from, to) = (black_box(from) as *const u8, black_box(to) as *mut u8);
            // SAFETY: buffers of 64 bytes each.
            unsafe { std::ptr::copy(from, to, black_box(64)) };
        }
    };
    paired("copy of 64 bytes, one by one", EACH as f64, plain, || {
        let mut ended = [Completion::default()];
        for _ in 0..EACH {
            // SAFETY: as above.
            let taken = unsafe { mover.enqueue(black_box(&copy)) };
            assert!(taken.is_ok());
            mover.submit();
            assert_eq!(mover.poll(&mut ended), 1);
        }
        black_box(&ended);
    });
    let mut mover = CpuMover::new(64);
    let batch = [copy; 32];
    paired(
        "copy of 64 bytes, in batches of 32",
        EACH as f64,
        plain,
        || {
            let mut ended = [Completion::default(); 32];
            for _ in 0..EACH / 32 {
                // SAFETY: as above.
                let taken = unsafe { mover.enqueue_batch(black_box(&batch)) };
                assert!(taken.is_ok());
                mover.submit();
                assert_eq!(mover.poll(&mut ended), 32);
            }
            black_box(&ended);
        },
    );
}

/// Futures beside a channel: one that finds a slot, and `WAITING` that wait for the one slot in turn.
fn own_cost_of_futures() {
    const EACH: usize = 2048;
    const WAITING: usize = 256;
    let channel = || {
        let mut channel = Channel::new(CpuMover::new(1));
        let mut buffers = Some((vec![7_u8; 64], vec![0_u8; 64]));
        move || {
            for _ in 0..EACH {
                let (source, destination) = buffers.take().expect("they came back");
                assert!(channel.copy(source, destination).is_ok());
                let done = channel.wait(WaitPolicy::Pause, None).expect("it ends");
                buffers = done.buffers.source.zip(done.buffers.destination);
            }
        }
    };
    let mut context = Context::from_waker(Waker::noop());
    let (client, mut driver) = task::channel(CpuMover::new(1));
    let mut buffers = Some((vec![7_u8; 64], vec![0_u8; 64]));
    paired("future that finds a slot", EACH as f64, channel(), || {
        for _ in 0..EACH {
            let (source, destination) = buffers.take().expect("they came back");
            let mut future = client.request(Request::copy(source, destination));
            assert!(Pin::new(&mut future).poll(&mut context).is_pending());
            let _ = Pin::new(&mut driver).poll(&mut context);
            let Poll::Ready(Ok(done)) = Pin::new(&mut future).poll(&mut context) else {
                panic!("the core has ended it");
            };
            buffers = done.buffers.source.zip(done.buffers.destination);
        }
    });
    let copy = || Request::copy(vec![7_u8; 64], vec![0_u8; 64]);
    let mut context = Context::from_waker(Waker::noop());
    let (client, mut driver) = task::channel(CpuMover::new(1));
    let mut futures: Vec<_> = (0..WAITING).map(|_| client.request(copy())).collect();
    for future in &mut futures {
        assert!(Pin::new(future).poll(&mut context).is_pending());
    }
    let name = format!("future behind {} others", WAITING - 1);
    paired(&name, EACH as f64, channel(), || {
        for n in 0..EACH {
            let future = &mut futures[n % WAITING];
            let mut future = Pin::new(future);
            // It has the slot, and asks.
            assert!(future.as_mut().poll(&mut context).is_pending());
            let _ = Pin::new(&mut driver).poll(&mut context);
            let Poll::Ready(Ok(done)) = future.as_mut().poll(&mut context) else {
                panic!("it is the first");
            };
            let buffers = done.buffers.source.zip(done.buffers.destination);
            let (source, destination) = buffers.expect("they came back");
            future.set(client.request(Request::copy(source, destination)));
            assert!(future.poll(&mut context).is_pending());
        }
    });
}

/// Page lists on this process's memory beside two threads that copy half each.
fn page_lists() {
    const BASE: usize = 4096;
    const BYTES: usize = 24 * (2 << 20) + 1024 * BASE;
    let source = vec![7_u8; BYTES];
    let mut target = vec![1_u8; BYTES];
    let (from, to) = (
        address(&source),
        target.as_mut_ptr().expose_provenance() as u64,
    );
    let large = |n: u64| PageCopy {
        source: from + n * (2 << 20),
        destination: to + n * (2 << 20),
        bytes: 2 << 20,
    };
    let at = 24 * (2 << 20);
    let base = |n: u64| PageCopy {
        source: from + at + n * BASE as u64,
        destination: to + at + n * BASE as u64,
        bytes: BASE as u64,
    };
    // Even pages first: no neighbours that could be merged.
    let order = (0..1024).step_by(2).chain((1..1024).step_by(2));
    let mixed: Vec<PageCopy> = (0..24).map(large).chain(order.map(base)).collect();
    let whole = [PageCopy {
        source: from,
        destination: to,
        bytes: BYTES as u64,
    }];
    let halves = || {
        let half = BYTES / 2 / BASE * BASE;
        std::thread::scope(|scope| {
            let copy = move |start: usize, end: usize| {
                let (from, to) = (from as usize + start, to as usize + start);
                // SAFETY: a part of the buffers, which nothing else writes.
                unsafe {
                    std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, end - start);
                }
            };
            scope.spawn(move || copy(0, half));
            copy(half, BYTES);
        });
    };
    let options = PageListOptions {
        core_threads: 2,
        device_threshold_pages: u64::MAX,
        ..PageListOptions::default()
    };
    for (name, list) in [
        ("page list, mixed", &mixed[..]),
        ("one copy, split", &whole[..]),
    ] {
        let (mut plain, mut library, mut ratio) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..21 {
            let start = Instant::now();
            halves();
            let first = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let none: &mut [CpuMover] = &mut [];
            // SAFETY: the buffers are this function's own.
            let counts = unsafe { copy_page_lists(none, list, &options) };
            let second = start.elapsed().as_secs_f64();
            assert_eq!(
                counts.map(|counts| counts.below_threshold_bytes),
                Ok(BYTES as u64)
            );
            plain.push(BYTES as f64 / first / 1e9);
            library.push(BYTES as f64 / second / 1e9);
            ratio.push(first / second);
        }
        let [plain, library] = [&mut plain, &mut library].map(|side| quartiles(side)[1]);
        let [low, middle, high] = quartiles(&mut ratio);
        println!(
            "{name:44} {plain:6.2} GB/s two threads  {library:6.2} GB/s library  ratio {middle:.2} ({low:.2} to {high:.2})"
        );
    }
}

fn main() {
    own_cost_on_the_core();
    own_cost_of_futures();
    page_lists();
}
