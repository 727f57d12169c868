//! Bind, unbind, and what they leave.

use dray_idxd::driver::{Driver, EntryKind};
use dray_idxd::driver::{Errno, Event, Options, Part, Personality};

use super::common::*;

fn status(driver: &Driver) -> String {
    get(driver, "dsa0/cmd_status")
}

#[test]
fn a_queue_comes_and_goes() {
    for personality in Personality::ALL {
        for version in [0x100, 0x200] {
            let mut driver = driver(personality, version);
            let named = personality.has_driver_name();
            let rest = DEDICATED.replace("wq0.0/driver_name=user", "");
            put_all(&mut driver, if named { DEDICATED } else { &rest });
            bind(&mut driver, "idxd", "dsa0\n").unwrap();
            assert_eq!(get(&driver, "dsa0/state"), "enabled");
            assert_eq!(get(&driver, "wq0.0/state"), "disabled");
            assert_eq!(
                driver.read("/sys/bus/dsa/devices/wq0.0/cdev_minor"),
                Err(Errno::ENXIO)
            );
            bind(&mut driver, "user", "wq0.0").unwrap();
            assert_eq!(get(&driver, "wq0.0/cdev_minor"), "0");
            assert_eq!(driver.function(0).unwrap().queue(0).unwrap().size, 16);
            let appears = Event::NodeAppears {
                device: 0,
                wq: 0,
                minor: 0,
            };
            assert_eq!(driver.take_events(), [appears]);
            let node = EntryKind::Node {
                major: 237,
                minor: 0,
            };
            assert_eq!(driver.nodes()[0].kind, node);
            unbind(&mut driver, "user", "wq0.0").unwrap();
            let gone = Event::NodeDisappears { device: 0, wq: 0 };
            assert_eq!(driver.take_events(), [gone]);
            assert_eq!(driver.nodes(), []);
            // The size and the group stay, and so does the driver's name.
            let left = ["size", "group_id", "type", "name", "mode", "priority"];
            let left = left.map(|name| get(&driver, &format!("wq0.0/{name}")));
            assert_eq!(left, ["16", "0", "none", "", "shared", "0"]);
            if named {
                assert_eq!(get(&driver, "wq0.0/driver_name"), "user");
            }
            unbind(&mut driver, "idxd", "dsa0").unwrap();
            let left = ["wq0.0/size", "wq0.0/group_id", "engine0.0/group_id"];
            assert_eq!(left.map(|path| get(&driver, path)), ["0", "-1", "-1"]);
            assert_eq!(get(&driver, "group0.0/work_queues"), "");
        }
    }
}

#[test]
fn unbinding_the_device_takes_its_queues_along() {
    let mut driver = enabled();
    driver.take_events();
    unbind(&mut driver, "idxd", "dsa0").unwrap();
    assert_eq!(
        driver.take_events(),
        [Event::NodeDisappears { device: 0, wq: 0 }]
    );
    assert_eq!(get(&driver, "wq0.0/state"), "disabled");
    assert_eq!(driver.function(0).unwrap().queue(0), None);
}

#[test]
fn why_a_device_is_not_enabled() {
    let mut driver = usual();
    assert_eq!(bind(&mut driver, "idxd", "dsa0"), Err(Errno::ENXIO));
    assert_eq!(status(&driver), "0x800d0000");
    put_all(
        &mut driver,
        "wq0.0/group_id=0 wq0.0/mode=dedicated wq0.0/type=user",
    );
    put(&mut driver, "dsa0/cmd_status", "1").unwrap();
    assert_eq!(bind(&mut driver, "idxd", "dsa0"), Err(Errno::ENXIO));
    assert_eq!(
        (
            status(&driver).as_str(),
            get(&driver, "wq0.0/size").as_str()
        ),
        ("0x0", "0")
    );
    // Another group has the engine: the device says so. The driver has given the queue a size.
    put(&mut driver, "engine0.0/group_id", "1").unwrap();
    assert_eq!(bind(&mut driver, "idxd", "dsa0"), Err(Errno::ENXIO));
    assert_eq!(
        (
            status(&driver).as_str(),
            get(&driver, "wq0.0/size").as_str()
        ),
        ("0x15", "16")
    );
    put(&mut driver, "engine0.0/group_id", "0").unwrap();
    bind(&mut driver, "idxd", "dsa0").unwrap();
    assert_eq!(status(&driver), "0x0");
    assert_eq!(bind(&mut driver, "idxd", "dsa0"), Err(Errno::EBUSY));
}

#[test]
fn a_queue_without_size() {
    let grouped = "engine0.0/group_id=0 wq0.0/group_id=0 wq0.0/mode=dedicated wq0.0/type=user";
    let mut old = driver(Personality::Linux5_18, 0x100);
    put_all(&mut old, grouped);
    assert_eq!(bind(&mut old, "idxd", "dsa0"), Err(Errno::ENXIO));
    assert_eq!(status(&old), "0x800d0000");
    put_all(
        &mut old,
        "wq0.1/group_id=0 wq0.1/mode=dedicated wq0.1/size=8",
    );
    assert_eq!(bind(&mut old, "idxd", "dsa0"), Err(Errno::ENXIO));
    assert_eq!(status(&old), "0x800e0000");
    // Without a type no size is given, and the device finds a queue without entries in a group.
    let mut new = usual();
    put_all(
        &mut new,
        "engine0.0/group_id=0 wq0.0/group_id=0 wq0.0/mode=dedicated",
    );
    assert_eq!(bind(&mut new, "idxd", "dsa0"), Err(Errno::ENXIO));
    assert_eq!(status(&new), "0x16");
}

#[test]
fn why_a_queue_is_not_enabled() {
    let cases = [
        ("wq0.0/driver_name=dmaengine", Errno::ENODEV, "0x80200000"),
        ("wq0.0/group_id=-1", Errno::ENXIO, "0x80030000"),
        ("wq0.0/type=kernel", Errno::ENXIO, "0x80040000"),
        ("wq0.0/mode=shared", Errno::ENXIO, "0x80060000"),
        ("wq0.0/priority=0", Errno::ENXIO, "0x23"),
    ];
    for (change, errno, code) in cases {
        let mut driver = usual();
        put_all(&mut driver, DEDICATED);
        bind(&mut driver, "idxd", "dsa0").unwrap();
        put_all(&mut driver, change);
        assert_eq!(bind(&mut driver, "user", "wq0.0"), Err(errno), "{change}");
        assert_eq!(status(&driver), code, "{change}");
        assert_eq!(get(&driver, "wq0.0/type"), "none", "{change}");
        assert_eq!(driver.take_events(), []);
    }
    let mut driver = usual();
    put_all(&mut driver, DEDICATED);
    assert_eq!(bind(&mut driver, "user", "wq0.0"), Err(Errno::ENXIO));
    // The driver does not look further, and says nothing.
    assert_eq!(status(&driver), "0x0");
    assert_eq!(bind(&mut driver, "user", "group0.0"), Err(Errno::ENODEV));
    assert_eq!(bind(&mut driver, "idxd", "wq0.0"), Err(Errno::ENODEV));
    assert_eq!(unbind(&mut driver, "user", "wq0.0"), Err(Errno::ENODEV));
    assert_eq!(bind(&mut driver, "user", "wq0.8"), Err(Errno::ENODEV));
}

#[test]
fn without_shared_virtual_addressing() {
    let without = |personality| {
        let mut part = Part::new(0, hardware(0x100));
        part.pasid_enabled = false;
        Driver::new(Options::new(personality), vec![part])
    };
    let rest = DEDICATED.replace("wq0.0/driver_name=user", "");
    // Before 6.1 a dedicated queue of users was let through.
    let mut old = without(Personality::Linux5_18);
    put_all(&mut old, &rest);
    bind(&mut old, "idxd", "dsa0").unwrap();
    bind(&mut old, "user", "wq0.0").unwrap();
    for personality in [Personality::Linux6_8, Personality::Linux7_2] {
        let mut driver = without(personality);
        put_all(&mut driver, DEDICATED);
        bind(&mut driver, "idxd", "dsa0").unwrap();
        assert_eq!(bind(&mut driver, "user", "wq0.0"), Err(Errno::EOPNOTSUPP));
        assert_eq!(status(&driver), "0x80110000");
        // What comes first has changed with 6.10.
        put_all(&mut driver, "wq0.0/driver_name=other");
        let errno = bind(&mut driver, "user", "wq0.0");
        let first = match personality {
            Personality::Linux7_2 => Errno::ENODEV,
            _ => Errno::EOPNOTSUPP,
        };
        assert_eq!(errno, Err(first));
    }
    let mut middle = without(Personality::Linux6_4);
    put_all(&mut middle, &rest);
    bind(&mut middle, "idxd", "dsa0").unwrap();
    assert_eq!(bind(&mut middle, "user", "wq0.0"), Err(Errno::EOPNOTSUPP));
    let mut shared = without(Personality::Linux6_8);
    put_all(&mut shared, DEDICATED);
    put_all(&mut shared, "wq0.0/mode=shared");
    assert_eq!(bind(&mut shared, "idxd", "dsa0"), Err(Errno::ENXIO));
    assert_eq!(status(&shared), "0x800c0000");
}

#[test]
fn kernel_queues_have_no_node() {
    let mut driver = usual();
    put_all(&mut driver, DEDICATED);
    put_all(
        &mut driver,
        "wq0.0/type=kernel wq0.0/name=dmaengine wq0.0/driver_name=dmaengine",
    );
    bind(&mut driver, "idxd", "dsa0").unwrap();
    bind(&mut driver, "dmaengine", "wq0.0").unwrap();
    assert_eq!(get(&driver, "wq0.0/type"), "kernel");
    assert_eq!(driver.nodes(), []);
    assert!(driver.function(0).unwrap().queue(0).unwrap().privileged);
}

#[test]
fn paths_lead_through_links() {
    let driver = enabled();
    let long = "/sys/devices/pci0000:6a/0000:6a:01.0/dsa0/wq0.0/size";
    assert_eq!(driver.read(long), Ok(b"16\n".to_vec()));
    let through = "/sys/bus/dsa/drivers/user/wq0.0/size";
    assert_eq!(driver.read(through), Ok(b"16\n".to_vec()));
    let unbind = "/sys/bus/dsa/devices/wq0.0/driver/unbind";
    assert_eq!(driver.read(unbind), Err(Errno::EACCES));
    let links = driver.list("/sys/bus/dsa/devices").unwrap();
    assert_eq!(links.len(), 1 + 8 + 4 + 4);
    for link in links {
        let EntryKind::Link(target) = link.kind else {
            panic!("{link:?}")
        };
        let target = target.replace("../../../", "/sys/");
        assert!(driver.list(&target).is_ok(), "{target}");
    }
    for bad in [
        "/sys/bus/pcie",
        "/sys/bus/dsa/devices/dsa0/x",
        "/proc",
        "/sys/bus/dsa/devices/wq0.00",
    ] {
        assert_eq!(driver.list(bad), Err(Errno::ENOENT), "{bad}");
    }
    assert_eq!(driver.list(long), Err(Errno::ENOTDIR));
}
