//! Rings of any content: packets are delivered or dropped, nothing is written outside the region, no
//! more is in flight than a ring has, and copies in flight end.

use std::time::Duration;

use dray_vhost::net::{MAX_PACKET_BYTES, Packet, Pool};
use dray_vhost::protocol::{Request, features as f};

use super::front_end::{FrontEnd, GUEST, REGION_BYTES, USER};
use crate::draw::Draw;

/// Descriptors of a ring.
const SIZE: u64 = 16;
/// Bytes of memory for each queue: descriptors, and the two other parts.
const QUEUE_BYTES: u64 = 0x1000;
const AVAILABLE: u64 = 0x400;
const USED: u64 = 0x800;

/// Split rings made of `bytes`.
///
/// # Panics
///
/// If the back end violates an invariant.
pub fn vhost_split(bytes: &[u8]) {
    rings(bytes, false);
}

/// Packed rings made of `bytes`.
///
/// # Panics
///
/// If the back end violates an invariant.
pub fn vhost_packed(bytes: &[u8]) {
    rings(bytes, true);
}

fn rings(bytes: &[u8], packed: bool) {
    let mut draw = Draw::new(bytes);
    let Some(mut front_end) = FrontEnd::new(draw.any()) else {
        return;
    };
    let optional = [f::MRG_RXBUF, f::IN_ORDER, f::EVENT_IDX, f::INDIRECT_DESC];
    let chosen = optional.iter().filter(|_| draw.any::<bool>());
    let mut features = f::VERSION_1 | f::PROTOCOL_FEATURES | chosen.sum::<u64>();
    if packed {
        features |= f::RING_PACKED;
    }
    start(&mut front_end, features);
    let mut pool = Pool::new(0);
    let mut next = [0u16; 2];
    while !draw.is_empty() {
        let queue = draw.below(2);
        match draw.below(8) {
            0..=3 => descriptor(&mut draw, &front_end, queue, packed),
            4 | 5 if packed => {}
            4 | 5 => offer(
                &mut draw,
                &front_end,
                queue,
                &mut next[usize::from(queue == 1)],
            ),
            6 if draw.once_in(4) => {
                let mut any = [0; 24];
                draw.fill(&mut any);
                let at = GUEST + queue * QUEUE_BYTES + draw.below(QUEUE_BYTES);
                front_end.write(at, &any);
            }
            _ => poll(&mut draw, &mut front_end, &mut pool),
        }
    }
    poll(&mut draw, &mut front_end, &mut pool);
    let FrontEnd {
        backend, channels, ..
    } = &mut front_end;
    for mut queue in backend.queues().iter() {
        let mut out = Vec::new();
        let empty = queue.clear(channels, &mut out, Duration::from_secs(10));
        assert!(empty, "copies that never end");
    }
    front_end.check();
}

fn start(front_end: &mut FrontEnd, features: u64) {
    front_end.send(Request::SetFeatures, &features.to_ne_bytes(), Vec::new());
    let file = front_end.file().into_iter().collect();
    front_end.send(Request::SetMemTable, &FrontEnd::table(), file);
    let packed = features & f::RING_PACKED != 0;
    for queue in 0..2u32 {
        let state = |number: u32| {
            let mut bytes = queue.to_ne_bytes().to_vec();
            bytes.extend(number.to_ne_bytes());
            bytes
        };
        let base = if packed { 0x8000 } else { 0 };
        front_end.send(Request::SetVringNum, &state(SIZE as u32), Vec::new());
        front_end.send(Request::SetVringBase, &state(base), Vec::new());
        let at = USER + u64::from(queue) * QUEUE_BYTES;
        let mut address = state(0);
        for part in [at, at + USED, at + AVAILABLE, 0] {
            address.extend(part.to_ne_bytes());
        }
        front_end.send(Request::SetVringAddr, &address, Vec::new());
        let kick = u64::from(queue) | 1 << 8;
        front_end.send(Request::SetVringKick, &kick.to_ne_bytes(), Vec::new());
        front_end.send(Request::SetVringEnable, &state(1), Vec::new());
    }
    let live = front_end
        .backend
        .queues()
        .iter()
        .take(2)
        .all(|q| q.is_live());
    assert!(live, "rings that do not start");
}

/// Writes a descriptor of a ring, or an entry of a table.
fn descriptor(draw: &mut Draw<'_>, front_end: &FrontEnd, queue: u64, packed: bool) {
    let table = GUEST + 2 * QUEUE_BYTES;
    let addr = match draw.below(8) {
        0 => draw.any::<u64>(),
        1 => GUEST + REGION_BYTES - draw.below(3000),
        2 => table + 16 * draw.below(8),
        3 => GUEST + draw.below(2 * QUEUE_BYTES),
        _ => GUEST + 3 * QUEUE_BYTES + draw.below(REGION_BYTES - 3 * QUEUE_BYTES),
    };
    let len = match draw.below(8) {
        0 => draw.any::<u32>(),
        1 => draw.below(14) as u32,
        2 => 16 * draw.below(20) as u32,
        _ => draw.below(3000) as u32,
    };
    let low: u16 = draw.pick(&[0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7]);
    let tail = draw.below(SIZE + 2) as u16;
    let (third, fourth) = match packed {
        false => (low, tail),
        true => (
            tail,
            low | draw.pick(&[0x80, 0x80, 0x8000, 0x8000, 0x8080, 0]),
        ),
    };
    let mut bytes = addr.to_le_bytes().to_vec();
    bytes.extend(len.to_le_bytes());
    bytes.extend(third.to_le_bytes());
    bytes.extend(fourth.to_le_bytes());
    let at = match draw.once_in(4) {
        true => table + 16 * draw.below(8),
        false => GUEST + queue * QUEUE_BYTES + 16 * draw.below(SIZE),
    };
    front_end.write(at, &bytes);
}

/// Makes a head available, mostly as a driver does.
fn offer(draw: &mut Draw<'_>, front_end: &FrontEnd, queue: u64, next: &mut u16) {
    let at = GUEST + queue * QUEUE_BYTES + AVAILABLE;
    let head = draw.below(SIZE + 1) as u16;
    let slot = u64::from(*next) % SIZE;
    front_end.write(at + 4 + 2 * slot, &head.to_le_bytes());
    *next = match draw.once_in(64) {
        true => draw.any::<u16>(),
        false => next.wrapping_add(1),
    };
    front_end.write(at + 2, &next.to_le_bytes());
}

fn poll(draw: &mut Draw<'_>, front_end: &mut FrontEnd, pool: &mut Pool) {
    let FrontEnd {
        backend, channels, ..
    } = front_end;
    let asynchronous = !channels.is_empty();
    let mut out = Vec::new();
    let mut queue = backend.from_guest(0);
    match asynchronous {
        true => queue.try_dequeue(channels, pool, &mut out, 32),
        false => queue.dequeue(pool, &mut out, 32),
    };
    drop(queue);
    for packet in &out {
        assert!((1..=MAX_PACKET_BYTES).contains(&packet.len()), "its length");
    }
    let sizes = [60, 700, 1518, 9000];
    let mut packets: Vec<Packet> = (0..3)
        .map(|_| Packet::from_bytes(&vec![0x5a; draw.pick(&sizes)]))
        .collect();
    let mut queue = backend.to_guest(0);
    match asynchronous {
        true => {
            queue.enqueue_submit(channels, &mut packets);
            queue.enqueue_poll(channels, &mut out);
        }
        false => {
            queue.enqueue(&packets);
        }
    }
    drop(queue);
    out.drain(..).for_each(|packet| pool.put(packet));
    for queue in backend.queues().iter() {
        assert!(queue.in_flight() <= SIZE as usize, "more than a ring has");
    }
}
