//! A guest: memory, two queues, and the messages that make a back end serve them.

use std::cell::RefCell;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use dray_vhost::Backend;
use dray_vhost::backend::Handled;
use dray_vhost::copy::{Channel, CopyEngine};
use dray_vhost::memory::{MemoryMap, RegionInfo};
use dray_vhost::net::{Packet, Pool};
use dray_vhost::protocol::{Frame, Header, Options, Request, features as f};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::driver::{Driver, Kind};

const NAME: &CStr = c"guest";
/// Bytes of the guest's memory.
pub const SIZE: u64 = 16 << 20;
/// Where it begins, for the guest and for its front end.
pub const BASE: u64 = 0x1000_0000;
pub const USER: u64 = 0x7e00_0000_0000;
/// Rings, one in each of these parts; then buffers.
pub const RING: u64 = 1 << 20;
pub const BUFFERS: u64 = 4 << 20;
/// What buffers are filled with before they are used.
pub const CANARY: u8 = 0xa5;

/// How a guest is set up.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub kind: Kind,
    pub size: u32,
    pub features: u64,
}

impl Setup {
    pub fn new(kind: Kind, size: u32) -> Setup {
        let packed = match kind {
            Kind::Split => 0,
            Kind::Packed => f::RING_PACKED,
        };
        Setup {
            kind,
            size,
            features: f::VERSION_1 | f::PROTOCOL_FEATURES | packed,
        }
    }

    pub fn with(mut self, features: u64) -> Setup {
        self.features |= features;
        self
    }
}

/// The guest's memory, as the guest sees it.
pub struct Memory {
    pub map: MemoryMap,
    pub file: OwnedFd,
    /// A copy of the memory that has what the guest writes, and not what the device does.
    pub mirror: RefCell<Vec<u8>>,
}

impl Memory {
    pub fn new() -> Memory {
        let file = memfd_create(NAME, MemfdFlags::CLOEXEC).expect("a memfd");
        ftruncate(&file, SIZE).expect("its length");
        let map = MemoryMap::new(1 << 40);
        let map = map.with(region(), file.try_clone().expect("a copy"));
        Memory {
            map: map.expect("mapped"),
            file,
            mirror: RefCell::default(),
        }
    }

    pub fn write(&self, guest: u64, bytes: &[u8]) {
        let at = self
            .map
            .translate(guest, bytes.len() as u32)
            .expect("mapped");
        // SAFETY: so many bytes are mapped there.
        unsafe { std::ptr::copy(bytes.as_ptr(), at.as_ptr(), bytes.len()) };
        let (mut mirror, start) = (self.mirror.borrow_mut(), (guest - BASE) as usize);
        if let Some(copy) = mirror.get_mut(start..start + bytes.len()) {
            copy.copy_from_slice(bytes);
        }
    }

    pub fn read(&self, guest: u64, len: usize) -> Vec<u8> {
        let at = self.map.translate(guest, len as u32).expect("mapped");
        let mut bytes = vec![0; len];
        // SAFETY: so many bytes are mapped there.
        unsafe { std::ptr::copy(at.as_ptr(), bytes.as_mut_ptr(), len) };
        bytes
    }

    pub fn u16(&self, guest: u64) -> u16 {
        let bytes = self.read(guest, 2);
        u16::from_le_bytes([bytes[0], bytes[1]])
    }

    pub fn u32(&self, guest: u64) -> u32 {
        u32::from(self.u16(guest)) | u32::from(self.u16(guest + 2)) << 16
    }
}

pub fn region() -> RegionInfo {
    RegionInfo {
        guest: BASE,
        size: SIZE,
        user: USER,
        offset: 0,
    }
}

/// A guest and the back end that serves it.
pub struct Guest {
    pub setup: Setup,
    pub memory: Memory,
    pub backend: Backend,
    pub channels: Vec<Channel>,
    pub pool: Pool,
    /// To the guest, from the guest.
    pub rings: [Driver; 2],
    pub asynchronous: bool,
    next_buffer: u64,
    /// Where buffers end: the next one is the first again.
    pub buffers_end: u64,
    /// Whether buffers are filled before they are provided, so that what is written shows.
    pub fills: bool,
    done: Vec<Packet>,
}

impl Guest {
    pub fn new(setup: Setup, engines: Vec<Box<dyn CopyEngine>>) -> Guest {
        let memory = Memory::new();
        memory.write(BASE + BUFFERS, &vec![CANARY; (SIZE - BUFFERS) as usize]);
        let rings = [0, 1]
            .map(|queue| Driver::new(setup.kind, setup.size, setup.features, BASE + queue * RING));
        let asynchronous = !engines.is_empty();
        let named = engines.into_iter().enumerate();
        let channels = named.map(|(at, engine)| Channel::new(format!("wq0.{at}"), engine));
        let mut guest = Guest {
            setup,
            memory,
            backend: Backend::new(Options::default()),
            channels: channels.collect(),
            pool: Pool::new(0),
            rings,
            asynchronous,
            next_buffer: BASE + BUFFERS,
            buffers_end: BASE + SIZE,
            fills: true,
            done: Vec::new(),
        };
        for mut queue in guest.backend.queues().iter() {
            queue.set_copy_threshold(0);
            for channel in 0..guest.channels.len() {
                queue.attach(&mut guest.channels, channel);
            }
        }
        guest.connect();
        guest.start();
        guest
    }

    /// Sends a request; the answer's payload, if there is one.
    pub fn try_send(
        &mut self,
        request: Request,
        payload: &[u8],
        descriptors: Vec<OwnedFd>,
    ) -> Result<Option<Vec<u8>>, String> {
        let frame = Frame {
            header: Header::request(request, true, payload.len() as u32),
            payload: payload.to_vec(),
            descriptors,
        };
        let mut handled = self.backend.handle(frame, Instant::now());
        loop {
            match handled {
                Ok(Handled::Done(answer)) => return Ok(answer.map(|bytes| bytes[12..].to_vec())),
                Err(error) => return Err(error.to_string()),
                Ok(Handled::Waiting) => {
                    self.poll_data(&mut Vec::new(), 0);
                    handled = self.backend.resume(Instant::now());
                }
            }
        }
    }

    pub fn send(&mut self, request: Request, payload: &[u8]) -> u64 {
        let answer = self
            .try_send(request, payload, Vec::new())
            .expect("an answer");
        number(&answer.unwrap_or_default())
    }

    pub fn state(&mut self, request: Request, index: u32, number: u32) -> u64 {
        let answer = self.try_send(request, &words(index, number), Vec::new());
        number_of(answer)
    }

    pub fn connect(&mut self) {
        let offered = self.send(Request::GetFeatures, &[]);
        assert_eq!(offered & self.setup.features, self.setup.features);
        let protocol = f::PROTOCOL_REPLY_ACK | f::PROTOCOL_CONFIGURE_MEM_SLOTS | f::PROTOCOL_MQ;
        self.send(Request::SetProtocolFeatures, &protocol.to_ne_bytes());
        let features = self.setup.features.to_ne_bytes();
        assert_eq!(self.send(Request::SetFeatures, &features), 0);
        let table = table(&[region()]);
        let file = self.memory.file.try_clone().expect("a copy");
        let answer = self.try_send(Request::SetMemTable, &table, vec![file]);
        assert_eq!(number_of(answer), 0);
    }

    pub fn start(&mut self) {
        for queue in 0..2 {
            self.start_queue(queue);
        }
    }

    pub fn start_queue(&mut self, queue: u32) {
        let base = self.rings[queue as usize].base();
        assert_eq!(self.state(Request::SetVringNum, queue, self.setup.size), 0);
        assert_eq!(self.state(Request::SetVringBase, queue, base), 0);
        let address = self.rings[queue as usize].address(queue);
        assert_eq!(self.send(Request::SetVringAddr, &address), 0);
        // No file descriptor: both sides poll.
        let poll = (u64::from(queue) | 1 << 8).to_ne_bytes();
        assert_eq!(self.send(Request::SetVringKick, &poll), 0);
        assert_eq!(self.state(Request::SetVringEnable, queue, 1), 0);
    }

    /// A run of the guest's memory that was not used before; it begins again at the end.
    pub fn buffer(&mut self, len: u32) -> u64 {
        let len = u64::from(len).next_multiple_of(64) + 64;
        if self.next_buffer + len > self.buffers_end {
            self.next_buffer = BASE + BUFFERS;
        }
        let at = self.next_buffer;
        self.next_buffer += len;
        at
    }

    /// Where the buffer lies that was given out last, if it has this length.
    pub fn last_buffer(&self, len: u32) -> u64 {
        self.next_buffer - u64::from(len).next_multiple_of(64) - 64
    }

    /// Writes a descriptor of the ring's kind; `tail` is next (split) or nothing (packed).
    pub fn write_entry(&self, at: u64, (addr, len, flags): (u64, u32, u16), tail: u16) {
        let (third, fourth) = match self.setup.kind {
            Kind::Split => (flags, tail),
            Kind::Packed => (0, flags),
        };
        self.rings[1].write_split(&self.memory, at, (addr, len, third, fourth));
    }

    /// Queues a packet of the guest, cut into parts of at most `part` bytes.
    pub fn transmit(&mut self, packet: &[u8], part: usize, indirect: bool) -> bool {
        let mut bytes = vec![0; 12];
        bytes.extend_from_slice(packet);
        if !self.rings[1].has_room(bytes.chunks(part).len(), indirect) {
            return false;
        }
        let mut chain = Vec::new();
        for piece in bytes.chunks(part) {
            let at = self.buffer(piece.len() as u32);
            self.memory.write(at, piece);
            chain.push((at, piece.len() as u32, false));
        }
        let table = indirect.then(|| self.buffer(16 * chain.len() as u32));
        self.rings[1].add(&self.memory, &chain, table)
    }

    /// Gives the back end a buffer of these parts to write.
    pub fn provide(&mut self, parts: &[u32], indirect: bool) -> bool {
        if !self.rings[0].has_room(parts.len(), indirect) {
            return false;
        }
        let mut chain = Vec::new();
        for len in parts {
            let at = self.buffer(*len);
            if self.fills {
                self.memory.write(at, &vec![CANARY; *len as usize + 64]);
            }
            chain.push((at, *len, true));
        }
        let table = indirect.then(|| self.buffer(16 * chain.len() as u32));
        self.rings[0].add(&self.memory, &chain, table)
    }

    /// The next packet that the guest has received, with its header.
    pub fn received(&mut self) -> Option<Vec<u8>> {
        let first = self.rings[0].used(&self.memory)?;
        let mut packet = first.bytes;
        let merged = self.setup.features & f::MRG_RXBUF != 0 && packet.len() >= 12;
        let buffers = match merged {
            true => u16::from_le_bytes([packet[10], packet[11]]),
            false => 1,
        };
        for _ in 1..buffers {
            let next = self.rings[0]
                .used(&self.memory)
                .expect("published together");
            packet.extend(next.bytes);
        }
        Some(packet)
    }

    /// Lets the back end take packets of the guest; those that it was given before and are done.
    pub fn poll_data(&mut self, out: &mut Vec<Packet>, max: usize) {
        self.poll_from_guest(out, max);
        self.poll_to_guest();
    }

    /// Lets the back end take packets until so many buffers of the guest have come back: the pages of a long chain
    /// may take it several calls.
    pub fn poll_until_back(&mut self, out: &mut Vec<Packet>, buffers: usize) {
        let mut back = 0;
        for _ in 0..10_000 {
            self.poll_data(out, 32);
            self.settle(out);
            back += self.rings[1].reclaim(&self.memory);
            if back >= buffers {
                break;
            }
        }
        assert_eq!(back, buffers, "buffers that came back");
    }

    pub fn poll_from_guest(&mut self, out: &mut Vec<Packet>, max: usize) {
        let mut queue = self.backend.from_guest(0);
        match self.asynchronous {
            true => queue.try_dequeue(&mut self.channels, &mut self.pool, out, max),
            false => queue.dequeue(&mut self.pool, out, max),
        };
    }

    pub fn poll_to_guest(&mut self) {
        let mut queue = self.backend.to_guest(0);
        queue.enqueue_poll(&mut self.channels, &mut self.done);
        self.done.drain(..).for_each(|packet| self.pool.put(packet));
    }

    /// Lets the back end give packets to the guest; what it does not take stays.
    pub fn deliver(&mut self, packets: &mut Vec<Packet>) -> usize {
        let mut queue = self.backend.to_guest(0);
        match self.asynchronous {
            true => queue.enqueue_submit(&mut self.channels, packets),
            false => {
                let count = queue.enqueue(packets);
                packets.drain(..count).for_each(|p| self.pool.put(p));
                count
            }
        }
    }

    /// Lets copies end.
    pub fn settle(&mut self, out: &mut Vec<Packet>) {
        let until = Instant::now() + Duration::from_secs(20);
        while self.backend.queues().iter().any(|q| q.in_flight() > 0) {
            self.poll_data(out, 0);
            assert!(Instant::now() < until, "copies that never end");
        }
    }

    /// A packet of the guest goes through, and one to the guest.
    pub fn assert_flows(&mut self) {
        let sent: Vec<u8> = (0..300).map(|i| (i * 5) as u8).collect();
        assert!(self.transmit(&sent, 4096, false), "room in the ring");
        let mut out = Vec::new();
        self.poll_data(&mut out, 32);
        self.settle(&mut out);
        let last = out.pop().expect("the good packet");
        assert_eq!(last.bytes(), sent);
        assert!(out.is_empty(), "packets out of nothing");
        assert!(self.provide(&[2048], false), "room in the ring");
        let mut packets = vec![Packet::from_bytes(&sent)];
        assert_eq!(self.deliver(&mut packets), 1);
        self.settle(&mut out);
        loop {
            let packet = self.received().expect("the good packet");
            if !packet.is_empty() {
                assert_eq!(packet[12..], sent);
                return;
            }
        }
    }
}

pub fn words(first: u32, second: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    bytes
}

pub fn table(regions: &[RegionInfo]) -> Vec<u8> {
    let mut bytes = words(regions.len() as u32, 0).to_vec();
    regions.iter().for_each(|r| bytes.extend(region_bytes(r)));
    bytes
}

pub fn region_bytes(region: &RegionInfo) -> Vec<u8> {
    let fields = [region.guest, region.size, region.user, region.offset];
    fields
        .iter()
        .flat_map(|field| field.to_ne_bytes())
        .collect()
}

pub fn number(bytes: &[u8]) -> u64 {
    let word = <[u8; 8]>::try_from(bytes).unwrap_or([0xff; 8]);
    u64::from_ne_bytes(word)
}

pub fn number_of(answer: Result<Option<Vec<u8>>, String>) -> u64 {
    number(&answer.expect("a connection").expect("an answer"))
}
