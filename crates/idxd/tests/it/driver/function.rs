//! The driver of a PCI function, unbound and bound.

use dray_idxd::driver::{EntryKind, Errno};

use super::common::*;

const DRIVER: &str = "/sys/bus/pci/drivers/idxd";
const ADDRESS: &str = "0000:6a:01.0";

#[test]
fn an_unbound_function_takes_its_devices_away_and_a_bound_one_is_fresh() {
    let mut driver = enabled();
    let client = driver.open(0, 0, 7).unwrap();
    let function = format!("/sys/devices/pci0000:6a/{ADDRESS}");
    let entries = driver.list(&function).unwrap();
    let link = entries.iter().find(|entry| entry.name == "driver").unwrap();
    assert_eq!(
        link.kind,
        EntryKind::Link("../../../bus/pci/drivers/idxd".to_owned())
    );
    assert_eq!(
        driver.device_of(&format!("{DRIVER}/unbind"), ADDRESS.as_bytes()),
        Some(0)
    );
    for wrong in ["dsa0", "0000:6a:01.1", "", "\u{e9}"] {
        let unbind = driver.write(&format!("{DRIVER}/unbind"), wrong.as_bytes());
        assert_eq!(unbind, Err(Errno::ENODEV), "{wrong}");
    }
    let bind = format!("{DRIVER}/bind");
    assert_eq!(driver.write(&bind, ADDRESS.as_bytes()), Err(Errno::EBUSY));

    let by_link = format!("{function}/driver/unbind");
    driver
        .write(&by_link, format!("{ADDRESS}\n").as_bytes())
        .unwrap();
    assert_eq!(driver.list("/sys/bus/dsa/devices"), Ok(Vec::new()));
    assert_eq!(driver.list(&function), Ok(Vec::new()));
    assert_eq!(driver.nodes(), []);
    for gone in [
        "/sys/bus/dsa/devices/dsa0/state",
        "/sys/bus/dsa/devices/wq0.0/size",
    ] {
        assert_eq!(driver.read(gone), Err(Errno::ENOENT), "{gone}");
    }
    assert_eq!(driver.list(&format!("{function}/dsa0")), Err(Errno::ENOENT));
    assert_eq!(
        driver.write(&format!("{DRIVER}/unbind"), ADDRESS.as_bytes()),
        Err(Errno::ENODEV)
    );
    assert_eq!(bind_by_name(&mut driver), Err(Errno::ENODEV));
    assert_eq!(driver.release(client), Ok(()));

    driver.write(&bind, ADDRESS.as_bytes()).unwrap();
    assert_eq!(get(&driver, "dsa0/state"), "disabled");
    assert_eq!(get(&driver, "wq0.0/group_id"), "-1");
    put_all(&mut driver, DEDICATED);
    bind_by_name(&mut driver).unwrap();
    super::common::bind(&mut driver, "user", "wq0.0").unwrap();
    // Numbers of clients are not given again.
    assert_ne!(driver.open(0, 0, 7).unwrap(), client);
}

fn bind_by_name(driver: &mut dray_idxd::driver::Driver) -> Result<(), Errno> {
    super::common::bind(driver, "idxd", "dsa0")
}
