//! Answers.

use super::request::Header;

/// What a back end answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// A number.
    Number(u64),
    /// An index of a queue and a number.
    State(u32, u32),
}

/// An answer to the request with this id, as bytes.
pub fn encode(request: u32, reply: Reply) -> Vec<u8> {
    let payload = match reply {
        Reply::Number(number) => number.to_ne_bytes(),
        Reply::State(index, number) => {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&index.to_ne_bytes());
            bytes[4..].copy_from_slice(&number.to_ne_bytes());
            bytes
        }
    };
    let mut bytes = Header::reply(request, payload.len() as u32)
        .to_bytes()
        .to_vec();
    bytes.extend(payload);
    bytes
}
