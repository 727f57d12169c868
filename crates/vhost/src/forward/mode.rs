//! What is done with packets.

use crate::net::Packet;

/// What is done with packets. Ports are wired in pairs: 0 and 1, 2 and 3; one alone, to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// To the other port of the pair, unchanged.
    Io,
    /// To the other port, with source and destination address swapped.
    Mac,
    /// Nowhere.
    RxOnly,
    /// Generated packets, as many as go.
    TxOnly,
    /// Answers to ARP requests and ICMP echo requests, back to the sender.
    Icmp,
    /// A learning switch between all ports.
    Switch,
}

/// Swaps the Ethernet addresses.
#[inline]
pub(super) fn swap_addresses(packet: &mut Packet) {
    if let Some(addresses) = packet.bytes_mut().first_chunk_mut::<12>() {
        let (destination, source) = addresses.split_at_mut(6);
        destination.swap_with_slice(source);
    }
}
