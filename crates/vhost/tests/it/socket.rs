//! The socket: both roles, messages in pieces, front ends that connect and disconnect.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use dray_vhost::backend::{Endpoint, Event, Role};
use dray_vhost::protocol::{Header, Options, Request};

fn poll_until(
    endpoint: &mut Endpoint,
    what: &str,
    mut done: impl FnMut(&mut Endpoint, &[Event]) -> bool,
) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let mut events = Vec::new();
        endpoint.poll(Instant::now(), &mut events);
        if done(endpoint, &events) {
            return;
        }
        assert!(Instant::now() < until, "{what}");
        std::thread::yield_now();
    }
}

fn server(path: &Path) -> Endpoint {
    Endpoint::new(path, Role::Server, Options::default()).expect("a socket")
}

fn ask(endpoint: &mut Endpoint, stream: &mut UnixStream) {
    let request = Header::request(Request::GetQueueNum, false, 0).to_bytes();
    stream.write_all(&request).expect("sent");
    stream.set_nonblocking(true).expect("set");
    let mut answer = [0; 20];
    poll_until(endpoint, "no answer", |_, _| {
        stream.read_exact(&mut answer).is_ok()
    });
    assert_eq!(answer[..12], Header::reply(17, 8).to_bytes());
    assert_eq!(answer[12..], 1u64.to_ne_bytes());
}

#[test]
fn a_connection_closed_within_a_message_is_survived() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let mut endpoint = server(&path);
    let mut whole = Header::request(Request::SetFeatures, true, 8)
        .to_bytes()
        .to_vec();
    whole.extend(0u64.to_ne_bytes());
    for cut in 0..whole.len() {
        let mut stream = UnixStream::connect(&path).expect("connected");
        stream.write_all(&whole[..cut]).expect("sent");
        poll_until(&mut endpoint, "not connected", |e, _| e.is_connected());
        drop(stream);
        poll_until(&mut endpoint, "not gone", |e, _| !e.is_connected());
    }
    let mut stream = UnixStream::connect(&path).expect("connected");
    ask(&mut endpoint, &mut stream);
}

#[test]
fn a_thousand_other_connections_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let mut endpoint = server(&path);
    let mut first = UnixStream::connect(&path).expect("connected");
    poll_until(&mut endpoint, "not connected", |e, _| e.is_connected());
    for _ in 0..1000 {
        let stream = UnixStream::connect(&path).expect("connected");
        endpoint.poll(Instant::now(), &mut Vec::new());
        drop(stream);
    }
    poll_until(&mut endpoint, "not refused", |e, _| {
        e.backend.stats().surplus_connections == 1000
    });
    ask(&mut endpoint, &mut first);
}

#[test]
fn invalid_bytes_end_only_their_connection() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let mut endpoint = server(&path);
    for bytes in [[0xff; 12], [0; 12]] {
        let mut stream = UnixStream::connect(&path).expect("connected");
        stream.write_all(&bytes).expect("sent");
        poll_until(&mut endpoint, "not ended", |_, events| {
            events.iter().any(|event| matches!(event, Event::Broken(_)))
        });
    }
    assert_eq!(endpoint.backend.stats().broken_connections, 2);
    let mut stream = UnixStream::connect(&path).expect("connected");
    ask(&mut endpoint, &mut stream);
}

#[test]
fn a_front_end_that_does_not_read_is_disconnected() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let mut endpoint = server(&path);
    let mut stream = UnixStream::connect(&path).expect("connected");
    stream.set_nonblocking(true).expect("set");
    let request = Header::request(Request::GetFeatures, false, 0).to_bytes();
    poll_until(&mut endpoint, "never cut off", |e, events| {
        for _ in 0..1000 {
            let _ = stream.write(&request);
        }
        let _ = e;
        events.iter().any(|event| matches!(event, Event::Broken(_)))
    });
}

#[test]
fn a_client_reconnects_after_each_disconnect() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let mut endpoint = Endpoint::new(&path, Role::Client, Options::default()).expect("a client");
    endpoint.poll(Instant::now(), &mut Vec::new());
    assert!(!endpoint.is_connected(), "there is no listener");
    for _ in 0..3 {
        let listener = UnixListener::bind(&path).expect("listening");
        poll_until(&mut endpoint, "not connected", |e, _| e.is_connected());
        let (mut stream, _) = listener.accept().expect("accepted");
        ask(&mut endpoint, &mut stream);
        drop((stream, listener));
        std::fs::remove_file(&path).expect("removed");
        poll_until(&mut endpoint, "not gone", |e, _| !e.is_connected());
    }
}

#[test]
fn only_a_stale_socket_is_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    drop(UnixListener::bind(&path).expect("listening"));
    assert!(path.exists(), "left behind");
    let endpoint = server(&path);
    let again = Endpoint::new(&path, Role::Server, Options::default());
    assert!(again.is_err(), "another endpoint listens there");
    drop(endpoint);
    assert!(!path.exists(), "removed at the end");
    let endpoint = server(&path);
    std::fs::remove_file(&path).expect("removed by another");
    let other = UnixListener::bind(&path).expect("its own");
    drop(endpoint);
    assert!(path.exists(), "the other's socket stays");
    drop(other);
    std::fs::remove_file(&path).expect("removed");
    std::fs::write(&path, "mine").expect("written");
    assert!(Endpoint::new(&path, Role::Server, Options::default()).is_err());
    assert_eq!(std::fs::read(&path).expect("still there"), b"mine");
}
