//! A server on a thread, and a client that sends exactly what a test gives it.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use dray_device::{DeviceConfig, GroupConfig, Hardware, WorkQueueConfig, WorkQueueMode};
use dray_spec::Descriptor;
use dray_spec::registers::{CMD, CMDSTATUS, Command, CommandRegister, PortalAddress};
use dray_vfio::{Counts, HEADER_BYTES, Header, Options, Server, Stopper, VfioError};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tempfile::TempDir;
use zerocopy::{FromBytes, IntoBytes};

/// How long anything may take before a test fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const BAR0: u32 = 0;
pub(crate) const BAR2: u32 = 2;
pub(crate) const CONFIG: u32 = 7;

pub(crate) fn hardware(version: u32) -> Hardware {
    Hardware::new(dray_idxd::known_capabilities(version).expect("a known version"))
}

/// What went through, and how clients were dropped.
type Served = (Counts, Vec<String>);

/// A server that serves until it is dropped.
pub(crate) struct Running {
    pub(crate) socket: PathBuf,
    stopper: Stopper,
    server: Option<JoinHandle<Result<Served, VfioError>>>,
    _folder: TempDir,
}

impl Running {
    pub(crate) fn start() -> Running {
        Running::with(Options::new(hardware(0x100)))
    }

    pub(crate) fn with(options: Options) -> Running {
        let folder = TempDir::new().expect("a folder");
        let socket = folder.path().join("dsa.sock");
        let server = Server::bind(&socket, |_| ()).expect("a socket");
        let stopper = server.stopper();
        let server = std::thread::spawn(move || {
            let mut ends = Vec::new();
            server.serve(&options, false, |report| {
                if let dray_vfio::Report::Left(Some(error)) = report {
                    ends.push(error.to_string());
                }
            })?;
            Ok((server.counts(), ends))
        });
        Running {
            socket,
            stopper,
            server: Some(server),
            _folder: folder,
        }
    }

    pub(crate) fn stream(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).expect("a server");
        stream.set_read_timeout(Some(LONG)).expect("a timeout");
        stream
    }

    /// A client that has agreed on the version.
    pub(crate) fn client(&self) -> Client {
        let mut client = Client {
            stream: self.stream(),
            id: 0,
        };
        let reply = client.ask(1, b"\0\0\x01\0{}\0", &[]).expect("a version");
        assert_eq!(reply[..4], [0, 0, 1, 0]);
        client
    }

    /// Stops it: what went through, and how clients were dropped.
    pub(crate) fn stop(mut self) -> Served {
        self.stopper.stop();
        let server = self.server.take().expect("not stopped before");
        server.join().expect("no panic").expect("served")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    id: u16,
}

impl Client {
    /// Sends a message with a correct header.
    pub(crate) fn send(
        &mut self,
        command: u16,
        flags: u32,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) {
        self.id += 1;
        let header = Header {
            id: self.id,
            command,
            size: (HEADER_BYTES + payload.len()) as u32,
            flags,
            error: 0,
        };
        let message = [header.as_bytes(), payload].concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let sent = sendmsg(
            &self.stream,
            &[IoSlice::new(&message)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
        .expect("sent");
        self.stream.write_all(&message[sent..]).expect("sent");
    }

    /// The next reply: its payload, or its error number.
    pub(crate) fn receive(&mut self) -> Result<Vec<u8>, u32> {
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header).expect("a reply");
        let header = Header::read_from_bytes(&header).expect("a header");
        assert_eq!((header.id, header.flags & 0xf), (self.id, 1));
        let mut payload = vec![0; header.size as usize - HEADER_BYTES];
        self.stream.read_exact(&mut payload).expect("a whole reply");
        match header.flags & 1 << 5 {
            0 => Ok(payload),
            _ => Err(header.error),
        }
    }

    pub(crate) fn ask(
        &mut self,
        command: u16,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, u32> {
        self.send(command, 0, payload, fds);
        self.receive()
    }

    pub(crate) fn read(&mut self, region: u32, offset: u64, count: u32) -> Result<Vec<u8>, u32> {
        let reply = self.ask(9, &access(region, offset, count), &[])?;
        Ok(reply[16..].to_vec())
    }

    pub(crate) fn write(&mut self, region: u32, offset: u64, bytes: &[u8]) -> Result<(), u32> {
        let request = [&access(region, offset, bytes.len() as u32)[..], bytes].concat();
        self.ask(10, &request, &[]).map(|_| ())
    }

    pub(crate) fn read32(&mut self, region: u32, offset: u64) -> u32 {
        let bytes = self.read(region, offset, 4).expect("read");
        u32::from_le_bytes(bytes.try_into().expect("4 bytes"))
    }

    pub(crate) fn map(&mut self, address: u64, size: u64, file: &OwnedFd) -> Result<(), u32> {
        let request = [
            &32_u32.to_le_bytes()[..],
            &3_u32.to_le_bytes(),
            &0_u64.to_le_bytes(),
            &address.to_le_bytes(),
            &size.to_le_bytes(),
        ];
        self.ask(2, &request.concat(), &[file.as_fd()]).map(|_| ())
    }

    pub(crate) fn unmap(&mut self, address: u64, size: u64) -> Result<(), u32> {
        let request = [
            &24_u32.to_le_bytes()[..],
            &0_u32.to_le_bytes(),
            &address.to_le_bytes(),
            &size.to_le_bytes(),
        ];
        self.ask(3, &request.concat(), &[]).map(|_| ())
    }

    /// Gives MSI-X vectors from `start` on these eventfds.
    pub(crate) fn set_vectors(&mut self, start: u32, fds: &[BorrowedFd<'_>]) -> Result<(), u32> {
        let words = [20, 4 | 32, 2, start, fds.len() as u32];
        self.ask(8, words.as_bytes(), fds).map(|_| ())
    }

    pub(crate) fn reset(&mut self) -> Result<(), u32> {
        self.ask(13, &[], &[]).map(|_| ())
    }

    /// Issues a command and waits for its end: CMDSTATUS.
    pub(crate) fn command(&mut self, command: Command, operand: u32) -> u32 {
        let register = CommandRegister::of(command, operand).into_bits();
        self.write(BAR0, CMD, &register.to_le_bytes())
            .expect("written");
        loop {
            let status = self.read32(BAR0, CMDSTATUS);
            if status >> 31 == 0 {
                return status;
            }
        }
    }

    /// PCI's controls as a driver sets them, then the configuration, then all its queues.
    pub(crate) fn enable(&mut self, version: u32, config: &DeviceConfig) {
        self.write(CONFIG, 0x226, &0x8000_u16.to_le_bytes())
            .expect("ATS");
        self.write(CONFIG, 0x236, &5_u16.to_le_bytes())
            .expect("PASID");
        self.write(CONFIG, 4, &6_u16.to_le_bytes())
            .expect("bus master");
        for write in config
            .register_writes(&hardware(version))
            .expect("registers")
        {
            let bytes = write.value.to_le_bytes();
            self.write(BAR0, write.offset, &bytes[..write.size.into()])
                .expect("written");
        }
        assert_eq!(self.command(Command::EnableDevice, 0), 0);
        for queue in &config.work_queues {
            assert_eq!(self.command(Command::EnableWq, queue.id.into()), 0);
        }
    }

    /// MOVDIR64B, as 64 bytes at once.
    pub(crate) fn post(&mut self, wq: u16, descriptor: &Descriptor) {
        self.write(BAR2, portal(wq), descriptor.as_bytes())
            .expect("written");
    }

    /// ENQCMD, as an emulation does it. True if it was accepted.
    pub(crate) fn enqueue(&mut self, wq: u16, descriptor: &Descriptor) -> bool {
        let place = portal(wq);
        self.read(BAR2, place, 2).expect("read");
        for (n, word) in (0..).zip(descriptor.as_bytes().chunks(8)) {
            self.write(BAR2, place + 8 * n, word).expect("written");
        }
        match self.read32(BAR2, place) {
            0 => true,
            1 => false,
            answer => panic!("no answer: {answer}"),
        }
    }
}

/// Offset of a queue's limited portal in BAR2.
pub(crate) fn portal(wq: u16) -> u64 {
    let address = PortalAddress {
        wq,
        limited: true,
        message_storage: false,
    };
    address.offset()
}

pub(crate) fn access(region: u32, offset: u64, count: u32) -> Vec<u8> {
    [
        &offset.to_le_bytes()[..],
        &region.to_le_bytes(),
        &count.to_le_bytes(),
    ]
    .concat()
}

/// A group with two engines, a dedicated queue 0 and, with PASIDs, a shared queue 1.
pub(crate) fn config(version: u32) -> DeviceConfig {
    let queue = |id, mode, pasid| WorkQueueConfig {
        pasid,
        ..WorkQueueConfig::new(id, mode, 16)
    };
    DeviceConfig {
        capabilities: dray_idxd::known_capabilities(version).expect("a known version"),
        user_interrupts: true,
        work_queues: vec![
            queue(0, WorkQueueMode::Dedicated, None),
            queue(1, WorkQueueMode::Shared, Some(0)),
        ],
        groups: vec![GroupConfig {
            engines: vec![0, 1],
            ..GroupConfig::default()
        }],
        ..DeviceConfig::default()
    }
}

/// Memory that a client shares with the device.
pub(crate) struct SharedFile(pub(crate) OwnedFd);

impl SharedFile {
    pub(crate) fn new(bytes: u64) -> SharedFile {
        let file = memfd_create("client", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&file, bytes).expect("a length");
        SharedFile(file)
    }

    pub(crate) fn put(&self, at: u64, bytes: &[u8]) {
        assert_eq!(rustix::io::pwrite(&self.0, bytes, at), Ok(bytes.len()));
    }

    pub(crate) fn get(&self, at: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        assert_eq!(rustix::io::pread(&self.0, &mut bytes, at), Ok(length));
        bytes
    }
}

/// An interrupt to wait for.
pub(crate) struct Vector(pub(crate) OwnedFd);

impl Vector {
    pub(crate) fn new() -> Vector {
        Vector(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd"))
    }

    /// Waits for it: how often it was raised since the last time.
    pub(crate) fn wait(&self) -> u64 {
        let long = Timespec::try_from(LONG).expect("a time");
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        assert_eq!(poll(&mut ready, Some(&long)), Ok(1), "no interrupt");
        let mut count = [0; 8];
        rustix::io::read(&self.0, &mut count).expect("a count");
        u64::from_ne_bytes(count)
    }
}
