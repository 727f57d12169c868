//! The program that sends an interface's packets to a socket, by bpf(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use super::socket::{Failed, Socket};

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
/// BPF_MAP_TYPE_XSKMAP, BPF_PROG_TYPE_XDP and BPF_XDP of linux/bpf.h.
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// Receive queues that the map has room for; those without a socket go on to the kernel.
const QUEUES: u32 = 64;

/// `union bpf_attr`, long enough for each command here.
type Attributes = [u64; 16];

/// Two words of 32 bits, the first one at the lower address.
const fn words(first: u32, second: u32) -> u64 {
    first as u64 | (second as u64) << 32
}

fn bpf(command: libc::c_int, attributes: &mut Attributes) -> io::Result<libc::c_long> {
    let size = size_of::<Attributes>();
    // SAFETY: the kernel reads and writes at most `size` bytes, all of which are there; pointers in
    // them are those of live buffers.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size) };
    match result {
        0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

fn descriptor(command: libc::c_int, attributes: &mut Attributes) -> io::Result<OwnedFd> {
    let descriptor = bpf(command, attributes)?;
    // SAFETY: the command has made it, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) })
}

/// Keeps the program on its interface.
#[derive(Debug)]
pub(super) struct Program {
    _link: OwnedFd,
}

impl Program {
    /// Sends the packets of the interface's first queue to a socket.
    pub(super) fn attach(interface: u32, socket: &Socket) -> Result<Program, Failed> {
        let step = |action| move |error| (action, error);
        let map = map().map_err(step("BPF_MAP_CREATE"))?;
        let program = load(&map).map_err(step("BPF_PROG_LOAD"))?;
        let (key, value) = (0u32, socket.as_fd().as_raw_fd());
        let mut update: Attributes = [0; 16];
        update[0] = words(map.as_raw_fd() as u32, 0);
        update[1] = &raw const key as u64;
        update[2] = &raw const value as u64;
        bpf(MAP_UPDATE_ELEM, &mut update).map_err(step("BPF_MAP_UPDATE_ELEM"))?;
        let mut create: Attributes = [0; 16];
        create[0] = words(program.as_raw_fd() as u32, interface);
        create[1] = words(ATTACH_XDP, 0);
        let link = descriptor(LINK_CREATE, &mut create).map_err(step("BPF_LINK_CREATE"))?;
        Ok(Program { _link: link })
    }
}

fn map() -> io::Result<OwnedFd> {
    let mut create: Attributes = [0; 16];
    create[0] = words(MAP_TYPE_XSKMAP, 4);
    create[1] = words(4, QUEUES);
    descriptor(MAP_CREATE, &mut create)
}

/// An instruction of eBPF.
const fn instruction(code: u8, target: u8, source: u8, offset: i16, value: i32) -> u64 {
    let registers = (target | source << 4) as u64;
    code as u64 | registers << 8 | (offset as u16 as u64) << 16 | (value as u32 as u64) << 32
}

fn load(map: &OwnedFd) -> io::Result<OwnedFd> {
    /// Offset of rx_queue_index in struct xdp_md.
    const RX_QUEUE_INDEX: i16 = 16;
    const XDP_PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    let program = [
        // bpf_redirect_map(map, context->rx_queue_index, XDP_PASS)
        instruction(0x61, 2, 1, RX_QUEUE_INDEX, 0),
        instruction(0x18, 1, 1, 0, map.as_raw_fd()),
        0,
        instruction(0xb7, 3, 0, 0, XDP_PASS),
        instruction(0x85, 0, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0, 0),
    ];
    let licence = c"Dual MIT/GPL";
    let mut load: Attributes = [0; 16];
    load[0] = words(PROG_TYPE_XDP, program.len() as u32);
    load[1] = program.as_ptr() as u64;
    load[2] = licence.as_ptr() as u64;
    // prog_name; then prog_ifindex and expected_attach_type.
    load[6] = u64::from_le_bytes(*b"dray\0\0\0\0");
    load[8] = words(0, ATTACH_XDP);
    descriptor(PROG_LOAD, &mut load)
}
