//! A network interface of the kernel that this process is the other end of.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::Outlet;
use crate::VhostError;
use crate::net::{HEADER_BYTES, Header, Packet, Pool};
use crate::protocol::features as f;
use crate::queue::{DropCause, Queue};

/// Longest packet with its Ethernet header; after so many bytes no further one is taken.
const MAX_BYTES: usize = 65550;
/// Packets up to this length need no second copy.
const SMALL_BYTES: usize = 2048;
/// TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6 and TUN_F_TSO_ECN of linux/if_tun.h.
const OFFLOADS: libc::c_uint = 0x01 | 0x02 | 0x04 | 0x08;

/// A TAP interface. The kernel takes and gives partial checksums and long segments.
#[derive(Debug)]
pub struct Tap {
    device: OwnedFd,
    long: Vec<u8>,
    /// What it counts: to the interface, from it.
    queues: [Queue; 2],
}

impl Tap {
    /// Opens an interface, which is made if it does not exist.
    ///
    /// # Errors
    /// A name that is too long; no permission (CAP_NET_ADMIN); no such device as /dev/net/tun.
    pub fn open(name: &str) -> Result<Tap, VhostError> {
        let error = |action, source| VhostError::Interface {
            name: name.to_owned(),
            action,
            source,
        };
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let device = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
            .map_err(|e| error("open /dev/net/tun", e.into()))?;
        let mut request = [0u8; 40];
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            let source = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(error("its name has 1 to 15 bytes", source));
        }
        request[..name.len()].copy_from_slice(name.as_bytes());
        let kind = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as u16;
        request[libc::IFNAMSIZ..libc::IFNAMSIZ + 2].copy_from_slice(&kind.to_ne_bytes());
        let fd = device.as_raw_fd();
        // SAFETY: the request is a whole ifreq.
        let result = unsafe { libc::ioctl(fd, libc::TUNSETIFF, request.as_mut_ptr()) };
        check(result).map_err(|e| error("TUNSETIFF", e))?;
        let size = HEADER_BYTES as libc::c_int;
        // SAFETY: the kernel reads one int.
        let result = unsafe { libc::ioctl(fd, libc::TUNSETVNETHDRSZ, &raw const size) };
        check(result).map_err(|e| error("TUNSETVNETHDRSZ", e))?;
        // SAFETY: the argument is a number.
        let result = unsafe { libc::ioctl(fd, libc::TUNSETOFFLOAD, OFFLOADS as libc::c_ulong) };
        check(result).map_err(|e| error("TUNSETOFFLOAD", e))?;
        Ok(Tap {
            device,
            long: vec![0; MAX_BYTES],
            queues: [Queue::new(0), Queue::new(1)],
        })
    }

    pub(super) fn wait_on(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    pub(super) fn queues(&self) -> &[Queue] {
        &self.queues
    }

    pub(super) fn queues_mut(&mut self) -> &mut [Queue] {
        &mut self.queues
    }

    pub(super) fn receive(&mut self, pool: &mut Pool, out: &mut Vec<Packet>, max: usize) -> usize {
        let (before, mut bytes) = (out.len(), 0);
        while out.len() - before < max && bytes < MAX_BYTES {
            let mut header = [0; HEADER_BYTES];
            let mut packet = pool.take(SMALL_BYTES);
            let read = rustix::io::readv(
                &self.device,
                &mut [
                    IoSliceMut::new(&mut header),
                    IoSliceMut::new(packet.bytes_mut()),
                    IoSliceMut::new(&mut self.long),
                ],
            );
            let Ok(count @ HEADER_BYTES..) = read else {
                pool.put(packet);
                break;
            };
            let len = count - HEADER_BYTES;
            bytes += len;
            if len > SMALL_BYTES {
                let mut long = pool.take(len);
                long.bytes_mut()[..SMALL_BYTES].copy_from_slice(packet.bytes());
                long.bytes_mut()[SMALL_BYTES..].copy_from_slice(&self.long[..len - SMALL_BYTES]);
                pool.put(packet);
                packet = long;
            } else {
                packet.set_len(len);
            }
            packet.header = Header::from_bytes(header);
            self.queues[1].stats_mut().count_packet(len);
            out.push(packet);
        }
        out.len() - before
    }

    pub(super) fn send(
        &mut self,
        outlet: &mut Outlet,
        pool: &mut Pool,
        packets: &mut Vec<Packet>,
        turn: Duration,
    ) {
        let taken = f::GUEST_CSUM | f::GUEST_TSO4 | f::GUEST_TSO6 | f::GUEST_ECN;
        let (device, stats) = (&self.device, self.queues[0].stats_mut());
        outlet.send((packets, taken), pool, turn, stats, |packet| {
            let header = packet.header.to_bytes();
            let parts = [IoSlice::new(&header), IoSlice::new(packet.bytes())];
            match rustix::io::writev(device, &parts) {
                Ok(_) => Ok(()),
                Err(rustix::io::Errno::AGAIN) => Err(DropCause::NoBuffer),
                Err(_) => Err(DropCause::Disabled),
            }
        });
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
