//! Messages of vfio-user from a client that means no good: each is answered or refused, replies are as
//! long as they say, and the device can still be asked afterwards.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use dray_device::Hardware;
use dray_vfio::{Door, HEADER_BYTES, Header, Options};
use zerocopy::{FromBytes, IntoBytes};

use crate::draw::Draw;

/// Commands that there are, and some that there are not.
const COMMANDS: u64 = 21;
/// REGION_READ, for the last word.
const REGION_READ: u16 = 9;
/// Configuration space.
const CONFIG: u32 = 7;

/// Sends messages made of `bytes` to a door.
///
/// # Panics
///
/// If the door violates an invariant.
pub fn messages(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let version = draw.pick(&[0x100, 0x200]);
    let Some(capabilities) = dray_idxd::known_capabilities(version) else {
        return;
    };
    let options = Options::new(Hardware::new(capabilities));
    let Ok(mut door) = Door::new(&options, |_| ()) else {
        return;
    };
    while !draw.is_empty() {
        let command = draw.below(COMMANDS) as u16;
        let flags = draw.pick(&[0, 0, 0, 16, 1, 32]);
        let payload = payload(&mut draw, command);
        let files = if draw.once_in(4) { file() } else { Vec::new() };
        ask(&mut door, command, flags, &payload, files);
    }
    // Vendor and device, whatever came before.
    let request = [0, 0, CONFIG, 4];
    let reply = ask(&mut door, REGION_READ, 0, request.as_bytes(), Vec::new());
    let id = reply.as_deref().and_then(|reply| reply.last_chunk());
    assert_eq!(id, Some(&[0x86, 0x80, 0x25, 0x0b]), "the door is gone");
}

/// Words that mean something to the command, or any bytes.
fn payload(draw: &mut Draw<'_>, command: u16) -> Vec<u8> {
    const WORDS: [u32; 14] = [
        0,
        1,
        2,
        3,
        4,
        7,
        8,
        24,
        32,
        36,
        64,
        0x1000,
        0x1_0000,
        u32::MAX,
    ];
    let mut bytes = Vec::new();
    if matches!(command, 9 | 10) {
        let count = draw.pick(&[1, 2, 4, 4, 4, 8, 8, 64, 65, 0]);
        let region = draw.pick(&[0, 0, 2, 2, 7, 7, 1, 9, u32::MAX]);
        let offset = match draw.below(8) {
            0 => draw.any::<u64>(),
            // Commands are registers that matter.
            1 => 0xa0,
            _ => draw.below(0x2_0000) & !3,
        };
        bytes.extend(offset.to_le_bytes());
        bytes.extend(region.to_le_bytes());
        bytes.extend(u32::to_le_bytes(count));
        if command == 10 {
            let mut data = vec![0; count as usize];
            draw.fill(&mut data);
            bytes.extend(data);
        }
    } else {
        for _ in 0..draw.below(12) {
            let word = match draw.once_in(3) {
                true => draw.any::<u32>(),
                false => draw.pick(&WORDS),
            };
            bytes.extend(word.to_le_bytes());
        }
    }
    if draw.once_in(8) {
        let length = draw.below(bytes.len() as u64 + 1) as usize;
        bytes.truncate(length);
    }
    bytes
}

/// A file of one page, shared by all inputs.
fn file() -> Vec<OwnedFd> {
    static FILE: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let name = std::env::temp_dir().join(format!("dray-fuzz-{}", std::process::id()));
        let file = std::fs::File::create_new(&name).ok()?;
        std::fs::remove_file(&name).ok()?;
        file.set_len(0x1000).ok()?;
        Some(file.into())
    });
    let file = file.as_ref().and_then(|file| file.try_clone().ok());
    file.into_iter().collect()
}

fn ask(
    door: &mut Door,
    command: u16,
    flags: u32,
    payload: &[u8],
    files: Vec<OwnedFd>,
) -> Option<Vec<u8>> {
    let header = Header {
        id: 5,
        command,
        size: (HEADER_BYTES + payload.len()) as u32,
        flags,
        error: 0,
    };
    let reply = door.handle(&header, payload, files);
    assert_eq!(
        reply.is_none(),
        flags & 16 != 0,
        "a reply that was not asked for, or none"
    );
    if let Some(reply) = &reply {
        let parsed = Header::read_from_prefix(reply).map(|(header, _)| header);
        let parsed = parsed.unwrap_or(header);
        assert_eq!(parsed.size as usize, reply.len(), "a length that lies");
        assert_eq!((parsed.id, parsed.flags & 15), (5, 1), "no reply");
    }
    reply
}
