//! A port through AF_XDP, on a pair of virtual interfaces in a network namespace of its own; the
//! kernel's own stack is the peer.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use dray_vhost::VhostError;
use dray_vhost::forward::{Mode, Switch};
use dray_vhost::net::internet_checksum;
use dray_vhost::port::{Port, Xdp};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};

const TIMEOUT: Duration = Duration::from_secs(20);

fn ip(arguments: &str) -> Result<(), String> {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    match done {
        Err(error) => Err(format!("ip: {error}")),
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(format!(
            "ip {arguments}: {}",
            String::from_utf8_lossy(&done.stderr)
        )),
    }
}

/// This thread gets a network of its own, with a pair of interfaces.
fn network() -> Result<(), String> {
    // SAFETY: the argument is a number; the thread ends with the test.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(format!("unshare: {}", std::io::Error::last_os_error()));
    }
    ip("link add dray0 type veth peer name dray1")?;
    ip("address add 192.0.2.1/24 dev dray1")?;
    ip("link set dray1 up")?;
    ip("link set dray0 up")
}

/// An ICMP socket of the kernel.
fn icmp() -> Result<OwnedFd, String> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::RAW,
        flags,
        Some(ipproto::ICMP),
    );
    socket.map_err(|error| format!("a raw socket: {error}"))
}

fn echo_request(sequence: u16) -> Vec<u8> {
    let mut bytes = vec![8, 0, 0, 0, 0x12, 0x34];
    bytes.extend(sequence.to_be_bytes());
    bytes.extend((0..600u32).map(|i| (i * 7) as u8));
    let sum = internet_checksum(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Pings an address that only the port answers for.
fn ping(switch: &mut Switch, socket: &OwnedFd, sequence: u16) {
    let request = echo_request(sequence);
    let to = std::net::SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 9), 0);
    let until = Instant::now() + TIMEOUT;
    let (mut events, mut bytes) = (Vec::new(), vec![0; 2048]);
    let mut asked: Option<Instant> = None;
    loop {
        assert!(
            Instant::now() < until,
            "no answer to echo request {sequence}"
        );
        // The first one may be lost while the kernel asks for the address.
        if asked.is_none_or(|at| at.elapsed() > Duration::from_millis(500)) {
            asked = Some(Instant::now());
            let _ = rustix::net::sendto(
                socket.as_fd(),
                &request,
                rustix::net::SendFlags::empty(),
                &to,
            );
        }
        switch.step(&mut events);
        // SAFETY: the kernel writes at most so many bytes.
        let count = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                0,
            )
        };
        // The IP header has 20 bytes; type 0 is an echo reply.
        if count > 28 && bytes[20] == 0 && bytes[26..28] == sequence.to_be_bytes() {
            assert_eq!(bytes[28..count as usize], request[8..], "its payload");
            return;
        }
    }
}

/// Whether this kernel, or this user, has no AF_XDP.
fn is_not_there(error: &VhostError) -> bool {
    const CODES: [i32; 6] = [
        libc::EPERM,
        libc::EACCES,
        libc::ENOSYS,
        libc::EAFNOSUPPORT,
        libc::EOPNOTSUPP,
        libc::EINVAL,
    ];
    match error {
        VhostError::Interface { source, .. } => source
            .raw_os_error()
            .is_some_and(|code| CODES.contains(&code)),
        _ => false,
    }
}

fn answers() -> Result<(), String> {
    network()?;
    let socket = icmp()?;
    // Twice: the program is detached in between.
    for round in 0..2 {
        let port = match Xdp::open("dray0") {
            Ok(port) => port,
            Err(error) if round == 0 && is_not_there(&error) => return Err(error.to_string()),
            Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
        };
        let mut switch = Switch::new(
            vec![Port::xdp(port).expect("a descriptor")],
            Vec::new(),
            Mode::Icmp,
        );
        for sequence in 0..50 {
            ping(&mut switch, &socket, 100 * round + sequence);
        }
        let mut counts = Vec::new();
        switch.each_port(|_, port| port.each_queue(|queue| counts.push(queue.stats().packets)));
        assert!(counts[0] >= 50 && counts[1] >= 50, "{counts:?}");
    }
    Ok(())
}

#[test]
fn a_port_through_af_xdp_answers_the_kernel() {
    let thread = std::thread::spawn(answers);
    if let Err(reason) = thread.join().expect("answers") {
        dray_skip::skip(&reason.to_string());
    }
}

#[test]
fn a_missing_interface_is_an_error() {
    let error = Xdp::open("dray-none").expect_err("no interface");
    assert!(error.to_string().contains("dray-none"), "{error}");
}
