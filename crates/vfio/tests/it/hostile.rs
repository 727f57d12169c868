//! Clients that violate the protocol get an error number, and the door keeps working.

use std::io::{Read, Write};
use std::net::Shutdown;

use dray_vfio::{HEADER_BYTES, Header, Server, VfioError};
use zerocopy::IntoBytes;

use crate::client::{BAR0, BAR2, CONFIG, Client, Running, SharedFile, Vector, access};
use std::os::fd::AsFd;

const EINVAL: u32 = 22;
const EEXIST: u32 = 17;
const EOPNOTSUPP: u32 = 95;

fn header(size: u32, command: u16) -> Header {
    Header {
        id: 9,
        command,
        size,
        flags: 0,
        error: 0,
    }
}

/// Whether the door still answers.
fn answers(client: &mut Client) -> bool {
    client.read32(CONFIG, 0) == 0x0b25_8086
}

#[test]
fn truncated_messages_end_the_session_and_not_the_server() {
    let running = Running::start();
    let whole = [header(32, 9).as_bytes(), &access(CONFIG, 0, 4)].concat();
    for length in [1, 15, 16, 17, 31] {
        let mut stream = running.stream();
        stream.write_all(&whole[..length]).expect("sent");
        stream.shutdown(Shutdown::Write).expect("closed");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the end");
        assert!(rest.is_empty(), "{length} bytes are answered");
    }
    assert!(answers(&mut running.client()));
    let (_, ends) = running.stop();
    assert_eq!(ends.len(), 5);
    assert!(ends[4].contains("31 of 32 bytes"), "{ends:?}");
}

#[test]
fn invalid_lengths_end_the_session() {
    let running = Running::start();
    for size in [0, 15, u32::MAX, 1 << 30, (1 << 20) + 64] {
        let mut stream = running.stream();
        stream.write_all(header(size, 10).as_bytes()).expect("sent");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the end");
        assert!(rest.is_empty());
    }
    assert!(answers(&mut running.client()));
    let (_, ends) = running.stop();
    assert_eq!(ends.len(), 5, "{ends:?}");
    assert!(ends[2].contains("4294967295 bytes"), "{ends:?}");
}

#[test]
fn a_message_sent_byte_by_byte_is_answered() {
    let running = Running::start();
    let mut stream = running.stream();
    for byte in [header(32, 9).as_bytes(), &access(CONFIG, 0, 4)].concat() {
        stream.write_all(&[byte]).expect("sent");
    }
    let mut reply = [0; HEADER_BYTES + 16 + 4];
    stream.read_exact(&mut reply).expect("a reply");
    assert_eq!(reply[32..], 0x0b25_8086_u32.to_le_bytes());
}

#[test]
fn invalid_counts_and_commands_are_refused_with_their_errno() {
    let running = Running::start();
    let mut client = running.client();
    for (command, payload, errno) in [
        (2, vec![0; 31], EINVAL),
        (4, vec![], EINVAL),
        (9, access(CONFIG, 0, u32::MAX), EINVAL),
        (9, access(CONFIG, 4093, 4), EINVAL),
        (9, access(BAR2, u64::MAX, 1), EINVAL),
        (9, access(77, 0, 1), EINVAL),
        (10, access(BAR0, 0, 4), EINVAL),
        (10, [&access(BAR0, 0, 4)[..], &[0; 5]].concat(), EINVAL),
        (5, vec![0xff; 32], EINVAL),
        (7, vec![0xff; 16], EINVAL),
        (6, vec![0; 64], EOPNOTSUPP),
        (0, vec![], EOPNOTSUPP),
        (999, vec![0; 1000], EOPNOTSUPP),
        (1, vec![9, 0, 0, 0], EOPNOTSUPP),
    ] {
        assert_eq!(
            client.ask(command, &payload, &[]),
            Err(errno),
            "command {command}"
        );
        assert!(answers(&mut client));
    }
    drop(client);
    let (counts, _) = running.stop();
    for name in [
        "REGION_WRITE whose count lies",
        "an access outside its region",
        "a message too short for its command",
        "DEVICE_GET_REGION_IO_FDS",
        "an unknown command",
    ] {
        assert!(counts.unmodelled.contains_key(name), "{name}: {counts:?}");
    }
}

#[test]
fn overlapping_maps_and_partial_unmaps_are_refused() {
    let running = Running::start();
    let mut client = running.client();
    let file = SharedFile::new(0x2000);
    client.map(0x1000, 0x2000, &file.0).expect("mapped");
    assert_eq!(client.map(0x1000, 0x2000, &file.0), Err(EEXIST));
    assert_eq!(client.map(0x2000, 0x2000, &file.0), Err(EEXIST));
    assert_eq!(client.unmap(0x1000, 0x1000), Err(EINVAL), "half of it");
    client.unmap(0x1000, 0x2000).expect("unmapped");
    client.unmap(0x1000, 0x2000).expect("nothing there");
    assert_eq!(client.map(u64::MAX - 0xfff, 0x2000, &file.0), Err(EINVAL));
    // A socket is no memory.
    let stream = client.stream.try_clone().expect("a duplicate");
    let request = [32_u32, 3, 0, 0, 0, 0, 0x1000, 0];
    let refused = client.ask(2, request.as_bytes(), &[stream.as_fd()]);
    assert_eq!(refused, Err(EINVAL));
}

#[test]
fn wrong_numbers_of_vectors_and_files_are_refused() {
    let running = Running::start();
    let mut client = running.client();
    let vector = Vector::new();
    let fds = [vector.0.as_fd(); 16];
    assert_eq!(
        client.set_vectors(0, &fds[..10]),
        Err(EINVAL),
        "nine vectors"
    );
    assert_eq!(client.set_vectors(u32::MAX, &fds[..1]), Err(EINVAL));
    client.set_vectors(8, &fds[..1]).expect("the last");
    // More files than a message may have: those beyond are closed.
    let many = [vector.0.as_fd(); 40];
    client.send(8, 0, [20_u32, 36, 2, 0, 9].as_bytes(), &many);
    assert_eq!(
        client.receive(),
        Err(EINVAL),
        "sixteen files for nine vectors"
    );
    assert!(answers(&mut client));
}

#[test]
fn messages_with_no_reply_are_not_answered() {
    let running = Running::start();
    let mut client = running.client();
    client.send(
        10,
        1 << 4,
        &[&access(CONFIG, 4, 2)[..], &[6, 0]].concat(),
        &[],
    );
    client.send(999, 1 << 4, &[], &[]);
    assert_eq!(client.read32(CONFIG, 4) & 0xffff, 6);
}

#[test]
fn a_socket_in_use_and_a_regular_file_are_not_replaced() {
    let running = Running::start();
    let bound = Server::bind(&running.socket, |_| ());
    assert!(matches!(bound, Err(VfioError::InUse { .. })));
    assert!(answers(&mut running.client()));
    let file = running.socket.with_file_name("file");
    std::fs::write(&file, "mine").expect("written");
    let bound = Server::bind(&file, |_| ());
    assert!(matches!(bound, Err(VfioError::NoSocket { .. })));
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "mine");
    // One that a server has left behind is replaced.
    let stale = running.socket.with_file_name("stale");
    drop(std::os::unix::net::UnixListener::bind(&stale).expect("a socket"));
    assert!(stale.exists());
    let server = Server::bind(&stale, |_| ()).expect("bound");
    drop(server);
    assert!(!stale.exists());
}
