//! What a session is to be.

use std::ffi::OsString;
use std::path::PathBuf;

use dray_idxd::Profile;
use dray_idxd::driver::Personality;

/// A command and the machine that it is to find.
#[derive(Debug, Clone)]
pub struct Session {
    /// The command and its arguments; the first is looked up in `PATH`.
    pub command: Vec<OsString>,
    /// Which kernel's driver.
    pub personality: Personality,
    /// The devices, configured and enabled; without it there is one, as on a fresh machine.
    pub profile: Option<Profile>,
    /// Library that is loaded into programs and gives them portals; without it they have write(2).
    pub portal: Option<PathBuf>,
}
