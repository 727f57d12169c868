//! Tap ports, the switch, answers to pings, and sleep, with testpmd and the kernel as peers.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use dray_vhost::copy::{Channel, open_virtual};
use dray_vhost::forward::{Mode, Switch};
use dray_vhost::net::internet_checksum;
use dray_vhost::port::{Port, Tap, VhostPort, VhostSetup};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, socket_with};

use crate::capture::{self, Captured, packets};
use crate::testpmd::{Start, Testpmd};
use crate::{TIMEOUT, alone};

/// Where testpmd is, and where the kernel.
const GUEST: [u8; 4] = [192, 0, 2, 9];
const GUEST_MAC: &str = "02:00:00:00:00:09";

/// Packets of a file.
const PACKETS: u64 = 200;

/// Steps a switch, which in interrupt mode sleeps when there is nothing to do.
fn until(switch: &mut Switch, sleeps: bool, what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + TIMEOUT;
    let mut events = Vec::new();
    while !done() {
        assert!(Instant::now() < until, "{what}");
        let busy = (0..8).fold(false, |busy, _| busy | switch.step(&mut events));
        match (busy, sleeps) {
            (true, _) => {}
            (false, true) => switch.wait(None, Duration::from_millis(20)),
            (false, false) => std::thread::yield_now(),
        }
    }
}

fn vhost(path: &Path, setup: &VhostSetup, channels: &mut [Channel]) -> Port {
    let port = VhostPort::open(path, setup, channels).expect("a socket");
    Port::Vhost(Box::new(port))
}

/// Ports at these sockets, whose copies a virtual DSA makes.
fn asynchronous(sockets: &[&Path], more: Option<Port>, mode: Mode) -> Switch {
    let engines = open_virtual(2).expect("a device").into_iter();
    let mut channels: Vec<Channel> = engines.map(|e| Channel::new("wq0", e)).collect();
    let setup = VhostSetup {
        to_guest: vec![0],
        from_guest: vec![1],
        copy_threshold: 64,
        ..VhostSetup::default()
    };
    let ports = sockets
        .iter()
        .map(|path| vhost(path, &setup, &mut channels));
    let ports = ports.chain(more).collect();
    Switch::new(ports, channels, mode)
}

fn testpmd(directory: &Path, devices: &[String], options: &[&str]) -> Testpmd {
    let mut all = vec![
        "--total-num-mbufs=4096",
        "--txd=256",
        "--rxd=256",
        "--no-flush-rx",
    ];
    all.extend(options);
    let start = Start {
        devices,
        eal: &["-m", "128"],
        options: &all,
    };
    Testpmd::start(directory, &start)
}

/// Lets testpmd send its files' packets until [`PACKETS`] have come out at a port, and ends it.
fn forward_files(switch: &mut Switch, mut testpmd: Testpmd, port: u32) {
    testpmd.say("set fwd io retry");
    testpmd.say("set burst tx delay 10 retry 100000000");
    testpmd.say("start");
    let mut shown = 0u32;
    until(switch, false, "packets are missing", || {
        shown += 1;
        if shown % 200 == 1 {
            testpmd.say(&format!("show port stats {port}"));
        }
        testpmd.has_said(&format!("TX-packets: {PACKETS} "))
    });
    testpmd.say("stop");
    until(switch, false, "it does not stop", || {
        testpmd.has_said("Done.")
    });
    testpmd.say("quit");
    until(switch, false, "it does not end", || testpmd.has_said("Bye"));
}

/// One guest's packets go to another's port: no more than its ring takes, since a switch drops.
#[test]
fn packets_of_a_guest_reach_another_through_the_switch() {
    if dray_skip::lacks(&["dpdk-testpmd"]) {
        return;
    }
    let _alone = alone();
    for ring in [
        "in_order=0,mrg_rxbuf=1",
        "packed_vq=1,in_order=1,mrg_rxbuf=1",
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let (a, b) = (directory.path().join("a"), directory.path().join("b"));
        let mut switch = asynchronous(&[&a, &b], None, Mode::Switch);
        let sent = packets(PACKETS, &[1518, 64, 333, 1024]);
        capture::write(&directory.path().join("in"), &sent);
        capture::write(&directory.path().join("none"), &[]);
        let devices = [
            format!("net_virtio_user0,path=a,queue_size=256,{ring}"),
            "net_pcap0,rx_pcap=in,tx_pcap=back".to_owned(),
            format!("net_virtio_user1,path=b,queue_size=256,{ring}"),
            "net_pcap1,rx_pcap=none,tx_pcap=out".to_owned(),
        ];
        let mut testpmd = testpmd(directory.path(), &devices, &[]);
        until(&mut switch, false, "testpmd does not start", || {
            testpmd.has_said("Checking link statuses")
        });
        forward_files(&mut switch, testpmd, 3);
        let got = capture::read(&directory.path().join("out"));
        assert_eq!(got.len(), sent.len());
        for (at, (got, sent)) in got.iter().zip(&sent).enumerate() {
            assert_eq!(got.difference(&Captured::of(sent)), None, "packet {at}");
        }
    }
}

fn checked(mut bytes: Vec<u8>, at: usize, from: usize, to: usize) -> Vec<u8> {
    let sum = internet_checksum(&bytes[from..to]);
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// An ARP request and an ICMP echo request, as frames.
fn requests(number: u16) -> [Vec<u8>; 2] {
    let mac = [2, 0, 0, 0, 0, 9];
    let mut arp = [&[0xff; 6][..], &mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &mac].concat();
    arp.extend([192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, number as u8]);
    arp.resize(60, 0);
    let mut echo = [&[2, 0, 0, 0, 0, 1][..], &mac, &[8, 0, 0x45, 0]].concat();
    let data = 40 + usize::from(number) % 1400;
    echo.extend((28 + data as u16).to_be_bytes());
    echo.extend([0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 1, 192, 0, 2, 7]);
    echo.extend([8, 0, 0, 0, 0x12, 0x34]);
    echo.extend(number.to_be_bytes());
    echo.extend((0..data).map(|i| (i * 3) as u8));
    let echo = checked(echo, 24, 14, 34);
    let end = echo.len();
    [arp, checked(echo, 36, 34, end)]
}

/// Requests out of a file through testpmd are answered.
#[test]
fn a_guests_pings_are_answered() {
    if dray_skip::lacks(&["dpdk-testpmd"]) {
        return;
    }
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("s");
    let mut switch = asynchronous(&[&socket], None, Mode::Icmp);
    let sent: Vec<Vec<u8>> = (0..PACKETS as u16 / 2).flat_map(requests).collect();
    capture::write(&directory.path().join("in"), &sent);
    let devices = [
        "net_virtio_user0,path=s,queue_size=256,mrg_rxbuf=1".to_owned(),
        "net_pcap0,rx_pcap=in,tx_pcap=out".to_owned(),
    ];
    let mut testpmd = testpmd(directory.path(), &devices, &[]);
    until(&mut switch, false, "testpmd does not start", || {
        testpmd.has_said("Checking link statuses")
    });
    forward_files(&mut switch, testpmd, 1);
    let got = capture::read(&directory.path().join("out"));
    assert_eq!(got.len(), sent.len());
    for (got, sent) in got.iter().zip(&sent) {
        let got = &got.bytes;
        assert_eq!(got[..6], sent[6..12], "to who asked");
        match sent[12..14] {
            [8, 6] => assert_eq!((got[21], &got[28..32]), (2, &sent[38..42])),
            _ => {
                assert_eq!((got[34], &got[38..]), (0, &sent[38..]));
                assert_eq!(internet_checksum(&got[34..]), 0);
            }
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    let done = done.map_err(|error| format!("ip: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!(
            "ip {arguments}: {}",
            String::from_utf8_lossy(&done.stderr)
        )),
    }
}

/// Pings that the kernel sends through a tap port and the switch, and testpmd answers.
fn kernel_pings(sleeps: bool) -> Result<(), String> {
    // SAFETY: the argument is a number; the thread ends with the test.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(format!("unshare: {}", std::io::Error::last_os_error()));
    }
    let directory = tempfile::tempdir().expect("a directory");
    let tap = Tap::open("dray0").map_err(|error| error.to_string())?;
    ip("address add 192.0.2.1/24 dev dray0")?;
    ip("link set dray0 up")?;
    ip(&format!(
        "neighbour add 192.0.2.9 lladdr {GUEST_MAC} dev dray0"
    ))?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::RAW,
        flags,
        Some(ipproto::ICMP),
    );
    let socket: OwnedFd = socket.map_err(|error| format!("a raw socket: {error}"))?;
    let path = directory.path().join("s");
    let mut switch = asynchronous(
        &[&path],
        Some(Port::tap(tap).expect("a descriptor")),
        Mode::Switch,
    );
    let device = format!("net_virtio_user0,path=s,queue_size=256,mrg_rxbuf=1,mac={GUEST_MAC}");
    let mut testpmd = testpmd(directory.path(), &[device], &[]);
    until(&mut switch, sleeps, "testpmd does not start", || {
        testpmd.has_said("Checking link statuses")
    });
    testpmd.say("set fwd icmpecho");
    testpmd.say("start");
    let to = std::net::SocketAddrV4::new(Ipv4Addr::from(GUEST), 0);
    let mut bytes = vec![0; 4096];
    for number in 0..60u16 {
        let frame = &requests(number * 20)[1];
        let request = &frame[34..];
        let mut asked: Option<Instant> = None;
        until(&mut switch, sleeps, "no answer to a ping", || {
            // The first ones may come before the guest forwards.
            if asked.is_none_or(|at| at.elapsed() > Duration::from_millis(500)) {
                asked = Some(Instant::now());
                let sent = rustix::net::sendto(socket.as_fd(), request, SendFlags::empty(), &to);
                assert!(sent.is_ok(), "{sent:?}");
            }
            let (fd, at, len) = (socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len());
            // SAFETY: the kernel writes at most so many bytes.
            let count = unsafe { libc::recv(fd, at, len, 0) };
            // The IP header has 20 bytes; type 0 is an echo reply.
            let count = usize::try_from(count).unwrap_or(0);
            count == 20 + request.len() && bytes[20] == 0 && bytes[24..count] == request[4..]
        });
    }
    let mut counts = Vec::new();
    switch.each_port(|at, port| {
        if at == 0 {
            port.each_queue(|queue| counts.push(queue.stats().packets));
        }
    });
    assert!(counts.iter().all(|count| *count >= 60), "{counts:?}");
    Ok(())
}

#[test]
fn the_kernel_pings_a_guest_through_a_tap_port() {
    if dray_skip::lacks(&["dpdk-testpmd"]) {
        return;
    }
    let _alone = alone();
    for sleeps in [false, true] {
        println!("interrupt mode: {sleeps}");
        let thread = std::thread::spawn(move || kernel_pings(sleeps));
        if let Err(reason) = thread.join().expect("answers") {
            dray_skip::skip(&reason.to_string());
        }
    }
}
