//! What messages have said about one ring.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::message::VringAddress;

/// How one side notifies the other.
#[derive(Debug, Default)]
pub enum Notify {
    /// Nothing was said yet.
    #[default]
    Unset,
    /// Not at all: the other side polls.
    Poll,
    /// By writing to an eventfd.
    Event(Arc<OwnedFd>),
}

impl Notify {
    pub(crate) fn from_message(descriptor: Option<OwnedFd>) -> Notify {
        match descriptor {
            Some(descriptor) => Notify::Event(Arc::new(descriptor)),
            None => Notify::Poll,
        }
    }

    /// The eventfd, if there is one.
    pub fn descriptor(&self) -> Option<&Arc<OwnedFd>> {
        match self {
            Notify::Event(descriptor) => Some(descriptor),
            _ => None,
        }
    }

    /// Whether something was said.
    pub fn is_set(&self) -> bool {
        !matches!(self, Notify::Unset)
    }
}

/// What messages have said about one ring. It is kept from one start of the ring to the next.
#[derive(Debug, Default)]
pub struct VringConfig {
    /// Descriptors of the ring.
    pub size: u32,
    /// Where it lies.
    pub address: Option<VringAddress>,
    /// Where to begin: an index, or index and wrap counter of a packed ring.
    pub base: u32,
    /// The guest's notifications; the ring is started by this.
    pub kick: Notify,
    /// Packets flow.
    pub enabled: bool,
}
