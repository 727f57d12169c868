//! What SWERROR says beside the code, and when it has what a record would have had (spec 5.4, 9.2.15).

use dray_device::SliceMemory;
use dray_spec::registers::{self as at, ErrorHead, TableOffsets};
use dray_spec::{Descriptor, Flags, WindowFlags};

use super::driver::Driver;
use super::log::{OFF, Setup, end, execute, rejection, software_error, write64};

/// Bits 63:32 of the second qword of SWERROR, if they are valid.
fn information(driver: &Driver) -> Option<u64> {
    let error = software_error(driver);
    let valid = ErrorHead::from_bits(error.head).information_valid();
    valid.then_some(error.detail >> 32)
}

fn memory() -> SliceMemory {
    SliceMemory::new(0x1000, vec![0; 64])
}

#[test]
fn errors_between_domains_name_the_handle() {
    for handle in [0_u16, 5] {
        let mut fill = Descriptor::inter_domain_fill(0, 0x2000, 64).with_destination_handle(handle);
        fill.completion_addr = 0;
        // No entry to use.
        let mut driver = OFF.driver();
        driver.submit(0, &fill);
        let work = driver.take(0);
        let outcome = execute(&mut driver, &work, &mut memory());
        end(&mut driver, work.id, &outcome);
        assert_eq!(information(&driver), Some(handle.into()));
        // A page of the other address space is not there: the destination.
        let mut driver = OFF.driver();
        let offsets = driver.function.read64(at::OFFSETS + 8);
        let table = (offsets >> 16 & 0xffff) * TableOffsets::UNIT;
        let usable = 1 | (2 | 9 << 12) << 32;
        write64(&mut driver, table + u64::from(handle) * 32, usable);
        driver.submit(0, &fill);
        let work = driver.take(0);
        let outcome = execute(&mut driver, &work, &mut memory());
        end(&mut driver, work.id, &outcome);
        assert_eq!(software_error(&driver).head >> 8 & 0xff, 3);
        assert_eq!(information(&driver), Some(3 << 29 | u64::from(handle)));
        // A window that may not be changed.
        let mut driver = OFF.driver();
        let update = Descriptor::update_window(0, 0, WindowFlags::new(), handle);
        driver.submit(0, &update);
        let work = driver.take(0);
        end(&mut driver, work.id, &rejection(&work).outcome());
        assert_eq!(software_error(&driver).head >> 8 & 0xff, 0x2c);
        assert_eq!(information(&driver), Some(handle.into()));
    }
}

#[test]
fn a_record_whose_class_no_channel_carries_is_not_written_whatever_else_is_wrong() {
    let only_a = Setup {
        traffic_classes: 1,
        ..OFF
    };
    for descriptor in [
        Descriptor::noop(),
        Descriptor::memmove(0, 0x2000, 0),
        Descriptor::noop().with_flags(Flags::BLOCK_ON_FAULT),
    ] {
        let mut driver = only_a.driver();
        let descriptor = descriptor
            .with_completion(0x4000)
            .with_flags(Flags::COMPLETION_TC_SELECTOR)
            .with_interrupt(3);
        driver.submit(0, &descriptor);
        let work = driver.take(0);
        end(&mut driver, work.id, &rejection(&work).outcome());
        assert_eq!(driver.effects, []);
        assert_eq!(software_error(&driver).head >> 8 & 0xff, 0x1e);
    }
}
