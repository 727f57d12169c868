//! Opening work queues.

use dray_idxd::driver::Errno;

use super::common::*;

#[test]
fn a_dedicated_queue_has_one_client_and_its_pasid() {
    let mut driver = enabled();
    let one = driver.open(0, 0, 77).unwrap();
    assert_eq!(driver.open(0, 0, 78), Err(Errno::EBUSY));
    assert_eq!(get(&driver, "wq0.0/clients"), "1");
    assert_eq!(get(&driver, "dsa0/clients"), "1");
    let pasid = |driver: &dray_idxd::driver::Driver| {
        driver
            .function(0)
            .unwrap()
            .queue(0)
            .map(|queue| queue.pasid)
    };
    assert_eq!(pasid(&driver), Some(Some(77)));
    driver.release(one).unwrap();
    assert_eq!(get(&driver, "wq0.0/clients"), "0");
    assert_eq!(pasid(&driver), Some(None));
    let two = driver.open(0, 0, 78).unwrap();
    assert_ne!(one, two);
    assert_eq!(pasid(&driver), Some(Some(78)));
}

#[test]
fn a_shared_queue_has_many() {
    let mut driver = usual();
    put_all(&mut driver, DEDICATED);
    put_all(&mut driver, "wq0.0/mode=shared wq0.0/threshold=8");
    bind(&mut driver, "idxd", "dsa0").unwrap();
    bind(&mut driver, "user", "wq0.0").unwrap();
    let clients: Vec<_> = (0..3)
        .map(|pasid| driver.open(0, 0, pasid).unwrap())
        .collect();
    assert_eq!(get(&driver, "wq0.0/clients"), "3");
    driver.release(clients[1]).unwrap();
    assert_eq!(get(&driver, "wq0.0/clients"), "2");
    // Disabling does not ask them; what they have open is worth nothing.
    unbind(&mut driver, "user", "wq0.0").unwrap();
    assert_eq!(get(&driver, "wq0.0/clients"), "0");
    driver.release(clients[0]).unwrap();
    assert_eq!(driver.open(0, 0, 1), Err(Errno::ENOENT));
    assert_eq!(driver.open(0, 9, 1), Err(Errno::ENOENT));
    assert_eq!(driver.open(3, 0, 1), Err(Errno::ENOENT));
}
