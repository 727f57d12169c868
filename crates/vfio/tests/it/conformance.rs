//! The table of rules through the door: the client is the driver, and its memory has page tables.

use dray_conformance::rules::{Case, Observed, PAGE, Page, Pages, RECORD, RuleDoor, check};
use dray_device::{DeviceConfig, Hardware, WorkQueueMode};
use dray_spec::registers::{
    CMD, CMDSTATUS, Command, CommandRegister, ErrorHead, IDBR, OFFSETS, SWERROR,
};
use dray_spec::{CompletionRecord, Descriptor, Status};
use dray_vfio::{Door, HEADER_BYTES, Header, Options};
use zerocopy::{FromBytes, IntoBytes};

use crate::client::{BAR0, BAR2, CONFIG, SharedFile, access, portal};

/// Guest physical memory: tables, then the pages of each PASID.
const GUEST_BYTES: u64 = 0x20_0000;
const ROOT: u64 = 0x1000;
const CONTEXT: u64 = 0x2000;
const DIRECTORY: u64 = 0x3000;
const PASIDS: u64 = 0x4000;
/// PASIDs of the table.
const OWN: u32 = 1;
const OTHERS: [u32; 2] = [2, 3];

fn tables(pasid: u32) -> u64 {
    0x1_0000 * u64::from(pasid)
}

fn pages_at(pasid: u32) -> u64 {
    // Pages of the queue's PASID are at the addresses of requests without PASID as well.
    0x10_0000 + 0x4_0000 * u64::from(pasid - OWN)
}

/// A client without a socket.
struct Driver {
    door: Door,
    memory: SharedFile,
}

impl Driver {
    fn ask(&mut self, command: u16, payload: &[u8]) -> Vec<u8> {
        let header = Header {
            id: 1,
            command,
            size: (HEADER_BYTES + payload.len()) as u32,
            flags: 0,
            error: 0,
        };
        let fds = match command {
            2 => vec![self.memory.0.try_clone().expect("a duplicate")],
            _ => Vec::new(),
        };
        let reply = self.door.handle(&header, payload, fds).expect("a reply");
        let (header, rest) = Header::read_from_prefix(&reply).expect("a header");
        assert_eq!(header.error, 0, "command {command}");
        rest.to_vec()
    }

    fn write(&mut self, region: u32, offset: u64, bytes: &[u8]) {
        let request = [&access(region, offset, bytes.len() as u32)[..], bytes].concat();
        self.ask(10, &request);
    }

    fn read(&mut self, region: u32, offset: u64, count: u32) -> Vec<u8> {
        self.ask(9, &access(region, offset, count))[16..].to_vec()
    }

    fn read64(&mut self, offset: u64) -> u64 {
        let bytes = self.read(BAR0, offset, 8);
        u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
    }

    fn command(&mut self, command: Command, operand: u32) -> u32 {
        let register = CommandRegister::of(command, operand).into_bits();
        self.write(BAR0, CMD, &register.to_le_bytes());
        loop {
            let status = self.read64(CMDSTATUS) as u32;
            if status >> 31 == 0 {
                return status;
            }
        }
    }

    fn put(&self, address: u64, word: u64) {
        self.memory.put(address, &word.to_le_bytes());
    }

    /// Maps what a PASID has, through four levels of tables.
    fn map_pages(&self, pasid: u32, pages: &Pages) {
        let (base, at) = (pages.base(), tables(pasid));
        let entry = PASIDS + 64 * u64::from(pasid);
        self.put(entry, 1 << 6 | 1);
        self.put(entry + 16, at);
        self.put(at, (at + PAGE) | 7);
        self.put(at + PAGE, (at + 2 * PAGE) | 7);
        self.put(at + 2 * PAGE + 8 * (base >> 21), (at + 3 * PAGE) | 7);
        for n in 0..32 {
            let permissions = match pages.page(base + n * PAGE) {
                Page::Hole => continue,
                Page::ReadOnly => 5,
                Page::ReadWrite => 7,
            };
            let place = pages_at(pasid) + n * PAGE;
            let index = ((base >> 12) + n) & 0x1ff;
            self.put(at + 3 * PAGE + 8 * index, place | permissions);
            self.memory
                .put(place, pages.peek(base + n * PAGE, PAGE as usize));
        }
    }

    fn gather(&self, pasid: u32, pages: &mut Pages) {
        for n in 0..32 {
            let address = pages.base() + n * PAGE;
            if pages.page(address) != Page::Hole {
                let bytes = self.memory.get(pages_at(pasid) + n * PAGE, PAGE as usize);
                pages.poke(address, &bytes);
            }
        }
    }
}

struct VfioUser;

impl RuleDoor for VfioUser {
    fn name(&self) -> String {
        "vfio-user".to_owned()
    }

    fn lacks(&self, case: &Case) -> Option<&'static str> {
        let config = case.device();
        let queue = &config.work_queues[0];
        match () {
            () if queue.block_on_fault || queue.prs_disable => Some(PAGE_REQUESTS),
            () if config.pci.traffic_classes != u8::MAX => Some(CHANNELS),
            () => None,
        }
    }

    fn run(&mut self, case: &Case) -> Observed {
        run(case, &case.device())
    }
}

const PAGE_REQUESTS: &str = "page requests";
const CHANNELS: &str = "virtual channels";
/// Rules of which no case can be tried.
const UNTRIED: [&str; 1] = ["a virtual channel carries the traffic class"];

fn hardware(config: &DeviceConfig) -> Hardware {
    let mut hardware = Hardware::new(config.capabilities.clone());
    // All interrupt handles are valid, as the table expects.
    hardware.without_driver = true;
    hardware.gen_cap.set_configurable(true);
    if config
        .work_queues
        .iter()
        .any(|q| q.op_config != [u64::MAX; 4])
    {
        hardware.wq_cap = hardware
            .wq_cap
            .with_operation_config(true)
            .with_config_shift(1);
    }
    hardware
}

/// Carries a case out.
fn run(case: &Case, config: &DeviceConfig) -> Observed {
    let hardware = hardware(config);
    let door = Door::new(&Options::new(hardware.clone()), |_| ()).expect("a device");
    let memory = SharedFile::new(GUEST_BYTES);
    let mut driver = Driver { door, memory };
    let map = [32_u32, 3, 0, 0, 0, 0, GUEST_BYTES as u32, 0];
    driver.ask(2, map.as_bytes());
    // Function 00:01.0.
    driver.put(ROOT, CONTEXT | 1);
    driver.put(CONTEXT + 32 * 8, DIRECTORY | 7 << 9 | 1);
    driver.put(DIRECTORY, PASIDS | 1);
    let mut pages = case.memory();
    driver.map_pages(OWN, &pages);
    for pasid in OTHERS {
        if let Some(other) = pages.other(pasid) {
            driver.map_pages(pasid, other);
        }
    }
    driver.write(CONFIG, 0x110, &(ROOT | 1 << 10).to_le_bytes());
    driver.write(CONFIG, 0x10c, &(1_u32 << 31 | 8).to_le_bytes());
    let ats = u16::from(config.pci.ats) << 15;
    driver.write(CONFIG, 0x226, &ats.to_le_bytes());
    let privileged = u16::from(config.pci.privileged_mode) << 2;
    driver.write(CONFIG, 0x236, &(privileged | 1).to_le_bytes());
    driver.write(CONFIG, 4, &6_u16.to_le_bytes());
    for write in config.register_writes(&hardware).expect("registers") {
        let bytes = write.value.to_le_bytes();
        driver.write(BAR0, write.offset, &bytes[..write.size.into()]);
    }
    driver.write(BAR0, IDBR, &config.idpt.bitmaps.into_bits().to_le_bytes());
    let table = (driver.read64(OFFSETS + 8) >> 16 & 0xffff) * 0x100;
    for (n, entry) in (0..).zip(&config.idpt.entries) {
        let at = table + 32 * n;
        let access = u64::from(entry.access.into_bits()) << 32;
        // The control word locks these fields, so they are written first.
        driver.write(BAR0, at + 8, &entry.window_base.to_le_bytes());
        driver.write(BAR0, at + 16, &entry.window_size.to_le_bytes());
        driver.write(BAR0, at + 24, &entry.bitmap.to_le_bytes());
        let control = u64::from(entry.control.into_bits());
        driver.write(BAR0, at, &(control | access).to_le_bytes());
    }
    assert_eq!(driver.command(Command::EnableDevice, 0), 0, "{case:?}");
    assert_eq!(driver.command(Command::EnableWq, 0), 0, "{case:?}");
    let descriptor = case.submission();
    submit(&mut driver, config.work_queues[0].mode, &descriptor);
    assert_eq!(driver.command(Command::DrainAll, 0), 0);
    driver.gather(OWN, &mut pages);
    for pasid in OTHERS {
        if let Some(other) = pages.other_mut(pasid) {
            driver.gather(pasid, other);
        }
    }
    let record = CompletionRecord::read_from_bytes(pages.peek(RECORD, 32)).expect("32 bytes");
    let head = ErrorHead::from_bits(driver.read64(SWERROR));
    let status = Status(head.error() | u8::from(head.write()) << 7);
    let error = (status, driver.read64(SWERROR + 16));
    Observed {
        records: (record.status != 0)
            .then_some((RECORD, record))
            .into_iter()
            .collect(),
        errors: head.valid().then_some(error).into_iter().collect(),
        memory: pages,
    }
}

fn submit(driver: &mut Driver, mode: WorkQueueMode, descriptor: &Descriptor) {
    if mode == WorkQueueMode::Shared {
        driver.read(BAR2, portal(0), 2);
    }
    driver.write(BAR2, portal(0), descriptor.as_bytes());
}

#[test]
fn the_rules_hold_through_vfio_user() {
    let report = check(&mut VfioUser);
    println!("{report}");
    assert_eq!(report.failed(), 0, "{report}");
    let reasons: Vec<&str> = report.left_out().into_keys().collect();
    assert_eq!(reasons, [PAGE_REQUESTS, CHANNELS]);
    assert_eq!(report.untried(), UNTRIED);
}
