//! The control socket of a running switch: one line asks, one answer comes.
//!
//! A request is a line of at most [`LONGEST`] bytes. The answer is `ok` and as many bytes as it says, or `error`
//! and a line: `ok 12\n` with 12 bytes after it. Only processes of the same user, and root's, are answered.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use dray_vhost::backend::Listener;
use rustix::fs::Mode;

use crate::complain::Usage;

/// Bytes of a request at most.
pub(super) const LONGEST: usize = 4096;
/// Connections at a time.
const MOST: usize = 8;
/// Time that a client has for its request, and for its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections refused at a time.
const REFUSED: usize = 16;

/// An answer.
pub(super) type Answer = Result<String, String>;

/// A client.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    asked: Vec<u8>,
    /// What is still to be written.
    answer: Option<Vec<u8>>,
    /// The port whose removal it waits for.
    removes: Option<String>,
    until: Instant,
}

/// What is to be done with a client.
enum Step {
    Wait,
    Ask(String),
    End,
}

/// A control socket.
#[derive(Debug)]
pub(super) struct Control {
    listener: Listener,
    clients: Vec<Client>,
}

impl Control {
    /// Listens at a path, for this user alone.
    pub(super) fn bind(path: &Path) -> anyhow::Result<Control> {
        // The file is made with these rights: there is no moment at which others may connect.
        let before = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
        let listener = Listener::bind(path);
        rustix::process::umask(before);
        let listener = listener.map_err(|error| {
            Usage::error(
                crate::complain::with_causes(&error),
                "give --control a path of its own in a directory that can be written to",
            )
        })?;
        Ok(Control {
            listener,
            clients: Vec::new(),
        })
    }

    /// What to wait for: a connection.
    pub(super) fn wait_on(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Whether a client has not had its answer.
    pub(super) fn is_busy(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Accepts connections and goes on with them; `ask` answers requests, or has a client wait until a port is
    /// gone whose name it returns. Never blocks.
    pub(super) fn poll(&mut self, mut ask: impl FnMut(&str) -> Result<Answer, String>) {
        self.accept();
        let mut clients = std::mem::take(&mut self.clients);
        clients.retain_mut(|client| {
            match client.go_on() {
                Step::Wait => {}
                Step::End => return false,
                Step::Ask(line) => match ask(&line) {
                    Ok(answer) => client.answer(&answer),
                    Err(port) => {
                        client.removes = Some(port);
                        client.until = Instant::now() + PATIENCE;
                    }
                },
            }
            Instant::now() < client.until
        });
        self.clients = clients;
    }

    /// Answers those that wait for the end of a port.
    pub(super) fn removed(&mut self, port: &str, answer: &str) {
        for client in &mut self.clients {
            if client.removes.as_deref() == Some(port) {
                client.removes = None;
                client.answer(&Ok(answer.to_owned()));
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..REFUSED {
            let Ok(stream) = self.listener.accept() else {
                return;
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let own = rustix::process::geteuid();
            let peer = rustix::net::sockopt::socket_peercred(&stream).map(|peer| peer.uid);
            let may = peer.is_ok_and(|uid| uid == own || uid.is_root());
            let mut client = Client {
                stream,
                asked: Vec::new(),
                answer: None,
                removes: None,
                until: Instant::now() + PATIENCE,
            };
            if !may || self.clients.len() >= MOST {
                let why = match may {
                    true => "too many clients; try again",
                    false => "this socket is for the user that runs the switch",
                };
                client.answer(&Err(why.to_owned()));
                // As much as there is room for.
                let _ = client.go_on();
                continue;
            }
            self.clients.push(client);
        }
    }
}

impl Client {
    fn answer(&mut self, answer: &Answer) {
        let bytes = match answer {
            Ok(text) => format!("ok {}\n{text}", text.len()),
            Err(why) => format!("error {}\n", why.replace('\n', " ")),
        };
        self.answer = Some(bytes.into_bytes());
        self.until = Instant::now() + PATIENCE;
    }

    fn go_on(&mut self) -> Step {
        if let Some(answer) = &mut self.answer {
            loop {
                match self.stream.write(answer) {
                    Ok(count) if count == answer.len() => return Step::End,
                    Ok(count) => drop(answer.drain(..count)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Wait,
                    Err(_) => return Step::End,
                }
            }
        }
        let mut bytes = [0; LONGEST];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Step::End,
            Ok(count) => self.asked.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Wait,
            Err(_) => return Step::End,
        }
        if self.removes.is_some() {
            // It has asked already.
            return Step::End;
        }
        if let Some(end) = self.asked.iter().position(|byte| *byte == b'\n')
            && end <= LONGEST
        {
            let line = String::from_utf8_lossy(&self.asked[..end]).into_owned();
            return Step::Ask(line);
        }
        if self.asked.len() > LONGEST {
            self.answer(&Err(format!("a request has {LONGEST} bytes at most")));
        }
        Step::Wait
    }
}

/// Asks a running switch.
pub(super) fn ask(path: &Path, request: &str) -> anyhow::Result<String> {
    /// Bytes of an answer at most.
    const MOST: u64 = 64 << 20;
    let unreachable = |error: io::Error| {
        Usage::error(
            format!("cannot ask the switch at {}: {error}", path.display()),
            "start one with: dray vhost --control PATH --port ...",
        )
    };
    if request.contains('\n') {
        return Err(Usage::error(
            format!("{request:?} has a line break; a request is one line"),
            "name it without one",
        ));
    }
    let mut stream = UnixStream::connect(path).map_err(unreachable)?;
    let patience = Some(2 * PATIENCE);
    stream.set_read_timeout(patience).map_err(unreachable)?;
    stream.set_write_timeout(patience).map_err(unreachable)?;
    // One that is refused has its answer all the same.
    let _ = stream.write_all(format!("{request}\n").as_bytes());
    let mut answer = Vec::new();
    let read = stream.take(MOST).read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
    if let Some(why) = head.strip_prefix("error ") {
        return Err(Usage::error(
            why,
            "dray vhost port list and dray vhost channel list show what there is",
        ));
    }
    let length: Option<usize> = head.strip_prefix("ok ").and_then(|n| n.parse().ok());
    match length {
        Some(length) if body.len() == length => Ok(body.to_owned()),
        _ => {
            let error = read
                .err()
                .unwrap_or_else(|| ErrorKind::UnexpectedEof.into());
            Err(unreachable(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(dir: &Path) -> Control {
        Control::bind(&dir.join("c")).expect("a socket")
    }

    /// What a client gets that sends these bytes.
    fn exchange(control: &mut Control, path: &Path, bytes: &[u8]) -> String {
        let mut client = UnixStream::connect(path).expect("it listens");
        client.write_all(bytes).expect("room");
        client.set_nonblocking(true).expect("our own socket");
        let (mut got, mut buffer) = (Vec::new(), [0; 8192]);
        loop {
            control.poll(|line| match line.strip_prefix("wait ") {
                Some(port) => Err(port.to_owned()),
                None => Ok(Ok(format!("<{line}>"))),
            });
            match client.read(&mut buffer) {
                Ok(0) => return String::from_utf8(got).expect("text"),
                Ok(count) => got.extend(&buffer[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            control.removed("p", "gone");
        }
    }

    #[test]
    fn a_line_is_answered_and_one_that_is_too_long_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("c");
        let mut control = control(dir.path());
        assert_eq!(exchange(&mut control, &path, b"abc\n"), "ok 5\n<abc>");
        assert_eq!(exchange(&mut control, &path, b"wait p\n"), "ok 4\ngone");
        let long = vec![b'x'; LONGEST + 1];
        let refused = exchange(&mut control, &path, &long);
        assert!(refused.starts_with("error a request has 4096"), "{refused}");
        assert!(!control.is_busy());
    }

    #[test]
    fn a_name_with_a_line_break_is_refused_before_it_is_asked() {
        let nowhere = Path::new("/there/is/none");
        let error = ask(nowhere, "port add /tmp/a\nb").expect_err("two lines");
        assert!(error.to_string().contains("line break"), "{error}");
    }

    #[test]
    fn many_clients_and_those_that_say_nothing_are_bounded() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("c");
        let mut control = control(dir.path());
        let silent: Vec<UnixStream> = (0..3 * MOST)
            .map(|_| UnixStream::connect(&path).expect("it listens"))
            .collect();
        for _ in 0..4 {
            control.poll(|_| Ok(Ok(String::new())));
        }
        assert_eq!(control.clients.len(), MOST);
        drop(silent);
        control.poll(|_| Ok(Ok(String::new())));
        assert_eq!(exchange(&mut control, &path, b"abc\n"), "ok 5\n<abc>");
    }

    #[test]
    fn the_socket_is_for_this_user_and_replaces_a_stale_one() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("c");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
        assert!(path.exists(), "a stale socket");
        let first = control(dir.path());
        let mode = std::fs::metadata(&path).expect("it").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = Control::bind(&path).expect_err("somebody listens there");
        assert!(second.to_string().contains("cannot listen at"), "{second}");
        drop(first);
        assert!(!path.exists(), "it is removed");
        std::fs::write(&path, "no socket").expect("a file");
        assert!(Control::bind(&path).is_err());
        assert_eq!(std::fs::read(&path).expect("it is kept"), b"no socket");
    }
}
