//! Streams of messages: each is answered, refused or ends the connection, and the next connection is
//! served.

use std::time::Instant;

use dray_vhost::net::{Packet, Pool};
use dray_vhost::protocol::{Decoder, Request};

use super::front_end::{FrontEnd, GUEST, REGION_BYTES, USER};
use crate::draw::Draw;

/// Requests that there are, and some that there are not.
const REQUESTS: u64 = 45;

/// Sends a stream made of `bytes` to a back end.
///
/// # Panics
///
/// If the back end violates an invariant.
pub fn vhost_messages(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let Some(mut front_end) = FrontEnd::new(draw.any()) else {
        return;
    };
    let mut decoder = Decoder::new();
    let mut pool = Pool::new(0);
    while !draw.is_empty() {
        let message = message(&mut draw);
        let mut files = draw.below(3);
        let mut rest = message.as_slice();
        while !rest.is_empty() {
            let most = decoder.wanted().min(rest.len());
            let count = match draw.once_in(8) {
                true => 1 + draw.below(most as u64) as usize,
                false => most,
            };
            let (now, later) = rest.split_at(count);
            rest = later;
            let descriptors = (0..files).filter_map(|_| front_end.file()).collect();
            files = 0;
            match decoder.feed(now, descriptors) {
                Ok(None) => {}
                Ok(Some(frame)) => {
                    let answer = front_end.hand(frame);
                    assert!(answer.is_none_or(|bytes| bytes.len() >= 12), "no header");
                }
                Err(_) => {
                    decoder = Decoder::new();
                    disconnect(&mut front_end);
                    break;
                }
            }
        }
        traffic(&mut front_end, &mut pool);
    }
    disconnect(&mut front_end);
    let header = dray_vhost::protocol::Header::request(Request::GetFeatures, false, 0);
    let frame = Decoder::new().feed(&header.to_bytes(), Vec::new());
    let answer = match frame {
        Ok(Some(frame)) => front_end.hand(frame),
        _ => None,
    };
    assert_eq!(answer.map(|bytes| bytes.len()), Some(20), "no answer");
    front_end.check();
}

fn disconnect(front_end: &mut FrontEnd) {
    let now = Instant::now();
    let _ = front_end.backend.disconnect(now);
    while front_end.backend.is_waiting() {
        let now = Instant::now();
        let _ = front_end.backend.resume(now);
    }
}

/// A poll of each queue.
fn traffic(front_end: &mut FrontEnd, pool: &mut Pool) {
    let mut out = Vec::new();
    for pair in 0..2 {
        let mut queue = front_end.backend.from_guest(pair);
        queue.try_dequeue(&mut front_end.channels, pool, &mut out, 32);
        let mut queue = front_end.backend.to_guest(pair);
        let mut packets = vec![Packet::from_bytes(&[7; 300]), Packet::from_bytes(&[7; 60])];
        queue.enqueue_submit(&mut front_end.channels, &mut packets);
        queue.enqueue_poll(&mut front_end.channels, &mut out);
        out.drain(..).for_each(|packet| pool.put(packet));
    }
}

/// A header that is mostly good, and words that mean something or any bytes.
fn message(draw: &mut Draw<'_>) -> Vec<u8> {
    const WORDS: [u64; 16] = [
        0,
        1,
        2,
        3,
        1 << 8,
        64,
        64 << 32 | 1,
        1 << 32,
        0x8000 << 32,
        GUEST,
        USER,
        USER + 0x4000,
        USER + 0x8000,
        REGION_BYTES,
        1 << 30 | 1 << 32 | 1 << 34,
        u64::MAX,
    ];
    let mut payload = Vec::new();
    if draw.once_in(4) {
        payload = FrontEnd::table();
    } else {
        for _ in 0..draw.below(9) {
            let word = match draw.once_in(4) {
                true => draw.any::<u64>(),
                false => draw.pick(&WORDS),
            };
            payload.extend(word.to_ne_bytes());
        }
    }
    if draw.once_in(8) {
        let length = draw.below(payload.len() as u64 + 1) as usize;
        payload.truncate(length);
    }
    let request = draw.below(REQUESTS) as u32;
    let flags: u32 = draw.pick(&[1, 1, 9, 9, 9, 5, 0]);
    let size = match draw.once_in(16) {
        true => draw.any::<u32>(),
        false => payload.len() as u32,
    };
    let mut bytes = Vec::new();
    for word in [request, flags, size] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(payload);
    bytes
}
