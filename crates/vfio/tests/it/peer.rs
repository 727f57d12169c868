//! The client of the crate `vfio_user`, which we did not write.

use std::os::fd::AsRawFd;

use crate::client::{BAR0, CONFIG, Running, SharedFile, Vector};

#[test]
fn the_vfio_user_crates_client_finds_the_device() {
    let running = Running::start();
    let mut client = vfio_user::Client::new(&running.socket).expect("a session");
    let sizes: Vec<u64> = (0..9)
        .map(|n| client.region(n).map_or(0, |region| region.size))
        .collect();
    assert_eq!(sizes, [0x2_0000, 0, 0x2_0000, 0, 0, 0, 0, 4096, 0]);
    let mut id = [0; 4];
    client.region_read(CONFIG, 0, &mut id).expect("read");
    assert_eq!(id, [0x86, 0x80, 0x25, 0x0b]);
    let mut version = [0; 4];
    client.region_read(BAR0, 0, &mut version).expect("read");
    assert_eq!(version, [0, 1, 0, 0]);
    let msix = client.get_irq_info(2).expect("MSI-X");
    assert_eq!(msix.count, 9);
    let memory = SharedFile::new(0x1000);
    let fd = memory.0.as_raw_fd();
    client.dma_map(0, 0x1000, 0x1000, fd).expect("mapped");
    let vector = Vector::new();
    // Data is an eventfd, the action is to trigger.
    client
        .set_irqs(2, 4 | 32, 0, 1, &[vector.0.as_raw_fd()])
        .expect("set up");
    client.region_write(CONFIG, 4, &[6, 0]).expect("written");
    // Reset Device, with an interrupt at its end.
    let reset = 5_u32 << 20 | 1 << 31;
    client
        .region_write(BAR0, 0xa0, &reset.to_le_bytes())
        .expect("written");
    assert_eq!(vector.wait(), 1);
    client.dma_unmap(0x1000, 0x1000).expect("unmapped");
    client.shutdown().expect("closed");
}
