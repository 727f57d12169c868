//! Messages of vfio-user: what a client asks for, and how it is answered.
//!
//! Nothing is read or sent here. A request is parsed from a whole message, so that one that is refused
//! does not shift where the next one begins.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of a message's header.
pub const HEADER_BYTES: usize = size_of::<Header>();
/// Most bytes of a region that one message reads or writes.
pub(crate) const MAX_TRANSFER_BYTES: u32 = 1 << 20;
/// Longest message: a write of that many bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize =
    HEADER_BYTES + size_of::<RegionAccess>() + MAX_TRANSFER_BYTES as usize;
/// Most file descriptors that come with one message.
pub(crate) const MAX_MESSAGE_FDS: usize = 16;

/// Header of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    /// The reply has that of its request.
    pub id: u16,
    /// What is asked for.
    pub command: u16,
    /// Bytes of the message, with this header.
    pub size: u32,
    /// Bits 3:0: 0 request, 1 reply. Bit 4: no reply wanted. Bit 5: the request failed.
    pub flags: u32,
    /// Error number of a reply.
    pub error: u32,
}

const REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

impl Header {
    /// Whether the client waits for no reply.
    pub(crate) fn wants_no_reply(&self) -> bool {
        self.flags & NO_REPLY != 0
    }
}

/// Error numbers of replies (`errno`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Errno {
    Io = 5,
    Exists = 17,
    Invalid = 22,
    TooManyFiles = 24,
    NoSpace = 28,
    NotSupported = 95,
}

/// A request that is refused: with which error number, and what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) errno: Errno,
    /// Name of the request, under which the refusal is counted.
    pub(crate) what: &'static str,
}

impl Refusal {
    pub(crate) const fn new(errno: Errno, what: &'static str) -> Refusal {
        Refusal { errno, what }
    }
}

/// Interrupt indexes of a VFIO PCI device.
pub(crate) const MSIX_INDEX: u32 = 2;
/// Number of them: INTx, MSI, MSI-X, errors, requests.
pub(crate) const IRQ_INDEXES: u32 = 5;
/// Regions of a VFIO PCI device: six BARs, ROM, configuration space, VGA.
pub(crate) const REGIONS: u32 = 9;
/// BAR0.
pub(crate) const REGION_BAR0: u32 = 0;
/// BAR2.
pub(crate) const REGION_BAR2: u32 = 2;
/// Configuration space.
pub(crate) const REGION_CONFIG: u32 = 7;

/// DEVICE_GET_INFO: the device can be reset; it is a PCI device.
pub(crate) const DEVICE_FLAGS: u32 = 1 | 2;
/// REGION_INFO: readable and writable.
pub(crate) const REGION_FLAGS: u32 = 1 | 2;
/// GET_IRQ_INFO: eventfds, and all vectors are set up at once.
pub(crate) const IRQ_FLAGS: u32 = 1 | 8;

/// DMA_MAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct DmaMap {
    pub(crate) argsz: u32,
    /// Bit 0 readable, bit 1 writable.
    pub(crate) flags: u32,
    /// In the file.
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// DMA_UNMAP, and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct DmaUnmap {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    pub(crate) address: u64,
    pub(crate) size: u64,
}

impl DmaUnmap {
    /// `VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP`.
    pub(crate) const DIRTY_BITMAP: u32 = 1;
    /// `VFIO_DMA_UNMAP_FLAG_ALL`.
    pub(crate) const ALL: u32 = 2;
}

/// DEVICE_GET_INFO, and its reply.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct DeviceInfo {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    pub(crate) regions: u32,
    pub(crate) irqs: u32,
}

/// DEVICE_GET_REGION_INFO, and its reply.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RegionInfo {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    pub(crate) index: u32,
    pub(crate) capabilities_offset: u32,
    pub(crate) size: u64,
    pub(crate) offset: u64,
}

/// DEVICE_GET_IRQ_INFO, and its reply.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct IrqInfo {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    pub(crate) index: u32,
    pub(crate) count: u32,
}

/// DEVICE_SET_IRQS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct SetIrqs {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    pub(crate) index: u32,
    pub(crate) start: u32,
    pub(crate) count: u32,
}

impl SetIrqs {
    pub(crate) const DATA_NONE: u32 = 1;
    pub(crate) const DATA_EVENTFD: u32 = 4;
    pub(crate) const ACTION_TRIGGER: u32 = 32;
}

/// REGION_READ and REGION_WRITE, and their replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RegionAccess {
    pub(crate) offset: u64,
    pub(crate) region: u32,
    pub(crate) count: u32,
}

/// VERSION, and its reply: capabilities follow, as JSON with a 0 at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Version {
    pub(crate) major: u16,
    pub(crate) minor: u16,
}

/// Commands of the protocol: number, name, and whether this server carries them out.
pub const COMMANDS: &[(u16, &str, bool)] = &[
    (1, "VERSION", true),
    (2, "DMA_MAP", true),
    (3, "DMA_UNMAP", true),
    (4, "DEVICE_GET_INFO", true),
    (5, "DEVICE_GET_REGION_INFO", true),
    (6, "DEVICE_GET_REGION_IO_FDS", false),
    (7, "DEVICE_GET_IRQ_INFO", true),
    (8, "DEVICE_SET_IRQS", true),
    (9, "REGION_READ", true),
    (10, "REGION_WRITE", true),
    (11, "DMA_READ", false),
    (12, "DMA_WRITE", false),
    (13, "DEVICE_RESET", true),
    (14, "DIRTY_PAGES", false),
    (15, "REGION_WRITE_MULTI", false),
    (16, "DEVICE_FEATURE", false),
    (17, "MIG_DATA_READ", false),
    (18, "MIG_DATA_WRITE", false),
];

/// What a client asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request<'a> {
    Version(Version),
    DmaMap(DmaMap),
    DmaUnmap(DmaUnmap),
    DeviceInfo,
    RegionInfo(RegionInfo),
    IrqInfo(IrqInfo),
    SetIrqs(SetIrqs),
    RegionRead(RegionAccess),
    RegionWrite(RegionAccess, &'a [u8]),
    Reset,
}

impl<'a> Request<'a> {
    /// Parses a request: `payload` is what follows the header.
    pub(crate) fn parse(header: &Header, payload: &'a [u8]) -> Result<Request<'a>, Refusal> {
        if header.flags & 0xf != 0 {
            return Err(Refusal::new(Errno::Invalid, "a message that is no request"));
        }
        Ok(match header.command {
            // The client's capabilities are not used.
            1 => Request::Version(split(payload)?.0),
            2 => Request::DmaMap(split(payload)?.0),
            3 => Request::DmaUnmap(split(payload)?.0),
            4 => {
                let _: (DeviceInfo, _) = split(payload)?;
                Request::DeviceInfo
            }
            5 => Request::RegionInfo(split(payload)?.0),
            7 => Request::IrqInfo(split(payload)?.0),
            8 => Request::SetIrqs(split(payload)?.0),
            9 => {
                let (access, _): (RegionAccess, _) = split(payload)?;
                if access.count > MAX_TRANSFER_BYTES {
                    return Err(Refusal::new(
                        Errno::Invalid,
                        "REGION_READ of too many bytes",
                    ));
                }
                Request::RegionRead(access)
            }
            10 => {
                let (access, data): (RegionAccess, _) = split(payload)?;
                if data.len() != access.count as usize {
                    return Err(Refusal::new(
                        Errno::Invalid,
                        "REGION_WRITE whose count lies",
                    ));
                }
                Request::RegionWrite(access, data)
            }
            13 => Request::Reset,
            other => {
                let known = COMMANDS.iter().find(|(number, ..)| *number == other);
                let name = known.map_or("an unknown command", |(_, name, _)| *name);
                return Err(Refusal::new(Errno::NotSupported, name));
            }
        })
    }
}

fn split<T: FromBytes + KnownLayout + Immutable>(payload: &[u8]) -> Result<(T, &[u8]), Refusal> {
    T::read_from_prefix(payload)
        .map_err(|_| Refusal::new(Errno::Invalid, "a message too short for its command"))
}

/// A reply with these bytes after its header.
pub(crate) fn reply(request: &Header, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let header = Header {
        size: (HEADER_BYTES + length) as u32,
        flags: REPLY,
        error: 0,
        ..*request
    };
    let mut message = Vec::with_capacity(HEADER_BYTES + length);
    message.extend_from_slice(header.as_bytes());
    for part in parts {
        message.extend_from_slice(part);
    }
    message
}

/// A reply that says that the request failed.
pub(crate) fn error_reply(request: &Header, errno: Errno) -> Vec<u8> {
    let header = Header {
        size: HEADER_BYTES as u32,
        flags: REPLY | ERROR,
        error: errno as u32,
        ..*request
    };
    header.as_bytes().to_vec()
}

/// What this server can do, for the reply to VERSION: JSON with a 0 at its end.
pub(crate) fn capabilities(max_dma_maps: usize) -> Vec<u8> {
    let capabilities = serde_json::json!({ "capabilities": {
        "max_msg_fds": MAX_MESSAGE_FDS,
        "max_data_xfer_size": MAX_TRANSFER_BYTES,
        "max_dma_maps": max_dma_maps,
        "pgsizes": 4096,
    }});
    let mut text = capabilities.to_string().into_bytes();
    text.push(0);
    text
}
