//! Requests with their payloads.

use std::os::fd::OwnedFd;

use rustix::fs::FileType;

use super::decoder::Frame;
use super::request::{MAX_DESCRIPTORS, Request};
use crate::VhostError;
use crate::memory::RegionInfo;

/// Addresses of a ring, in the front end's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VringAddress {
    /// Index of the queue.
    pub index: u32,
    /// Bit 0: writes to the used ring are logged.
    pub flags: u32,
    /// Descriptor table (split), or descriptor ring (packed).
    pub descriptors: u64,
    /// Used ring (split), or the device's event area (packed).
    pub used: u64,
    /// Available ring (split), or the driver's event area (packed).
    pub available: u64,
    /// Where writes to the used ring are logged.
    pub log: u64,
}

impl VringAddress {
    /// Where writes to the ring are logged; none if they are not.
    pub fn ring_log(&self) -> Option<u64> {
        (self.flags & 1 != 0).then_some(self.log)
    }
}

/// A request with its payload and file descriptors.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Message {
    GetFeatures,
    SetFeatures(u64),
    SetOwner,
    ResetOwner,
    SetMemTable(Vec<(RegionInfo, OwnedFd)>),
    SetLogBase {
        bytes: u64,
        offset: u64,
        file: OwnedFd,
    },
    SetLogFd(Option<OwnedFd>),
    SetVringNum {
        index: u32,
        size: u32,
    },
    SetVringAddr(VringAddress),
    SetVringBase {
        index: u32,
        base: u32,
    },
    GetVringBase {
        index: u32,
    },
    SetVringKick {
        index: u32,
        descriptor: Option<OwnedFd>,
    },
    SetVringCall {
        index: u32,
        descriptor: Option<OwnedFd>,
    },
    SetVringErr {
        index: u32,
        descriptor: Option<OwnedFd>,
    },
    GetProtocolFeatures,
    SetProtocolFeatures(u64),
    GetQueueNum,
    SetVringEnable {
        index: u32,
        enable: bool,
    },
    SendRarp([u8; 6]),
    NetSetMtu(u64),
    ResetDevice,
    GetMaxMemSlots,
    AddMemReg(RegionInfo, OwnedFd),
    RemMemReg(RegionInfo),
    SetStatus(u64),
    GetStatus,
    /// Known by name, never offered.
    NotOffered(Request),
    /// Not known.
    Unknown(u32),
}

struct Payload<'a> {
    request: Request,
    bytes: &'a [u8],
}

impl Payload<'_> {
    fn error(&self, reason: &'static str) -> VhostError {
        VhostError::Malformed {
            request: self.request,
            reason,
        }
    }

    fn exactly(&self, size: usize) -> Result<(), VhostError> {
        match self.bytes.len() == size {
            true => Ok(()),
            false => Err(self.error("the payload has a wrong size")),
        }
    }

    fn u32(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_ne_bytes(word)
    }

    fn u64(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_ne_bytes(word)
    }

    fn number(&self) -> Result<u64, VhostError> {
        self.exactly(8)?;
        Ok(self.u64(0))
    }

    fn state(&self) -> Result<(u32, u32), VhostError> {
        self.exactly(8)?;
        Ok((self.u32(0), self.u32(4)))
    }

    fn region(&self, at: usize) -> RegionInfo {
        RegionInfo {
            guest: self.u64(at),
            size: self.u64(at + 8),
            user: self.u64(at + 16),
            offset: self.u64(at + 24),
        }
    }
}

/// Bytes of a region in a message.
const REGION_BYTES: usize = 32;

impl Message {
    /// Interprets a frame. Descriptors that the request does not have are closed.
    ///
    /// # Errors
    /// [`VhostError::Malformed`]: a wrong payload or number of descriptors.
    pub fn parse(frame: Frame) -> Result<Message, VhostError> {
        let Some(request) = Request::from_id(frame.header.request) else {
            return Ok(Message::Unknown(frame.header.request));
        };
        let payload = Payload {
            request,
            bytes: &frame.payload,
        };
        let mut descriptors = frame.descriptors;
        Ok(match request {
            Request::GetFeatures => Message::GetFeatures,
            Request::SetFeatures => Message::SetFeatures(payload.number()?),
            Request::SetOwner => Message::SetOwner,
            Request::ResetOwner => Message::ResetOwner,
            Request::SetMemTable => Message::SetMemTable(table(&payload, descriptors)?),
            Request::SetLogBase => {
                payload.exactly(16)?;
                let file = descriptors.pop();
                Message::SetLogBase {
                    bytes: payload.u64(0),
                    offset: payload.u64(8),
                    file: file.ok_or_else(|| payload.error("it has no file descriptor"))?,
                }
            }
            Request::SetLogFd => {
                payload.exactly(0)?;
                if descriptors.iter().any(is_file) {
                    return Err(payload.error("a file notifies nobody"));
                }
                Message::SetLogFd(descriptors.pop())
            }
            Request::SetVringNum => {
                let (index, size) = payload.state()?;
                Message::SetVringNum { index, size }
            }
            Request::SetVringAddr => {
                payload.exactly(40)?;
                Message::SetVringAddr(VringAddress {
                    index: payload.u32(0),
                    flags: payload.u32(4),
                    descriptors: payload.u64(8),
                    used: payload.u64(16),
                    available: payload.u64(24),
                    log: payload.u64(32),
                })
            }
            Request::SetVringBase => {
                let (index, base) = payload.state()?;
                Message::SetVringBase { index, base }
            }
            Request::GetVringBase => {
                // Its second word is garbage (virtio-user).
                let (index, _) = payload.state()?;
                Message::GetVringBase { index }
            }
            Request::SetVringKick => {
                let (index, descriptor) = notifier(&payload, &mut descriptors)?;
                Message::SetVringKick { index, descriptor }
            }
            Request::SetVringCall => {
                let (index, descriptor) = notifier(&payload, &mut descriptors)?;
                Message::SetVringCall { index, descriptor }
            }
            Request::SetVringErr => {
                let (index, descriptor) = notifier(&payload, &mut descriptors)?;
                Message::SetVringErr { index, descriptor }
            }
            Request::GetProtocolFeatures => Message::GetProtocolFeatures,
            Request::SetProtocolFeatures => Message::SetProtocolFeatures(payload.number()?),
            Request::GetQueueNum => Message::GetQueueNum,
            Request::SetVringEnable => match payload.state()? {
                (index, num @ 0..=1) => Message::SetVringEnable {
                    index,
                    enable: num == 1,
                },
                _ => return Err(payload.error("it is neither 0 nor 1")),
            },
            Request::SendRarp => {
                let word = payload.number()?.to_ne_bytes();
                Message::SendRarp([word[0], word[1], word[2], word[3], word[4], word[5]])
            }
            Request::NetSetMtu => Message::NetSetMtu(payload.number()?),
            Request::ResetDevice => Message::ResetDevice,
            Request::GetMaxMemSlots => Message::GetMaxMemSlots,
            Request::AddMemReg => {
                payload.exactly(8 + REGION_BYTES)?;
                let file = descriptors.pop();
                let file = file.ok_or_else(|| payload.error("it has no file descriptor"))?;
                Message::AddMemReg(payload.region(8), file)
            }
            Request::RemMemReg => {
                payload.exactly(8 + REGION_BYTES)?;
                Message::RemMemReg(payload.region(8))
            }
            Request::SetStatus => Message::SetStatus(payload.number()?),
            Request::GetStatus => Message::GetStatus,
            Request::SetBackendReqFd
            | Request::IotlbMsg
            | Request::GetConfig
            | Request::SetConfig
            | Request::GetInflightFd
            | Request::SetInflightFd => Message::NotOffered(request),
        })
    }
}

fn table(
    payload: &Payload<'_>,
    descriptors: Vec<OwnedFd>,
) -> Result<Vec<(RegionInfo, OwnedFd)>, VhostError> {
    if payload.bytes.len() < 8 {
        return Err(payload.error("the payload has a wrong size"));
    }
    let count = payload.u32(0) as usize;
    if count > MAX_DESCRIPTORS {
        return Err(payload.error("it has more than 8 regions"));
    }
    // Front ends may send the whole array, used or not.
    if payload.bytes.len() < 8 + count * REGION_BYTES {
        return Err(payload.error("the payload has a wrong size"));
    }
    if descriptors.len() != count {
        return Err(payload.error("there is not one file descriptor for each region"));
    }
    let regions = (0..count).map(|i| payload.region(8 + i * REGION_BYTES));
    Ok(regions.zip(descriptors).collect())
}

fn notifier(
    payload: &Payload<'_>,
    descriptors: &mut Vec<OwnedFd>,
) -> Result<(u32, Option<OwnedFd>), VhostError> {
    /// Set if no file descriptor comes with it.
    const NO_DESCRIPTOR: u64 = 1 << 8;
    let word = payload.number()?;
    let index = (word & 0xff) as u32;
    if word & NO_DESCRIPTOR != 0 {
        return Ok((index, None));
    }
    match &descriptors[..] {
        [one] if is_file(one) => Err(payload.error("a file notifies nobody")),
        [_] => Ok((index, descriptors.pop())),
        _ => Err(payload.error("there is not exactly one file descriptor")),
    }
}

/// Whether a descriptor is a file with bytes, memory among them, and not an event, a socket or a device.
pub(crate) fn is_file(descriptor: &OwnedFd) -> bool {
    let found = rustix::fs::fstat(descriptor);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file())
}
