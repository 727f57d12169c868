//! A loaded driver with one device.

use dray_device::{Capabilities, Hardware};
use dray_idxd::driver::{Driver, Errno, Options, Part, Personality};
use dray_idxd::known_capabilities;

/// DSA of this version, unlike any that was sold only in its event log.
pub(crate) fn hardware(version: u32) -> Hardware {
    let capabilities: Capabilities = known_capabilities(version).unwrap();
    let mut hardware = Hardware::new(capabilities);
    if version >= 0x200 {
        hardware.gen_cap = hardware.gen_cap.with_event_log_entry(1);
    }
    hardware
}

/// `dsa0` of a version, on a kernel.
pub(crate) fn driver(personality: Personality, version: u32) -> Driver {
    let mut part = Part::new(0, hardware(version));
    part.event_log = Some(0x10_0000);
    Driver::new(Options::new(personality), vec![part])
}

/// The usual: 6.8, version 1.
pub(crate) fn usual() -> Driver {
    driver(Personality::Linux6_8, 0x100)
}

/// What a file of an object holds, without the newline.
pub(crate) fn get(driver: &Driver, path: &str) -> String {
    let bytes = driver
        .read(&format!("/sys/bus/dsa/devices/{path}"))
        .unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

/// Writes a file of an object.
pub(crate) fn put(driver: &mut Driver, path: &str, value: &str) -> Result<(), Errno> {
    driver.write(&format!("/sys/bus/dsa/devices/{path}"), value.as_bytes())
}

/// Writes all of `path=value`, apart by blanks; all must be taken.
pub(crate) fn put_all(driver: &mut Driver, values: &str) {
    for pair in values.split_whitespace() {
        let (path, value) = pair.split_once('=').unwrap();
        put(driver, path, value).unwrap_or_else(|errno| panic!("{pair}: {errno}"));
    }
}

pub(crate) fn bind(driver: &mut Driver, to: &str, name: &str) -> Result<(), Errno> {
    driver.write(&format!("/sys/bus/dsa/drivers/{to}/bind"), name.as_bytes())
}

pub(crate) fn unbind(driver: &mut Driver, from: &str, name: &str) -> Result<(), Errno> {
    driver.write(
        &format!("/sys/bus/dsa/drivers/{from}/unbind"),
        name.as_bytes(),
    )
}

/// A dedicated queue of users in group 0, with an engine; not enabled.
pub(crate) const DEDICATED: &str = "engine0.0/group_id=0 wq0.0/group_id=0 wq0.0/type=user \
    wq0.0/name=app wq0.0/mode=dedicated wq0.0/size=16 wq0.0/priority=10 wq0.0/driver_name=user";

/// As [`DEDICATED`], enabled.
pub(crate) fn enabled() -> Driver {
    let mut driver = usual();
    put_all(&mut driver, DEDICATED);
    bind(&mut driver, "idxd", "dsa0").unwrap();
    bind(&mut driver, "user", "wq0.0\n").unwrap();
    driver
}
