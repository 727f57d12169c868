//! Lists of pages, mixed: copied whole, and the counts say by whom.

use dray::pages::{PageCopy, PageCounts, PageListError, PageListOptions, copy_page_lists};
use dray::virt::{Options, Regions, VirtualDevice};
use dray::{CpuMover, Mover};
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_spec::Status;

use crate::machine::{device, queue};
use crate::policies::FirstTouch;

const BASE: u64 = 4096;
const LARGE: u64 = 2 << 20;

/// Sources and destinations of a list: base pages in a scattered order, then large pages.
struct Pages {
    source: Vec<u8>,
    target: Vec<u8>,
    list: Vec<PageCopy>,
}

impl Pages {
    fn new(base: u64, large: u64) -> Pages {
        let bytes = (base * BASE + large * LARGE) as usize;
        let noise = |n: usize| (n.wrapping_mul(0x9e37_79b9) >> 13) as u8;
        let source: Vec<u8> = (0..bytes).map(noise).collect();
        let mut target = vec![0_u8; bytes];
        let from = source.as_ptr().expose_provenance() as u64;
        let to = target.as_mut_ptr().expose_provenance() as u64;
        let mut list = Vec::new();
        let mut add = |offset, bytes| {
            list.push(PageCopy {
                source: from + offset,
                destination: to + offset,
                bytes,
            });
        };
        // Even pages first: no two neighbours in the list are neighbours in memory.
        for n in (0..base).step_by(2).chain((1..base).step_by(2)) {
            add(n * BASE, BASE);
        }
        for n in (0..large).rev() {
            add(base * BASE + n * LARGE, LARGE);
        }
        Pages {
            source,
            target,
            list,
        }
    }

    fn bytes(&self) -> u64 {
        self.source.len() as u64
    }

    fn copy<M: Mover>(
        &self,
        channels: &mut [M],
        options: &PageListOptions,
    ) -> Result<PageCounts, PageListError> {
        // SAFETY: the buffers are this value's own, and looked at afterwards.
        unsafe { copy_page_lists(channels, &self.list, options) }
    }

    fn assert_copied(&self) {
        assert!(self.source == self.target, "not all was copied");
    }
}

#[test]
fn a_mixed_list_over_one_to_eight_channels() {
    for mode in [Dedicated, Shared] {
        for channels in [1, 2, 4, 8] {
            let pages = Pages::new(1024, 24);
            let queues = (0..channels).map(|id| queue(id, mode, 16)).collect();
            let device = VirtualDevice::start(device(4, queues), Options::default());
            let device = device.expect("a device that can be enabled");
            let open = |id| device.open(id, 64).expect("a queue");
            let mut movers: Vec<_> = (0..channels).map(open).collect();
            let options = PageListOptions {
                require_device: true,
                ..PageListOptions::default()
            };
            let counts = pages
                .copy(&mut movers, &options)
                .expect("all by the device");
            pages.assert_copied();
            assert_eq!(counts.device_bytes, pages.bytes());
            assert_eq!(counts.in_batches, 1024, "{channels} channels");
            assert_eq!(counts.page_faults + counts.after_failure_bytes, 0);
            // Every large page is in as many pieces as there are channels, and 2 MiB is the
            // largest transfer.
            assert_eq!(counts.descriptors, 1024 + 24 * u64::from(channels));
        }
    }
}

#[test]
fn a_short_list_is_copied_by_threads_of_this_process() {
    for threads in [1, 2, 4] {
        let pages = Pages::new(11, 0);
        let options = PageListOptions {
            core_threads: threads,
            ..PageListOptions::default()
        };
        let counts = pages.copy(&mut [CpuMover::new(4)], &options);
        pages.assert_copied();
        let counts = counts.expect("a list");
        assert_eq!(counts.below_threshold_bytes, pages.bytes());
        assert_eq!(counts.device_bytes, 0);
    }
    let pages = Pages::new(12, 0);
    let counts = pages.copy(&mut [CpuMover::new(4)], &PageListOptions::default());
    pages.assert_copied();
    assert_eq!(counts.expect("a list").device_bytes, pages.bytes());
}

#[test]
fn without_channels_the_core_copies_unless_a_device_is_required() {
    let pages = Pages::new(64, 1);
    let none: &mut [CpuMover] = &mut [];
    let required = PageListOptions {
        require_device: true,
        ..PageListOptions::default()
    };
    let refused = pages.copy(none, &required);
    assert_eq!(refused, Err(PageListError::NoChannel));
    assert!(pages.target.iter().all(|byte| *byte == 0));
    let counts = pages.copy(none, &PageListOptions::default());
    pages.assert_copied();
    assert_eq!(counts.expect("a list").below_threshold_bytes, pages.bytes());
}

#[test]
fn what_the_device_cannot_reach_the_core_finishes_or_nobody() {
    for required in [false, true] {
        let pages = Pages::new(32, 0);
        // All but one page of the destination, which stays out of reach however often it is touched.
        let hidden = pages.list[5].destination;
        let space = Regions::new()
            .with(
                pages.list[0].source & !0xfff,
                pages.bytes() + 2 * BASE,
                true,
            )
            .with(pages.list[0].destination, pages.bytes(), true);
        let reach = Without {
            space,
            hidden: hidden..hidden + BASE,
        };
        let device = VirtualDevice::start_in(
            device(1, vec![queue(0, Dedicated, 16)]),
            Options::default(),
            reach,
            |_| {},
        );
        let device = device.expect("a device that can be enabled");
        let mut movers = [device.open(0, 64).expect("a queue")];
        let options = PageListOptions {
            require_device: required,
            ..PageListOptions::default()
        };
        let result = pages.copy(&mut movers, &options);
        if required {
            let Err(PageListError::NotByDevice { bytes, status }) = result else {
                panic!("{result:?}");
            };
            assert_eq!(bytes, BASE);
            assert_eq!(status, Status::PAGE_FAULT.with_write_fault());
        } else {
            let counts = result.expect("the core has finished it");
            pages.assert_copied();
            assert_eq!(counts.after_failure_bytes, BASE);
            assert_eq!(counts.device_bytes, pages.bytes() - BASE);
            assert_eq!(counts.page_faults, 64);
        }
    }
}

#[test]
fn a_copy_into_untouched_memory_takes_a_fault_for_each_page_and_is_the_devices() {
    let pages = Pages::new(0, 1);
    let config = device(1, vec![queue(0, Dedicated, 16)]);
    let space = FirstTouch::everywhere();
    let started = VirtualDevice::start_in(config, Options::default(), space, |_| {});
    let mover = started.expect("a device").open(0, 64).expect("a queue");
    let counts = pages.copy(&mut [mover], &PageListOptions::default());
    pages.assert_copied();
    let counts = counts.expect("a list");
    assert_eq!(
        (counts.device_bytes, counts.after_failure_bytes),
        (LARGE, 0)
    );
    assert!(counts.page_faults >= 512, "{counts:?}");
}

/// Regions but for some addresses that cannot be written.
struct Without {
    space: Regions,
    hidden: std::ops::Range<u64>,
}

impl dray::virt::Translation for Without {
    fn accessible(&self, addr: u64, len: u64, access: dray_device::Access) -> u64 {
        let bytes = self.space.accessible(addr, len, access);
        match access {
            dray_device::Access::Write if self.hidden.contains(&addr) => 0,
            dray_device::Access::Write if addr < self.hidden.start => {
                bytes.min(self.hidden.start - addr)
            }
            _ => bytes,
        }
    }
}
