//! The tables, and each refusal.

use std::fmt::Write;

use dray_idxd::driver::{
    Attribute, DEVICE_ATTRIBUTES, ENGINE_ATTRIBUTES, Errno, GROUP_ATTRIBUTES, Personality,
    WORK_QUEUE_ATTRIBUTES,
};

use super::common::*;

#[test]
fn tables() {
    let mut text = String::new();
    let tables: [(&str, &[Attribute]); 4] = [
        ("dsa", DEVICE_ATTRIBUTES),
        ("group", GROUP_ATTRIBUTES),
        ("engine", ENGINE_ATTRIBUTES),
        ("wq", WORK_QUEUE_ATTRIBUTES),
    ];
    for (owner, attributes) in tables {
        for attribute in attributes {
            let Attribute {
                name,
                format,
                needs,
                ..
            } = attribute;
            write!(
                text,
                "{owner}/{name} {:04o} {format:?} {needs:?}",
                attribute.mode()
            )
            .unwrap();
            for refusal in attribute.refusals {
                write!(text, "; {:?} {}", refusal.when, refusal.errno.name()).unwrap();
            }
            text.push('\n');
        }
    }
    insta::assert_snapshot!(text);
}

/// What there is to see after the driver was loaded, on each kernel and version.
#[test]
fn a_fresh_device() {
    let mut text = String::new();
    for personality in Personality::ALL {
        for version in [0x100, 0x200] {
            let driver = driver(personality, version);
            for object in ["dsa0", "group0.0", "engine0.0", "wq0.0"] {
                writeln!(text, "{personality} {version:#x} {object}").unwrap();
                let path = format!("/sys/bus/dsa/devices/{object}");
                for entry in driver.list(&path).unwrap() {
                    match driver.read(&format!("{path}/{}", entry.name)) {
                        Ok(bytes) => {
                            let value = String::from_utf8(bytes).unwrap();
                            writeln!(text, "  {}: {}", entry.name, value.trim_end()).unwrap();
                        }
                        Err(Errno::EISDIR) => {}
                        Err(errno) => writeln!(text, "  {}: {errno}", entry.name).unwrap(),
                    }
                }
            }
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn refusals_while_a_queue_is_enabled() {
    let mut driver = enabled();
    let cases = [
        ("wq0.0/name", "x", Errno::EPERM),
        ("wq0.0/type", "kernel", Errno::EPERM),
        ("wq0.0/mode", "shared", Errno::EPERM),
        ("wq0.0/priority", "3", Errno::EPERM),
        ("wq0.0/priority", "x", Errno::EINVAL),
        ("wq0.0/group_id", "1", Errno::EPERM),
        ("wq0.0/max_batch_size", "0", Errno::EPERM),
        ("wq0.0/max_transfer_size", "4096", Errno::EPERM),
        ("wq0.0/ats_disable", "1", Errno::ENOENT),
        ("wq0.0/driver_name", "user", Errno::EPERM),
        ("wq0.0/block_on_fault", "1", Errno::ENXIO),
        ("wq0.0/threshold", "8", Errno::ENXIO),
        ("wq0.0/threshold", "0", Errno::EINVAL),
        ("wq0.0/size", "8", Errno::EPERM),
        ("wq0.1/size", "8", Errno::EPERM),
        ("wq0.0/enqcmds_retries", "8", Errno::EOPNOTSUPP),
        ("dsa0/read_buffer_limit", "8", Errno::EPERM),
        ("dsa0/token_limit", "8", Errno::EPERM),
        ("group0.0/read_buffers_reserved", "8", Errno::EPERM),
        ("group0.0/tokens_allowed", "8", Errno::EPERM),
        ("group0.0/use_read_buffer_limit", "0", Errno::EPERM),
        ("group0.0/traffic_class_a", "0", Errno::EPERM),
        ("wq0.0/state", "0", Errno::EACCES),
        ("wq0.0/op_config", "0", Errno::ENOENT),
    ];
    for (path, value, errno) in cases {
        assert_eq!(put(&mut driver, path, value), Err(errno), "{path} {value}");
    }
    // The driver does not look whether the device is enabled.
    put(&mut driver, "engine0.3/group_id", "3").unwrap();
    put(&mut driver, "wq0.1/priority", "15").unwrap();
}

/// Hidden where the device has no such switch since 6.5 and its stable siblings; before, shown and
/// refused, whatever is written.
#[test]
fn ats_is_disabled_where_the_device_can() {
    let cases = [
        (Personality::Linux5_18, 0x100, Err(Errno::EOPNOTSUPP)),
        (Personality::Linux6_4, 0x100, Err(Errno::ENOENT)),
        (Personality::Linux5_18, 0x200, Ok(())),
        (Personality::Linux6_4, 0x200, Ok(())),
    ];
    for (personality, version, expected) in cases {
        let mut driver = driver(personality, version);
        let written = put(&mut driver, "wq0.0/ats_disable", "1");
        assert_eq!(written, expected, "{personality} {version:#x}");
    }
    let mut old = driver(Personality::Linux5_18, 0x100);
    let written = put(&mut old, "wq0.0/ats_disable", "-2");
    assert_eq!(written, Err(Errno::EOPNOTSUPP));
}

#[test]
fn ranges() {
    let mut driver = driver(Personality::Linux6_8, 0x200);
    let refused = [
        ("wq0.0/size", "257"),
        ("wq0.0/size", "18446744073709551615"),
        ("wq0.0/priority", "16"),
        ("wq0.0/group_id", "4"),
        ("wq0.0/group_id", "-2"),
        ("wq0.0/threshold", "1"),
        ("wq0.0/max_batch_size", "1025"),
        ("wq0.0/max_batch_size", "0"),
        ("wq0.0/max_transfer_size", "0x80000001"),
        ("wq0.0/name", ""),
        ("wq0.0/op_config", "2,0,0"),
        ("wq0.0/mode", "both"),
        ("wq0.0/type", "mdev"),
        ("wq0.0/block_on_fault", "x"),
        ("dsa0/read_buffer_limit", "97"),
        ("dsa0/event_log_size", "63"),
        ("group0.0/read_buffers_reserved", "97"),
        ("group0.0/read_buffers_allowed", "97"),
        ("group0.0/desc_progress_limit", "4"),
        ("group0.0/batch_progress_limit", "-1"),
        ("engine0.0/group_id", "4"),
    ];
    for (path, value) in refused {
        assert_eq!(
            put(&mut driver, path, value),
            Err(Errno::EINVAL),
            "{path} {value}"
        );
    }
    put_all(
        &mut driver,
        "wq0.0/size=256 wq0.0/threshold=0x100 wq0.0/max_batch_size=33 \
         wq0.0/max_transfer_size=0x7fffffff wq0.0/op_config=8 dsa0/read_buffer_limit=96",
    );
    let names = [
        "threshold",
        "max_batch_size",
        "max_transfer_size",
        "op_config",
    ];
    let shown = names.map(|name| get(&driver, &format!("wq0.0/{name}")));
    let zeros = "00000000,".repeat(7);
    assert_eq!(
        shown,
        ["256", "64", "2147483648", &format!("{zeros}00000008")]
    );
    assert_eq!(put(&mut driver, "wq0.1/size", "1"), Err(Errno::EINVAL));
    let long = "x".repeat(1025);
    assert_eq!(put(&mut driver, "wq0.0/name", &long), Err(Errno::EINVAL));
    put(&mut driver, "wq0.0/name", &long[1..]).unwrap();
}

#[test]
fn one_write_changes_another_attribute() {
    let mut driver = driver(Personality::Linux7_2, 0x200);
    put_all(
        &mut driver,
        "wq0.0/size=16 wq0.0/threshold=8 wq0.0/name=app",
    );
    put(&mut driver, "wq0.0/mode", "dedicated\n").unwrap();
    assert_eq!(get(&driver, "wq0.0/threshold"), "0");
    assert_eq!(put(&mut driver, "wq0.0/threshold", "8"), Err(Errno::EINVAL));
    put(&mut driver, "wq0.0/type", "user").unwrap();
    assert_eq!(get(&driver, "wq0.0/name"), "");
    put_all(&mut driver, "wq0.0/block_on_fault=1 wq0.0/prs_disable=1");
    assert_eq!(get(&driver, "wq0.0/block_on_fault"), "0");
    assert_eq!(
        put(&mut driver, "wq0.0/block_on_fault", "1"),
        Err(Errno::EOPNOTSUPP)
    );
    put(&mut driver, "wq0.0/name", " app \n").unwrap();
    assert_eq!(get(&driver, "wq0.0/name"), "app");
}

#[test]
fn read_buffers_are_shared_out() {
    let mut driver = usual();
    put_all(
        &mut driver,
        "engine0.0/group_id=0 engine0.1/group_id=0 group0.0/read_buffers_reserved=90",
    );
    let refused = |driver: &mut _, path: &str, value: &str| {
        assert_eq!(
            put(driver, path, value),
            Err(Errno::EINVAL),
            "{path} {value}"
        );
    };
    refused(&mut driver, "group0.0/read_buffers_allowed", "7");
    put_all(&mut driver, "group0.0/read_buffers_allowed=96");
    refused(&mut driver, "group0.1/read_buffers_reserved", "7");
    refused(&mut driver, "group0.1/read_buffers_allowed", "7");
    put_all(
        &mut driver,
        "group0.1/read_buffers_reserved=6 group0.1/read_buffers_allowed=6",
    );
    assert_eq!(
        put(&mut driver, "group0.0/use_read_buffer_limit", "1"),
        Err(Errno::EPERM)
    );
    put_all(
        &mut driver,
        "dsa0/read_buffer_limit=8 group0.0/use_token_limit=1",
    );
    assert_eq!(get(&driver, "group0.0/use_read_buffer_limit"), "1");
}

#[test]
fn traffic_classes_are_the_drivers() {
    let cases = [
        (Personality::Linux5_18, 0x100, false),
        (Personality::Linux5_18, 0x200, true),
        (Personality::Linux6_8, 0x200, false),
    ];
    for (personality, version, taken) in cases {
        let mut driver = driver(personality, version);
        let result = put(&mut driver, "group0.0/traffic_class_a", "3");
        assert_eq!(result.is_ok(), taken, "{personality} {version:#x}");
    }
}
