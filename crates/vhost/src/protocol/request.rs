//! Ids and headers of messages (vhost-user, "Message Specification").

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 12;
/// Longest payload that a request of this back end has, in bytes.
pub(crate) const MAX_PAYLOAD_BYTES: u32 = 4096;
/// Most file descriptors that a message carries.
pub(crate) const MAX_DESCRIPTORS: usize = 8;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 0x3;
const REPLY: u32 = 0x4;
const NEED_REPLY: u32 = 0x8;

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Id of the request.
    pub request: u32,
    /// Bits 0 and 1: version; bit 2: a reply; bit 3: the front end wants one.
    pub flags: u32,
    /// Bytes of the payload.
    pub size: u32,
}

impl Header {
    /// Reads a header, in native byte order.
    pub fn parse(bytes: [u8; HEADER_BYTES]) -> Header {
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Header {
            request: word(0),
            flags: word(4),
            size: word(8),
        }
    }

    /// A header of a front end's request.
    pub fn request(request: Request, need_reply: bool, size: u32) -> Header {
        Header {
            request: request as u32,
            flags: VERSION | if need_reply { NEED_REPLY } else { 0 },
            size,
        }
    }

    /// A header of an answer to `request`; clients refuse any other flags.
    pub fn reply(request: u32, size: u32) -> Header {
        Header {
            request,
            flags: VERSION | REPLY,
            size,
        }
    }

    /// As bytes, in native byte order.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.request.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.flags.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.size.to_ne_bytes());
        bytes
    }

    /// Whether it is a request of version 1.
    pub fn is_request(&self) -> bool {
        self.flags & VERSION_MASK == VERSION && self.flags & REPLY == 0
    }

    /// Whether the front end wants an answer to a request that has none of its own.
    pub fn needs_reply(&self) -> bool {
        self.flags & NEED_REPLY != 0
    }
}

macro_rules! requests {
    ($($name:ident = $id:literal),* $(,)?) => {
        /// A front end's request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        #[allow(missing_docs)]
        pub enum Request {
            $($name = $id),*
        }

        impl Request {
            /// Every request that is known by name.
            pub const ALL: &'static [Request] = &[$(Request::$name),*];

            /// The request of an id.
            pub fn from_id(id: u32) -> Option<Request> {
                match id {
                    $($id => Some(Request::$name),)*
                    _ => None,
                }
            }
        }
    };
}

requests! {
    GetFeatures = 1,
    SetFeatures = 2,
    SetOwner = 3,
    ResetOwner = 4,
    SetMemTable = 5,
    SetLogBase = 6,
    SetLogFd = 7,
    SetVringNum = 8,
    SetVringAddr = 9,
    SetVringBase = 10,
    GetVringBase = 11,
    SetVringKick = 12,
    SetVringCall = 13,
    SetVringErr = 14,
    GetProtocolFeatures = 15,
    SetProtocolFeatures = 16,
    GetQueueNum = 17,
    SetVringEnable = 18,
    SendRarp = 19,
    NetSetMtu = 20,
    SetBackendReqFd = 21,
    IotlbMsg = 22,
    GetConfig = 24,
    SetConfig = 25,
    GetInflightFd = 31,
    SetInflightFd = 32,
    ResetDevice = 34,
    GetMaxMemSlots = 36,
    AddMemReg = 37,
    RemMemReg = 38,
    SetStatus = 39,
    GetStatus = 40,
}

impl Request {
    /// Whether it has an answer of its own: the need-reply bit is ignored then.
    pub fn has_reply(self) -> bool {
        matches!(
            self,
            Request::GetFeatures
                | Request::GetVringBase
                | Request::GetProtocolFeatures
                | Request::GetQueueNum
                | Request::GetConfig
                | Request::GetInflightFd
                | Request::GetMaxMemSlots
                | Request::GetStatus
        )
    }
}
