//! A driver with several devices.

use dray_idxd::driver::{Driver, Errno, Event, Options, Part, Personality};

use super::common::{bind, get, hardware, put, put_all, unbind};

/// `dsa3` of version 1 and `dsa1` of version 2, found in this order.
fn devices_3_and_1() -> Driver {
    let parts = vec![Part::new(3, hardware(0x100)), Part::new(1, hardware(0x200))];
    Driver::new(Options::new(Personality::Linux6_8), parts)
}

/// A dedicated queue of users in group 0 of this device, with an engine; not enabled.
fn dedicated(device: u32) -> String {
    format!(
        "engine{device}.0/group_id=0 wq{device}.0/group_id=0 wq{device}.0/type=user \
         wq{device}.0/name=app wq{device}.0/mode=dedicated wq{device}.0/size=16 \
         wq{device}.0/priority=10 wq{device}.0/driver_name=user"
    )
}

#[test]
fn parts_stand_in_the_order_in_which_they_were_found() {
    let driver = devices_3_and_1();
    let ids: Vec<u32> = driver.parts().map(|part| part.id).collect();
    assert_eq!(ids, [3, 1]);
    assert!(driver.function(3).is_some());
    assert!(driver.function(1).is_some());
    assert!(driver.function(0).is_none());
    assert_eq!(get(&driver, "dsa3/version"), "0x100");
    assert_eq!(get(&driver, "dsa1/version"), "0x200");
}

#[test]
fn of_parts_with_one_number_the_first_counts() {
    let parts = vec![Part::new(3, hardware(0x100)), Part::new(3, hardware(0x200))];
    let driver = Driver::new(Options::new(Personality::Linux6_8), parts);
    assert_eq!(driver.parts().count(), 1);
    assert_eq!(get(&driver, "dsa3/version"), "0x100");
}

#[test]
fn a_file_concerns_the_device_that_its_path_or_its_content_names() {
    let driver = devices_3_and_1();
    for (path, written, expected) in [
        ("/sys/bus/dsa/devices/dsa3/version", "", Some(3)),
        ("/sys/bus/dsa/devices/dsa1", "", Some(1)),
        ("/sys/bus/dsa/devices/wq1.0/size", "dsa3", Some(1)),
        ("/sys/bus/dsa/devices/engine3.0/group_id", "", Some(3)),
        ("/sys/bus/dsa/devices/group1.0", "", Some(1)),
        ("/sys/bus/dsa/drivers/idxd/bind", "dsa3", Some(3)),
        ("/sys/bus/dsa/drivers/user/bind", "wq1.2\n", Some(1)),
        ("/sys/bus/dsa/drivers/user/unbind", "wq3.0", Some(3)),
        ("/sys/bus/dsa/drivers/idxd/bind", "dsa0", None),
        ("/sys/bus/dsa/drivers/idxd/unbind", "", None),
        ("/sys/bus/dsa/devices", "", None),
        ("/sys/bus/dsa/devices/dsa0/version", "", None),
    ] {
        let found = driver.device_of(path, written.as_bytes());
        assert_eq!(found, expected, "{path} {written:?}");
    }
}

#[test]
fn devices_are_configured_and_bound_apart() {
    let mut driver = devices_3_and_1();
    put_all(&mut driver, &dedicated(3));
    put_all(&mut driver, &dedicated(1));
    bind(&mut driver, "idxd", "dsa3").unwrap();
    assert_eq!(get(&driver, "dsa3/state"), "enabled");
    assert_eq!(get(&driver, "dsa1/state"), "disabled");
    assert!(bind(&mut driver, "user", "wq1.0").is_err());
    bind(&mut driver, "idxd", "dsa1").unwrap();
    bind(&mut driver, "user", "wq1.0").unwrap();
    bind(&mut driver, "user", "wq3.0").unwrap();
    assert_eq!(get(&driver, "wq1.0/cdev_minor"), "0");
    assert_eq!(get(&driver, "wq3.0/cdev_minor"), "1");
    let appears = |device, minor| Event::NodeAppears {
        device,
        wq: 0,
        minor,
    };
    assert_eq!(driver.take_events(), [appears(1, 0), appears(3, 1)]);

    unbind(&mut driver, "idxd", "dsa1").unwrap();
    let disappears = Event::NodeDisappears { device: 1, wq: 0 };
    assert_eq!(driver.take_events(), [disappears]);
    assert_eq!(get(&driver, "dsa1/state"), "disabled");
    assert_eq!(get(&driver, "wq3.0/state"), "enabled");
    assert_eq!(put(&mut driver, "wq3.0/size", "8"), Err(Errno::EPERM));
    put(&mut driver, "wq1.0/size", "8").unwrap();
}
