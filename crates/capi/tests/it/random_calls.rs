//! Random sequences of calls with random arguments: each call returns a code that it documents, and nothing
//! crashes, however the arguments do not fit together. Buffers end at pages that cannot be accessed.

mod arguments;
mod shared;

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use dray_c::{
    Backend, ChannelsOptions, Completion, CostModel, Dif, ExcludedQueue, Mover, Options, Outcome,
    Page, PageOptions, PageReport, PageRow, PageState, PageStatistics, Tags, dray_apply_delta,
    dray_batch_begin, dray_batch_cancel, dray_batch_end, dray_batch_fence, dray_cache_flush,
    dray_close, dray_compare, dray_compare_pattern, dray_copy, dray_copy_crc32c, dray_copy_crc64,
    dray_copy_page_list_with_report, dray_crc32c, dray_crc64, dray_create_delta, dray_dif_check,
    dray_dif_insert, dray_dif_strip, dray_dif_update, dray_dix_generate, dray_dualcast,
    dray_enqueue_descriptor, dray_excluded_queues, dray_fill, dray_next_flags, dray_noop,
    dray_note, dray_open, dray_open_channels, dray_poll, dray_poll_outcomes, dray_slots,
    dray_submit, dray_supports, dray_wait, dray_wait_outcomes, dray_withdraw,
};

use crate::opened::{channels, last_error, options};
use arguments::{Areas, Random};

const PAGE: usize = 4096;
/// Pages of one area.
const AREA: usize = 4;
/// Calls of one sequence.
const CALLS: usize = 600;

/// A place for results, of the caller's: sometimes none, or not aligned.
fn place<T>(random: &mut Random, room: &mut [MaybeUninit<T>]) -> (*mut T, usize) {
    let (at, count) = (room.as_mut_ptr().cast::<T>(), room.len());
    match random.below(8) {
        0 => (null_mut(), count),
        1 => (at.wrapping_byte_add(1), count - 1),
        2 => (at, 0),
        _ => (at, 1 + random.below(count)),
    }
}

/// Options with bytes behind them that are known: a size may say that they are of a later version.
#[repr(C)]
struct OptionsAndMore {
    options: Options,
    more: [u8; 8],
}

/// A mover whose operations look at addresses first.
fn open(random: &mut Random) -> *mut Mover {
    let backend = random.of(&[Backend::Virtual, Backend::Cpu]) as u32;
    let cost = CostModel {
        size: size_of::<CostModel>(),
        core_call_ns: random.of(&[0.0, 1.0, f64::NAN, -1.0]),
        core_kib_ns: 1.0,
        submit_ns: 1.0,
        batched_ns: 1.0,
        device_latency_ns: 1.0,
        device_kib_ns: random.of(&[1.0, f64::INFINITY]),
    };
    let mut mover: *mut Mover = null_mut();
    while mover.is_null() {
        let slots = random.of(&[0, 1, 3, 64, u32::MAX]);
        let code = match random.below(2) {
            0 => {
                let options = Options {
                    backend: if random.rarely(8) { 9 } else { backend },
                    slots,
                    checked: 1,
                    numa: random.of(&[0, 0, 0, 1]),
                    page_fault: random.word(4),
                    size: random.of(&[40, 40, 40, 32, 41, 48, 0]),
                    ..options()
                };
                let more = random.of(&[[0; 8], [1; 8]]);
                let of_later_version = options.size > size_of::<Options>() && more != [0; 8];
                let options = OptionsAndMore { options, more };
                // SAFETY: as many bytes as the size says, at most 48, and a place for a pointer.
                let code = unsafe { dray_open((&raw const options).cast(), &raw mut mover) };
                assert!(!of_later_version || code == -libc::EINVAL, "{code}");
                code
            }
            _ => {
                let choice = random.word(5);
                let options = ChannelsOptions {
                    backend,
                    slots,
                    checked: 1,
                    virtual_queues: random.below(10) as u32,
                    require: random.of(&[0, 0, 1, 2]),
                    page_fault: random.word(4),
                    page_faults: random.of(&[0, 1, 3]),
                    full_queue: random.word(3),
                    lost_queue: random.word(3),
                    device_from_bytes: random.of(&[0, 0, 4096, u32::MAX]),
                    stripe_bytes: random.of(&[0, 1, 4096, u32::MAX]),
                    max_stripes: random.of(&[0, 1, 2, u32::MAX]),
                    gather_below_bytes: random.of(&[0, 1, 4096, u32::MAX]),
                    max_gathered: random.of(&[0, 1, 2, u32::MAX]),
                    remote_bytes: random.of(&[0, 1, u64::MAX]),
                    choice,
                    cost: random.of(&[null(), null(), &raw const cost]),
                    ..channels()
                };
                // SAFETY: options, and a place for a pointer.
                unsafe { dray_open_channels(&raw const options, &raw mut mover) }
            }
        };
        assert_eq!(code == 0, !mover.is_null());
        is_documented("open", code, &[libc::EINVAL, libc::ENODEV]);
    }
    mover
}

/// Whether a call has succeeded, or says one of these.
fn is_documented(name: &str, code: i32, codes: &[i32]) {
    let text = last_error();
    assert!(text.len() < 512);
    let is_known = code >= 0 || codes.contains(&-code);
    assert!(is_known, "{name}: {code} ({text})");
}

fn dif(random: &mut Random) -> Dif {
    let tags = Tags {
        reference: random.next() as u32,
        app_mask: random.of(&[0, u16::MAX]),
        app: random.next() as u16,
    };
    Dif {
        size: random.of(&[size_of::<Dif>(), size_of::<Dif>(), size_of::<Dif>(), 7]),
        block_bytes: random.of(&[512, 520, 4096, 4104, 513]),
        flags: random.of(&[0, 0, random.0 as u8]),
        source_flags: random.of(&[0, 0, random.0 as u8]),
        destination_flags: random.of(&[0, 0, random.0 as u8]),
        reserved: random.of(&[0, 0, 0, 1]),
        source: tags,
        destination: tags,
    }
}

/// Enqueues an operation: its name and code.
fn enqueue(mover: *mut Mover, random: &mut Random, areas: &Areas) -> (&'static str, i32) {
    let [a, b, c] = [(); 3].map(|()| areas.buffer(random));
    let (len, more, id) = (random.length(), random.length(), random.next());
    let dif = dif(random);
    let dif: *const Dif = random.of(&[&raw const dif, &raw const dif, &raw const dif, null()]);
    macro_rules! call {
        ($name:ident($($argument:expr),*)) => {
            // SAFETY: the mover looks at addresses, and the areas stay mapped; nothing else uses them.
            (stringify!($name), unsafe { $name(mover, $($argument),*) })
        };
    }
    match random.below(19) {
        0 => call!(dray_noop(id)),
        1 => call!(dray_copy(a, b, len, id)),
        2 => call!(dray_dualcast(a, b, c, len, id)),
        3 => call!(dray_fill(a, id, len, id)),
        4 => call!(dray_compare(a, b, len, id)),
        5 => call!(dray_compare_pattern(a, id, len, id)),
        6 => call!(dray_crc32c(a, len, id as u32, id)),
        7 => call!(dray_copy_crc32c(a, b, len, id as u32, id)),
        8 => call!(dray_crc64(a, len, id, id)),
        9 => call!(dray_copy_crc64(a, b, len, id, id)),
        10 => call!(dray_create_delta(a, b, len, c, more, id)),
        11 => call!(dray_apply_delta(a, len, b, more, id)),
        12 => call!(dray_cache_flush(a, len, id)),
        13 => call!(dray_dif_check(a, len, dif, id)),
        14 => call!(dray_dif_insert(a, b, len, dif, id)),
        15 => call!(dray_dif_strip(a, b, len, dif, id)),
        16 => call!(dray_dif_update(a, b, len, dif, id)),
        17 => call!(dray_dix_generate(a, b, len, dif, id)),
        _ => {
            let descriptor = descriptor(random, [a, b, c], len);
            let at: *const c_void = match random.rarely(10) {
                true => null(),
                // Aligned to 8 bytes, or not at all.
                false => descriptor.as_ptr().cast::<c_void>(),
            };
            call!(dray_enqueue_descriptor(at, id))
        }
    }
}

/// Flags and opcode at random, addresses and a length that were chosen (Intel DSA specification, 8.1).
fn descriptor(random: &mut Random, [a, b, c]: [*mut c_void; 3], len: usize) -> [u64; 8] {
    let opcode = random.of(&[
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 17, 18, 19, 20, 21, 22, 23, 24, 32, 33, 255,
    ]);
    let flags = random.next() & random.next() & 0xff_ffff;
    let word = [c.addr() as u64, random.next() & 0xffff];
    [
        opcode << 56 | flags << 32 | random.below(2) as u64,
        random.of(&word),
        a.addr() as u64,
        b.addr() as u64,
        len as u64 & 0xffff_ffff | (random.below(4) as u64) << 32,
        random.of(&word),
        random.of(&word),
        random.of(&word),
    ]
}

/// A list of pages with a report: its code.
fn copy_pages(mover: *mut Mover, random: &mut Random, areas: &Areas) -> i32 {
    let alone = random.rarely(4);
    let count = if alone {
        1
    } else {
        random.below(areas.0.len() / 2)
    };
    // Entries must not overlap each other: each has two areas of its own, unless it is alone.
    let first = random.below(2 * count + 1);
    let pages: Vec<Page> = (0..count)
        .map(|n| {
            let mut at = |n: usize| match alone {
                true => areas.buffer(random),
                false => areas.buffer_in((first + n) % areas.0.len(), random),
            };
            let (source, destination) = (at(2 * n), at(2 * n + 1));
            let bytes = random.length();
            Page {
                source,
                destination,
                // More would be tried page by page, which takes its time.
                bytes: match alone && random.rarely(4) {
                    true => usize::MAX,
                    false => bytes % (2 * PAGE),
                } as u64,
            }
        })
        .collect();
    let options = PageOptions {
        size: random.of(&[size_of::<PageOptions>(), size_of::<PageOptions>(), 39]),
        limit_chans: random.of(&[0, 1, u32::MAX]),
        limit_mt_num: random.of(&[0, 1, 2, 65]),
        dsa_copy_threshold: random.of(&[0, 1, u64::MAX]),
        require_device: random.of(&[0, 0, 1, 2]),
        // 1 leads to a signal.
        unchecked: random.of(&[0, 0, 0, 2]),
        timeout_ns: random.of(&[0, 1, 1_000_000, u64::MAX]),
    };
    let mut statistics = PageStatistics {
        size: random.of(&[72, 72, 72, 8]),
        ..PageStatistics::default()
    };
    let mut states = vec![MaybeUninit::<PageState>::uninit(); count + 1];
    let mut rows = [MaybeUninit::<PageRow>::uninit(); 3];
    let (states, _) = place(random, &mut states);
    let (rows, max_rows) = place(random, &mut rows);
    let mut report = PageReport {
        size: random.of(&[40, 40, 40, 0]),
        states,
        rows,
        max_rows,
        row_count: 99,
    };
    let list = match random.rarely(10) {
        true => null(),
        false => pages.as_ptr(),
    };
    let no_options = random.rarely(3);
    let no_statistics = random.rarely(3);
    // SAFETY: arrays of these lengths; addresses are looked at, and what is at them nothing else uses.
    unsafe {
        dray_copy_page_list_with_report(
            mover,
            list,
            count,
            if no_options {
                null()
            } else {
                &raw const options
            },
            if no_statistics {
                null_mut()
            } else {
                &raw mut statistics
            },
            &raw mut report,
        )
    }
}

/// Any call that enqueues nothing: its name, its code, and what else it may say.
fn other(
    mover: *mut Mover,
    random: &mut Random,
    areas: &Areas,
) -> (&'static str, i32, &'static [i32]) {
    let timeout_ns = 1 + random.next() % 200_000;
    let policy = random.word(4);
    let mut completions = [MaybeUninit::<Completion>::uninit(); 70];
    let mut outcomes = [MaybeUninit::<Outcome>::uninit(); 70];
    let mut queues = [MaybeUninit::<ExcludedQueue>::uninit(); 9];
    let mut text = [MaybeUninit::<c_char>::uninit(); 40];
    macro_rules! call {
        ($name:ident($($argument:expr),*), $($code:ident)*) => {
            // SAFETY: places of these lengths, or what is refused.
            (stringify!($name), unsafe { $name(mover, $($argument),*) }, &[$(libc::$code),*])
        };
    }
    match random.below(15) {
        0 => call!(dray_submit(),),
        1 => {
            let (into, count) = place(random, &mut completions);
            call!(dray_poll(into, count), EINVAL)
        }
        2 => {
            let (into, count) = place(random, &mut outcomes);
            call!(dray_poll_outcomes(into, count), EINVAL ENOTSUP)
        }
        3 => {
            let (into, count) = place(random, &mut completions);
            call!(dray_wait(into, count, policy, timeout_ns), EINVAL ETIMEDOUT ENOENT ENOTSUP)
        }
        4 => {
            let (into, count) = place(random, &mut outcomes);
            call!(dray_wait_outcomes(into, count, policy, timeout_ns), EINVAL ETIMEDOUT ENOENT ENOTSUP)
        }
        5 => call!(dray_withdraw(),),
        6 => call!(dray_slots(),),
        7 => call!(dray_supports(random.next() as u8),),
        8 => {
            let flags = random.next() as u32 & random.of(&[0x6_6102, 0x6_6102, u32::MAX]);
            call!(dray_next_flags(flags), EINVAL ENOTSUP)
        }
        9 => call!(dray_batch_begin(), EALREADY),
        10 => call!(dray_batch_fence(), ENOENT),
        11 => call!(dray_batch_end(), ENOENT EAGAIN E2BIG),
        12 => call!(dray_batch_cancel(),),
        13 => {
            let (into, count) = match random.rarely(4) {
                true => (null_mut(), 0),
                false => place(random, &mut queues),
            };
            call!(dray_excluded_queues(into, count), EINVAL)
        }
        _ => match random.rarely(2) {
            true => {
                let (into, bytes) = (text.as_mut_ptr().cast::<c_char>(), random.below(41));
                let into = if random.rarely(4) { null_mut() } else { into };
                call!(dray_note(into, bytes), EINVAL)
            }
            false => (
                "dray_copy_page_list_with_report",
                copy_pages(mover, random, areas),
                &[
                    libc::EINVAL,
                    libc::EBUSY,
                    libc::ENODEV,
                    libc::EIO,
                    libc::EFAULT,
                    libc::ETIMEDOUT,
                ],
            ),
        },
    }
}

/// One sequence of calls: how many operations have ended in it.
fn run(seed: u64) -> i32 {
    let mut ended = 0;
    let mut random = Random(seed);
    let areas = Areas::new(8);
    let mut mover = open(&mut random);
    for _ in 0..CALLS {
        if random.rarely(200) {
            // SAFETY: it was opened; the areas stay mapped.
            assert_eq!(unsafe { dray_close(mover) }, 0);
            // What was closed stays known as such.
            let (name, code) = enqueue(mover, &mut random, &areas);
            assert!(code < 0, "{name}: {code}");
            mover = open(&mut random);
        }
        match random.below(2) {
            0 => {
                let (name, code) = enqueue(mover, &mut random, &areas);
                let codes = [libc::EINVAL, libc::EAGAIN, libc::ENOTSUP, libc::E2BIG];
                is_documented(name, code, &codes);
            }
            _ => {
                let (name, code, codes) = other(mover, &mut random, &areas);
                if name.contains("_poll") || name.contains("_wait") {
                    ended += code.max(0);
                }
                is_documented(name, code, codes);
            }
        }
    }
    // SAFETY: it was opened; the areas stay mapped.
    assert_eq!(unsafe { dray_close(mover) }, 0);
    ended
}

#[test]
fn random_calls_return_documented_codes() {
    let seeds = std::env::var("DRAY_CAPI_SEEDS").ok();
    let seeds = seeds.map_or(100, |seeds| seeds.parse().expect("a number of seeds"));
    let mut ended = 0;
    for seed in 0..seeds {
        println!("seed {seed}");
        ended += run(seed);
    }
    assert!(ended > 20 * seeds as i32, "{ended} operations have ended");
}

/// Entries that violate the contract of the call give wrong counts, and no panic. One thread copies.
#[test]
fn entries_that_overlap_each_other_do_not_panic() {
    let checked = Options {
        checked: 1,
        ..options()
    };
    let mover = crate::opened::open(&checked).expect("it opens");
    let areas = Areas::new(3);
    let (readable, source, writable) = (areas.0[0], areas.0[1], areas.0[2]);
    let page = |destination: *mut u8, pages: usize| Page {
        source: source.cast(),
        destination: destination.cast(),
        bytes: (pages * PAGE) as u64,
    };
    // The readable area cannot be written.
    let behind = readable.wrapping_add(2 * PAGE);
    let pages = [
        page(writable, 4),
        page(behind, 1),
        page(behind, 1),
        page(behind.wrapping_sub(PAGE), 2),
        page(writable.wrapping_add(PAGE), 1),
    ];
    let how = PageOptions {
        size: size_of::<PageOptions>(),
        limit_chans: 0,
        limit_mt_num: 1,
        dsa_copy_threshold: 0,
        require_device: 0,
        unchecked: 0,
        timeout_ns: 0,
    };
    let mut rows = [MaybeUninit::<PageRow>::uninit(); 3];
    let mut report = PageReport {
        size: size_of::<PageReport>(),
        states: null_mut(),
        rows: rows.as_mut_ptr().cast(),
        max_rows: rows.len(),
        row_count: 0,
    };
    // SAFETY: addresses are looked at, and one thread alone copies.
    let code = unsafe {
        dray_copy_page_list_with_report(
            mover,
            pages.as_ptr(),
            pages.len(),
            &raw const how,
            null_mut(),
            &raw mut report,
        )
    };
    assert_eq!(code, -libc::EFAULT, "{}", last_error());
    // SAFETY: it was opened.
    assert_eq!(unsafe { dray_close(mover) }, 0);
}
