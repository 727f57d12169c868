//! Structures of options: earlier versions, later ones, and invalid fields.

use dray_c::{
    Backend, ChannelsOptions, Choice, CostModel, Dif, Mover, Numa, Options, PageFault, Require,
    dray_close, dray_dif_check, dray_note, dray_open,
};

use crate::opened::{channels, dif, last_error, open, open_channels, options};

fn close(opened: Result<*mut Mover, (i32, String)>) {
    let mover = opened.expect("it opens");
    // SAFETY: it was opened.
    assert_eq!(unsafe { dray_close(mover) }, 0);
}

fn refused(opened: Result<*mut Mover, (i32, String)>, code: i32, text: &str) {
    let (found, message) = opened.expect_err("it is refused");
    assert_eq!(found, code, "{message}");
    assert!(message.contains(text), "{message}");
}

#[test]
fn options_of_earlier_sizes_are_read_only_to_their_size() {
    // Up to `queue`; with `checked` and a word behind it.
    for size in [24, 32] {
        close(open(&Options {
            size,
            checked: if size == 24 { u32::MAX } else { 1 },
            numa: if size == 24 { u32::MAX } else { 0 },
            numa_node: u32::MAX,
            page_fault: u32::MAX,
            ..options()
        }));
    }
    close(open_channels(&ChannelsOptions {
        size: 56,
        choice: u32::MAX,
        numa: u32::MAX,
        reserved: u32::MAX,
        cost: std::ptr::dangling(),
        ..channels()
    }));
    // Up to `cost`.
    close(open_channels(&ChannelsOptions {
        size: 80,
        checked: u32::MAX,
        lost_queue: u32::MAX,
        remote_bytes: u64::MAX,
        ..channels()
    }));
}

#[test]
fn wrong_sizes_are_refused_with_the_correct_one() {
    for size in [0, 8, 23, 25, 33, 39, 4097, usize::MAX] {
        let wrong = Options { size, ..options() };
        refused(open(&wrong), libc::EINVAL, "sizeof, which is 40");
    }
    for size in [0, 40, 79, 81, 95, usize::MAX] {
        let wrong = ChannelsOptions { size, ..channels() };
        refused(open_channels(&wrong), libc::EINVAL, "sizeof, which is 96");
    }
}

#[test]
fn fields_of_a_later_version_must_be_0() {
    #[repr(C)]
    struct Later(Options, u64);
    let of = |value| {
        let size = size_of::<Later>();
        let later = Later(Options { size, ..options() }, value);
        let mut mover = std::ptr::null_mut();
        // SAFETY: the options' size is that of all of it.
        let code = unsafe { dray_open((&raw const later).cast(), &raw mut mover) };
        if code == 0 {
            close(Ok(mover));
        }
        code
    };
    assert_eq!(of(0), 0);
    assert_eq!(of(1 << 40), -libc::EINVAL);
    assert!(last_error().contains("later version"), "{}", last_error());
}

#[test]
fn slots_times_stripes_above_the_limit_are_refused() {
    let large = ChannelsOptions {
        backend: Backend::Virtual as u32,
        virtual_queues: 3,
        slots: 1 << 19,
        max_stripes: 3,
        ..channels()
    };
    let said = "1572864 slots times stripes are outside 1 to 1048576";
    refused(open_channels(&large), libc::EINVAL, said);
}

#[test]
fn an_invalid_field_of_options_is_named() {
    let named: [(Options, &str); 10] = [
        (
            Options {
                backend: 4,
                ..options()
            },
            "dray_options.backend is 4: 0 to 3",
        ),
        (
            Options {
                checked: 2,
                ..options()
            },
            "dray_options.checked is 2",
        ),
        (
            Options {
                page_fault: 4,
                ..options()
            },
            "dray_options.page_fault is 4: 0 to 3",
        ),
        (
            Options {
                page_fault: PageFault::FinishOnCore as u32,
                ..options()
            },
            "DRAY_PAGE_FAULT_FINISH_ON_CORE is for dray_open_channels",
        ),
        (
            Options {
                numa: 3,
                ..options()
            },
            "dray_options.numa is 3: 0 to 2",
        ),
        (
            Options {
                numa_node: 1,
                ..options()
            },
            "dray_options.numa_node is 1",
        ),
        (
            Options {
                numa: 1,
                ..options()
            },
            "for work queues of this machine",
        ),
        (
            Options {
                queue: c"wq0.0".as_ptr(),
                ..options()
            },
            "for work queues of this machine",
        ),
        (
            Options {
                backend: Backend::Any as u32,
                queue: c"wq0.0".as_ptr(),
                numa: Numa::Only as u32,
                ..options()
            },
            "queue names the work queue",
        ),
        (
            Options {
                slots: (1 << 20) + 1,
                ..options()
            },
            "dray_options.slots is 1048577: 1 to 1048576",
        ),
    ];
    for (wrong, text) in &named {
        refused(open(wrong), libc::EINVAL, text);
    }
    close(open(&Options {
        slots: 1 << 20,
        ..options()
    }));
}

#[test]
fn an_invalid_field_of_channels_options_is_named() {
    let cost = |ns| CostModel {
        size: size_of::<CostModel>(),
        core_call_ns: 1.0,
        core_kib_ns: 1.0,
        submit_ns: 1.0,
        batched_ns: 1.0,
        device_latency_ns: 1.0,
        device_kib_ns: ns,
    };
    let (good, bad, endless) = (cost(0.0), cost(-1.0), cost(f64::NAN));
    let modelled = |cost: *const CostModel| ChannelsOptions {
        choice: Choice::CostModel as u32,
        cost,
        ..channels()
    };
    let named = [
        (
            ChannelsOptions {
                backend: 9,
                ..channels()
            },
            ".backend is 9: 0 to 3",
        ),
        (
            ChannelsOptions {
                require: 3,
                ..channels()
            },
            ".require is 3: 0 to 2",
        ),
        (
            ChannelsOptions {
                page_fault: 4,
                ..channels()
            },
            ".page_fault is 4: 0 to 3",
        ),
        (
            ChannelsOptions {
                full_queue: 3,
                ..channels()
            },
            ".full_queue is 3: 0 to 2",
        ),
        (
            ChannelsOptions {
                lost_queue: 3,
                ..channels()
            },
            ".lost_queue is 3: 0 to 2",
        ),
        (
            ChannelsOptions {
                checked: 2,
                ..channels()
            },
            ".checked is 2: 0 to 1",
        ),
        (
            ChannelsOptions {
                choice: 5,
                ..channels()
            },
            ".choice is 5: 0 to 4",
        ),
        (
            ChannelsOptions {
                numa: 3,
                ..channels()
            },
            ".numa is 3: 0 to 2",
        ),
        (
            ChannelsOptions {
                reserved: 1,
                ..channels()
            },
            ".reserved is 1: it must be 0",
        ),
        (
            ChannelsOptions {
                slots: u32::MAX,
                ..channels()
            },
            ".slots is 4294967295: 1 to",
        ),
        (
            ChannelsOptions {
                virtual_queues: 9,
                backend: Backend::Virtual as u32,
                ..channels()
            },
            ".virtual_queues is 9: 1 to 8",
        ),
        (
            ChannelsOptions {
                choice: Choice::Learned as u32,
                device_from_bytes: 1,
                ..channels()
            },
            "device_from_bytes is for",
        ),
        (
            ChannelsOptions {
                cost: &raw const good,
                ..channels()
            },
            ".cost is for",
        ),
        (
            modelled(&raw const bad),
            "dray_cost_model.device_kib_ns is -1",
        ),
        (
            modelled(&raw const endless),
            "dray_cost_model.device_kib_ns is NaN",
        ),
    ];
    for (wrong, text) in &named {
        refused(open_channels(wrong), libc::EINVAL, text);
    }
    for choice in [
        Choice::Device,
        Choice::Core,
        Choice::CostModel,
        Choice::Learned,
    ] {
        let choice = choice as u32;
        close(open_channels(&ChannelsOptions {
            choice,
            ..channels()
        }));
    }
    close(open_channels(&modelled(&raw const good)));
    // What is required and not there.
    let hardware = Require::Hardware as u32;
    let wrong = ChannelsOptions {
        require: hardware,
        ..channels()
    };
    refused(open_channels(&wrong), libc::ENODEV, "hardware is required");
}

#[test]
fn an_invalid_field_of_dif_is_named() {
    let dif = dif();
    let mover = open(&options()).expect("it opens");
    let blocks = [0_u8; 520];
    for (wrong, text) in [
        (Dif { reserved: 3, ..dif }, "dray_dif.reserved is 3"),
        (
            Dif {
                block_bytes: 513,
                ..dif
            },
            "dray_dif.block_bytes is 513",
        ),
        (Dif { size: 12, ..dif }, "the size of dray_dif is 12"),
    ] {
        // SAFETY: the buffer and the structure outlive the call, which enqueues nothing.
        let code =
            unsafe { dray_dif_check(mover, blocks.as_ptr().cast(), 520, &raw const wrong, 0) };
        assert_eq!(code, -libc::EINVAL);
        assert!(last_error().contains(text), "{}", last_error());
    }
    close(Ok(mover));
}

#[test]
fn the_note_names_the_executor_that_was_opened() {
    let mover = open(&options()).expect("it opens");
    let whole = "the core executes all operations, as asked\n";
    for bytes in [0, 1, 4, 100] {
        let mut text = [7_u8; 100];
        let place = if bytes == 0 {
            std::ptr::null_mut()
        } else {
            text.as_mut_ptr().cast()
        };
        // SAFETY: a place for so many bytes.
        let length = unsafe { dray_note(mover, place, bytes) };
        assert_eq!(length as usize, whole.len());
        let written = whole.len().min(bytes.saturating_sub(1));
        assert_eq!(&text[..written], &whole.as_bytes()[..written]);
        if bytes > 0 {
            assert_eq!(text[written], 0);
        }
        assert!(text[bytes..].iter().all(|byte| *byte == 7));
    }
    // SAFETY: there is no place, and nothing is written.
    let refused = unsafe { dray_note(mover, std::ptr::null_mut(), 5) };
    assert_eq!(refused, -libc::EINVAL);
    close(Ok(mover));
}
