//! What a session is to be.

use std::ffi::OsString;

use dray_idxd::Profile;
use dray_idxd::driver::Personality;
use dray_realtime::{Chaos, Deviation};
use dray_remote::Presence;

use crate::{InjectedPanic, Recording, Supervise};

/// A command and the machine that it is to find.
#[derive(Debug, Clone)]
pub struct Session {
    /// The command and its arguments; the first is looked up in `PATH`.
    pub command: Vec<OsString>,
    /// Which kernel's driver.
    pub personality: Personality,
    /// The devices, configured and enabled; without it there is one, as on a fresh machine.
    pub profile: Option<Profile>,
    /// An IAX beside the devices, for scripts that insist on one; it stays disabled, as those of the profile do.
    pub iax: bool,
    /// Shared object that programs load, and that gives them portals; without it they have write(2)
    /// alone.
    pub portal: Option<&'static [u8]>,
    /// What the devices find on pages that are not in memory.
    pub presence: Presence,
    /// The only way in, for programs to be tested with it; without it, what the kernel has.
    pub require: Option<Require>,
    /// Paths are redirected to plain files, and no namespace and no FUSE is used. Programs that cannot preload
    /// the shared object find nothing then.
    pub redirect: bool,
    /// Which commands are supervised, with all that they start.
    pub supervise: Supervise,
    /// What is kept of the descriptors.
    pub recording: Recording,
    /// Programs have ThreadSanitizer, and it is told what devices do.
    pub thread_sanitizer: bool,
    /// An adversary chooses what devices do among what the specification allows.
    pub chaos: Option<Chaos>,
    /// What the devices do otherwise than the specification says.
    pub deviation: Option<Deviation>,
    /// A thread of the launcher panics, to test what follows.
    pub injected_panic: Option<InjectedPanic>,
}

/// A way to submit descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Require {
    /// A mapped portal: write(2) is refused, as before 6.10.
    Portal,
    /// write(2): mapping takes `CAP_SYS_RAWIO`, as from 6.10 on.
    Write,
}
