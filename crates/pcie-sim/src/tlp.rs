//! Transaction layer packets, in one array with a free list.

/// No TLP, no edge, no route.
pub(super) const NONE: u32 = u32::MAX;

/// Classes of flow control; the value is an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    Posted = 0,
    NonPosted = 1,
    Completion = 2,
}

/// What a TLP is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TlpKind {
    /// A command's last register write, from a core.
    Doorbell,
    /// A store of a core into device memory.
    MmioWrite,
    /// A load of a core from device memory.
    MmioRead,
    /// The data of such a load.
    MmioData,
    /// Data that an engine writes.
    DmaWrite,
    /// A read request of an engine.
    DmaRead,
    /// The data of such a request.
    DmaData,
    /// The word in host memory which says that a transfer is complete.
    CompletionWord,
    /// Data of a [`Source`](super::Source).
    Source,
    /// A read request of a source.
    SourceRead,
    /// The data of such a request.
    SourceData,
}

impl TlpKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Doorbell => "doorbell MWr",
            Self::MmioWrite => "MMIO MWr",
            Self::MmioRead => "MMIO MRd",
            Self::MmioData => "MMIO CplD",
            Self::DmaWrite => "DMA MWr",
            Self::DmaRead => "DMA MRd",
            Self::DmaData => "DMA CplD",
            Self::CompletionWord => "completion MWr",
            Self::Source => "source MWr",
            Self::SourceRead => "source MRd",
            Self::SourceData => "source CplD",
        }
    }

    pub(super) fn class(self) -> Class {
        match self {
            Self::MmioRead | Self::DmaRead | Self::SourceRead => Class::NonPosted,
            Self::MmioData | Self::DmaData | Self::SourceData => Class::Completion,
            _ => Class::Posted,
        }
    }
}

/// A TLP on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tlp {
    /// Next in its queue, or in the free list.
    pub(super) next: u32,
    /// Where its next edge stands in the table of hops.
    pub(super) hop: u32,
    /// The edge over which it came, or [`NONE`] if it starts here.
    pub(super) came_by: u32,
    /// Pool of credits of its last edge that it holds.
    pub(super) pool: u32,
    /// Pool of credits of its next edge that it needs.
    pub(super) next_pool: u32,
    /// Port at which it waits.
    pub(super) port: u32,
    /// Its number among the TLPs of the port.
    pub(super) seq: u32,
    /// Time at which its last byte can leave the node where it is, ps.
    pub(super) tail_at: u64,
    /// Header and payload, bytes.
    pub(super) wire: u32,
    pub(super) payload: u16,
    /// Bytes that a read asks for.
    pub(super) asks: u16,
    pub(super) kind: TlpKind,
    pub(super) class: Class,
    /// Whether it ends a transfer's data.
    pub(super) last: bool,
    /// Whether it is for, or comes from, on-chip memory.
    pub(super) on_chip: bool,
    pub(super) alive: bool,
    /// Transfer or source.
    pub(super) owner: u32,
    /// Tag of a read.
    pub(super) tag: u32,
    /// Route of the completions of a read.
    pub(super) reply: u32,
}

impl Tlp {
    /// Units of 16 bytes of its payload.
    pub(super) fn data_credits(&self) -> i64 {
        i64::from(self.payload.div_ceil(16))
    }
}

/// All TLPs.
#[derive(Debug, Default)]
pub(super) struct TlpStore {
    tlps: Vec<Tlp>,
    free: Option<u32>,
    /// TLPs in use.
    pub(super) alive: u32,
}

impl TlpStore {
    #[inline]
    pub(super) fn insert(&mut self, tlp: Tlp) -> u32 {
        self.alive += 1;
        match self.free {
            Some(id) => {
                let next = self.tlps[id as usize].next;
                self.free = (next != NONE).then_some(next);
                self.tlps[id as usize] = tlp;
                id
            }
            None => {
                self.tlps.push(tlp);
                self.tlps.len() as u32 - 1
            }
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        self.alive -= 1;
        let next = self.free.unwrap_or(NONE);
        let tlp = &mut self.tlps[id as usize];
        tlp.next = next;
        tlp.alive = false;
        self.free = Some(id);
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> &Tlp {
        &self.tlps[id as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> &mut Tlp {
        &mut self.tlps[id as usize]
    }

    pub(super) fn iter_alive(&self) -> impl Iterator<Item = &Tlp> {
        self.tlps.iter().filter(|tlp| tlp.alive)
    }
}
