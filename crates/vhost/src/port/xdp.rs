//! A network interface of the kernel through AF_XDP: its driver's first receive queue, in copy mode.
//!
//! A program of five instructions sends what that queue receives to the socket; it is detached when
//! the port is closed. The kernel hands packets over as they are: a peer on the same machine (veth)
//! must not leave checksums and segmentation to its device (`ethtool -K PEER tx off`).

mod program;
mod ring;
mod socket;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::Outlet;
use crate::VhostError;
use crate::net::{Packet, Pool};
use crate::queue::Queue;
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
}

impl Xdp {
    /// Opens an interface.
    ///
    /// # Errors
    /// There is no such interface; no permission (CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF); a kernel without AF_XDP;
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
        })
    }

    pub(super) fn wait_on(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn queues(&self) -> &[Queue] {
        &self.queues
    }

    pub(super) fn queues_mut(&mut self) -> &mut [Queue] {
        &mut self.queues
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

    pub(super) fn send(
        &mut self,
        outlet: &mut Outlet,
        pool: &mut Pool,
        packets: &mut Vec<Packet>,
        turn: Duration,
    ) {
        let (socket, stats) = (&mut self.socket, self.queues[0].stats_mut());
        // The interface takes neither partial checksums nor long segments.
        outlet.send((packets, 0), pool, turn, stats, |packet| {
            socket.send(packet.bytes())
        });
        self.socket.flush();
    }
}
