//! The published configuration loads as it is.

use std::path::Path;

use dray_device::{Device, WorkQueueMode};
use dray_idxd::driver::Personality;
use dray_idxd::{Profile, ProfileError};

const FILE: &str = "tests/data/1e1w-d-batch64.json";
const TEXT: &str = include_str!("../../data/1e1w-d-batch64.json");

#[test]
fn loads_without_findings() {
    let profile = Profile::load(Path::new(FILE)).unwrap();
    assert_eq!(profile.validate(Personality::NEWEST), []);
    assert_eq!(profile.unmodelled(), []);
    assert_eq!(profile.title(), format!("{FILE} (1e1w-d-bs64)"));
}

#[test]
fn becomes_the_device_that_it_describes() {
    let devices = Profile::parse(TEXT, FILE).unwrap().devices().unwrap();
    let [device] = devices.as_slice() else {
        panic!("one device")
    };
    let capabilities = &device.capabilities;
    assert_eq!(capabilities.version, 0x100);
    assert_eq!(capabilities.gen_cap, 0x40_915f_0107);
    assert_eq!(capabilities.op_cap, [0x1_003f_03ff, 0, 0, 0]);
    assert_eq!(capabilities.work_queue_size, 128);
    assert_eq!(capabilities.max_batch_size, 1024);
    assert_eq!(capabilities.max_transfer_size, 1 << 31);
    let [queue] = device.work_queues.as_slice() else {
        panic!("one work queue")
    };
    assert_eq!(queue.mode, WorkQueueMode::Dedicated);
    assert_eq!((queue.size, queue.threshold, queue.priority), (128, 0, 10));
    assert_eq!(queue.max_batch_size, 64);
    assert_eq!(queue.max_transfer_size, 2 << 20);
    let [group] = device.groups.as_slice() else {
        panic!("one group with engines")
    };
    assert_eq!(group.engines, [0]);
    assert_eq!(
        (group.read_buffers_reserved, group.read_buffers_allowed),
        (0, 96)
    );
    assert!(Device::new(device.clone()).is_ok());
}

#[test]
fn is_written_as_it_was_read() {
    let profile = Profile::parse(TEXT, FILE).unwrap();
    assert_eq!(profile.to_json(), TEXT);
}

#[test]
fn resolve_tells_files_from_names() {
    assert!(Profile::resolve(FILE).is_ok());
    assert!(Profile::resolve("1e1w-d").is_ok());
    for missing in ["no/such", "missing.json", "missing.conf"] {
        let error = Profile::resolve(missing).unwrap_err();
        assert!(matches!(error, ProfileError::Read { .. }), "{error}");
        assert!(error.to_string().contains(missing));
        assert!(error.hint().unwrap().contains("1e1w-d"));
    }
    let error = Profile::resolve("1e1w-x").unwrap_err();
    assert!(matches!(error, ProfileError::UnknownName { .. }), "{error}");
}
