//! A program that is about to become one without a portal: it asks to be traced.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{MAGIC, VERSION, WireError, greets, read};

/// Environment variable that says which programs are to ask: [`NONE`], or something else for those
/// that cannot load the preload library.
pub const SUPERVISE_VARIABLE: &str = "DRAY_SUPERVISE";

/// No program is to ask.
pub const NONE: &str = "never";

/// Why a program does not load the preload library; 0: it is to be traced all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Reason(pub u32);

impl Reason {
    /// Whatever it is.
    pub const WANTED: Reason = Reason(0);
    /// It is statically linked.
    pub const STATIC: Reason = Reason(1);
    /// It has privileges of its own.
    pub const PRIVILEGED: Reason = Reason(2);
    /// It is for another processor: it cannot be supervised either.
    pub const MACHINE: Reason = Reason(3);
    /// It makes system calls itself, past the C library.
    pub const RAW_CALLS: Reason = Reason(4);
    /// Its environment has lost the library or the socket.
    pub const ENVIRONMENT: Reason = Reason(5);
    /// Its dynamic linker is not glibc's.
    pub const LINKER: Reason = Reason(6);
}

/// What a thread says before it executes a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Supervise {
    magic: u64,
    version: u32,
    /// Why it asks.
    pub reason: Reason,
    /// Number of the thread in its own namespace of processes; 0 for a process's first.
    pub thread: u32,
    length: u32,
    name: [u8; 232],
}

const _: () = assert!(size_of::<Supervise>() == 256);

impl Supervise {
    /// Asks for this thread, which is about to execute the program of this name. Of a longer name
    /// the end is kept.
    pub fn new(reason: Reason, thread: u32, name: &[u8]) -> Supervise {
        let mut message = Supervise {
            magic: MAGIC,
            version: VERSION,
            reason,
            thread,
            length: 0,
            name: [0; 232],
        };
        let kept = name.len().min(message.name.len());
        message.length = kept as u32;
        message.name[..kept].copy_from_slice(&name[name.len() - kept..]);
        message
    }

    /// The name of the program.
    pub fn name(&self) -> &[u8] {
        let length = (self.length as usize).min(self.name.len());
        &self.name[..length]
    }

    /// Reads a message.
    ///
    /// # Errors
    /// It is no such message.
    pub fn from_message(bytes: &[u8]) -> Result<Supervise, WireError> {
        let message = read::<Supervise>(bytes)?;
        greets(message.magic, message.version)?;
        Ok(message)
    }
}

/// What becomes of the thread that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Hold(pub u32);

impl Hold {
    /// It is traced from now on; its system calls are to stop (seccomp(2)).
    pub const SEIZED: Hold = Hold(1);
    /// It was traced before, and has the filter.
    pub const HELD: Hold = Hold(2);
    /// It is not traced. The user has been informed why.
    pub const LEFT_ALONE: Hold = Hold(3);
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Supervised {
    magic: u64,
    version: u32,
    /// What has become of it.
    pub hold: Hold,
}

const _: () = assert!(size_of::<Supervised>() == 16);

impl Supervised {
    /// An answer.
    pub const fn new(hold: Hold) -> Supervised {
        Supervised {
            magic: MAGIC,
            version: VERSION,
            hold,
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// It is no such message.
    pub fn from_message(bytes: &[u8]) -> Result<Supervised, WireError> {
        let message = read::<Supervised>(bytes)?;
        greets(message.magic, message.version)?;
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written(
            reason: u32,
            thread: u32,
            name in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let asked = Supervise::new(Reason(reason), thread, &name);
            prop_assert_eq!(Supervise::from_message(asked.as_bytes()), Ok(asked));
            prop_assert!(name.ends_with(asked.name()));
            prop_assert_eq!(asked.name().len(), name.len().min(232));
        }

        #[test]
        fn no_length_of_a_name_is_too_great(length: u32) {
            let mut bytes = [0; 256];
            bytes.copy_from_slice(Supervise::new(Reason::STATIC, 0, b"").as_bytes());
            bytes[20..24].copy_from_slice(&length.to_ne_bytes());
            let read = Supervise::from_message(&bytes);
            prop_assert!(read.is_ok_and(|read| read.name().len() <= 232));
        }
    }

    #[test]
    fn messages_are_told_apart() {
        let asked = Supervise::new(Reason::STATIC, 0, b"program");
        assert!(crate::Attach::from_message(asked.as_bytes()).is_err());
        assert!(Supervise::from_message(crate::Attach::new(1, 2).as_bytes()).is_err());
        let answer = Supervised::new(Hold::HELD);
        assert_eq!(Supervised::from_message(answer.as_bytes()), Ok(answer));
        assert!(Supervised::from_message(&[0; 16]).is_err());
    }
}
