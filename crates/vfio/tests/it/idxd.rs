//! The Linux driver's rules over the registers of a function behind a socket: the same as over a virtual device in this
//! process, and the queue that they set up works.

use std::cell::RefCell;

use dray_idxd::driver::{Driver, Errno, Options, Part, Personality, Registers};
use dray_spec::{CompletionRecord, Descriptor, Status};
use zerocopy::FromBytes;

use crate::client::{BAR0, CONFIG, Client, Running, SharedFile, hardware};

/// BAR0 behind a socket. The device runs by itself: writes have no effects here.
struct Bar(RefCell<Client>);

impl Registers for Bar {
    fn read32(&self, offset: u64) -> u32 {
        self.0.borrow_mut().read32(BAR0, offset)
    }

    fn read64(&self, offset: u64) -> u64 {
        let bytes = self.0.borrow_mut().read(BAR0, offset, 8).expect("read");
        u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
    }

    fn write32(&mut self, offset: u64, value: u32) {
        let client = self.0.get_mut();
        client
            .write(BAR0, offset, &value.to_le_bytes())
            .expect("written");
    }

    fn write64(&mut self, offset: u64, value: u64) {
        let client = self.0.get_mut();
        client
            .write(BAR0, offset, &value.to_le_bytes())
            .expect("written");
    }

    fn privileged_mode(&self) -> bool {
        false
    }
}

/// A file of sysfs, and what is written to it; without a text it is read.
type Access = (&'static str, Option<&'static str>);

/// A configuration, its use and its removal, with errors in between.
const LIFE: &[Access] = &[
    ("devices/dsa0/state", None),
    ("devices/dsa0/gen_cap", None),
    ("drivers/idxd/bind", Some("dsa0")),
    ("devices/dsa0/cmd_status", None),
    ("devices/wq0.0/group_id", Some("0")),
    ("devices/wq0.0/mode", Some("dedicated")),
    ("devices/wq0.0/size", Some("129")),
    ("devices/wq0.0/size", Some("16")),
    ("devices/wq0.0/priority", Some("10")),
    ("devices/wq0.0/type", Some("kernel")),
    ("devices/wq0.0/name", Some("copies")),
    ("devices/wq0.0/driver_name", Some("dmaengine")),
    ("drivers/dmaengine/bind", Some("wq0.0")),
    ("drivers/idxd/bind", Some("dsa0")),
    ("devices/engine0.0/group_id", Some("0")),
    ("devices/engine0.1/group_id", Some("0")),
    ("drivers/idxd/bind", Some("dsa0")),
    ("devices/dsa0/state", None),
    ("devices/wq0.0/size", Some("8")),
    ("devices/wq0.0/state", None),
    ("drivers/dmaengine/bind", Some("wq0.0")),
    ("drivers/dmaengine/bind", Some("wq0.0")),
    ("devices/wq0.0/state", None),
    ("devices/wq0.0/occupancy", None),
    ("devices/dsa0/errors", None),
    ("devices/dsa0/cmd_status", None),
];

const END: &[Access] = &[
    ("drivers/dmaengine/unbind", Some("wq0.0")),
    ("devices/wq0.0/state", None),
    ("drivers/idxd/unbind", Some("dsa0")),
    ("devices/dsa0/state", None),
    ("devices/wq0.0/size", None),
    ("devices/dsa0/cmd_status", None),
];

/// The result of each access. Where the kernel would sleep the device continues by itself.
fn live<R: Registers>(
    driver: &mut Driver<R>,
    accesses: &[Access],
) -> Vec<(&'static str, Result<String, Errno>)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let access = |&(path, written): &Access| {
        let file = format!("/sys/bus/dsa/{path}");
        let result = match written {
            None => driver.read(&file).map(text),
            Some(value) => loop {
                match driver.write(&file, value.as_bytes()) {
                    Err(Errno::EAGAIN) => std::thread::yield_now(),
                    result => break result.map(|()| String::new()),
                }
            },
        };
        (path, result)
    };
    accesses.iter().map(access).collect()
}

#[test]
fn the_driver_configures_a_device_through_vfio_user() {
    const BASE: u64 = 0x1_0000_0000;
    let part = || {
        let mut part = Part::new(0, hardware(0x100));
        part.pasid_enabled = false;
        part
    };
    let options = Options::new(Personality::Linux6_8);
    let mut here = Driver::new(options.clone(), vec![part()]);

    let running = Running::start();
    let mut client = running.client();
    let memory = SharedFile::new(4096);
    client.map(BASE, 4096, &memory.0).expect("mapped");
    client
        .write(CONFIG, 4, &6_u16.to_le_bytes())
        .expect("bus master");
    let mut there = Driver::over(options, [(part(), Bar(RefCell::new(client)))]);

    let lived = live(&mut there, LIFE);
    assert_eq!(lived, live(&mut here, LIFE));
    let refused = lived.iter().filter(|(_, result)| result.is_err()).count();
    assert_eq!(refused, 6, "{lived:#?}");

    // The queue that the driver has enabled takes a copy.
    memory.put(2048, b"through the queue that idxd set up");
    let copy = Descriptor::memmove(BASE + 2048, BASE + 3072, 64).with_completion(BASE);
    let bar = there.registers(0).expect("there");
    bar.0.borrow_mut().post(0, &copy);
    let record = loop {
        let record = CompletionRecord::read_from_bytes(&memory.get(0, 32)).expect("32 bytes");
        if record.status != 0 {
            break record;
        }
        std::thread::yield_now();
    };
    assert_eq!(record.status(), Status::SUCCESS);
    assert_eq!(memory.get(3072, 64), memory.get(2048, 64));

    assert_eq!(live(&mut there, END), live(&mut here, END));
    drop(there);
    let (counts, ends) = running.stop();
    assert_eq!(counts.queues[&0].bytes, 64);
    assert_eq!((counts.unmodelled.len(), ends.len()), (0, 0));
}
