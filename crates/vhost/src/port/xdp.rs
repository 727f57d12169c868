//! A network interface of the kernel through AF_XDP: its driver's first receive queue, in copy mode.
//!
//! A program of five instructions sends what that queue receives to the socket; it is detached when
//! the port is closed. The kernel hands packets over as they are: a peer on the same machine (veth)
//! must not leave checksums and segmentation to its device (`ethtool -K PEER tx off`).

mod program;
mod ring;
mod socket;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::AT_ONCE;
use crate::VhostError;
use crate::net::{Adapter, Packet, Pool};
use crate::queue::{DropCause, Queue};
use program::Program;
use socket::Socket;

/// An interface through AF_XDP.
#[derive(Debug)]
pub struct Xdp {
    // Detached before the socket is closed.
    _program: Program,
    socket: Socket,
    /// What it counts: to the interface, from it.
    queues: [Queue; 2],
    adapter: Adapter,
    adapted: Vec<Packet>,
}

impl Xdp {
    /// Opens an interface.
    ///
    /// # Errors
    /// There is no such interface; no permission (CAP_NET_ADMIN, CAP_BPF); a kernel without AF_XDP;
    /// another XDP program on the interface.
    pub fn open(name: &str) -> Result<Xdp, VhostError> {
        let error = |(action, source)| VhostError::Interface {
            name: name.to_owned(),
            action,
            source,
        };
        let index = socket::interface(name).map_err(error)?;
        let socket = Socket::open(index).map_err(error)?;
        let program = Program::attach(index, &socket).map_err(error)?;
        Ok(Xdp {
            _program: program,
            socket,
            queues: [Queue::new(0), Queue::new(1)],
            adapter: Adapter::default(),
            adapted: Vec::new(),
        })
    }

    pub(super) fn wait_on(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn queues(&self) -> &[Queue] {
        &self.queues
    }

    pub(super) fn receive(&mut self, pool: &mut Pool, out: &mut Vec<Packet>, max: usize) -> usize {
        let before = out.len();
        let stats = self.queues[1].stats_mut();
        self.socket.receive(max, |bytes| {
            let mut packet = pool.take(bytes.len());
            packet.bytes_mut().copy_from_slice(bytes);
            stats.count_packet(bytes.len());
            out.push(packet);
        });
        out.len() - before
    }

    pub(super) fn send(&mut self, pool: &mut Pool, packets: &mut Vec<Packet>, turn: Duration) {
        let stats = self.queues[0].stats_mut();
        let start = Instant::now();
        while !packets.is_empty() {
            // The interface takes neither partial checksums nor long segments.
            let bad = (self.adapter).some(packets, (0, AT_ONCE), pool, &mut self.adapted);
            stats.count_drops(DropCause::Header, bad);
            for packet in self.adapted.drain(..) {
                match self.socket.send(packet.bytes()) {
                    Ok(()) => stats.count_packet(packet.len()),
                    Err(cause) => stats.count_drops(cause, 1),
                }
                pool.put(packet);
            }
            if start.elapsed() >= turn {
                break;
            }
        }
        self.socket.flush();
    }
}
