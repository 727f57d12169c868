//! A session without namespaces and FUSE (`--redirect`), for where both are forbidden.
//!
//! The tree is a plain directory that no other user can enter ([`SessionDirectory`]), brought up to date after
//! every change of the machine ([`Files`]). The preload library redirects the paths of programs there and
//! sends by socket the requests that FUSE would get ([`requests`]). The processes of the session are those
//! that descend from the launcher, and end with it ([`descendants`]).

pub(crate) mod around;
pub(crate) mod descendants;
mod directory;
mod files;
pub(crate) mod remover;
mod requests;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use dray_idxd::driver::Driver;
use dray_wire::{REDIRECT_VARIABLE, SEPARATOR};

use crate::tree::Tree;
use crate::{RunError, Session};
use crate::{module, pci};

pub(crate) use directory::SessionDirectory;
pub(crate) use files::Files;
pub(crate) use requests::Redirected;

/// Name of the shared object in the directory.
const LIBRARY: &str = "libdray_portal.so";
/// Where the session's commands are in it.
const COMMANDS: &str = "bin";

/// Whether a file is the preload library of such a session.
pub(crate) fn is_library(path: &Path) -> bool {
    let directory = path.parent().and_then(Path::file_name);
    let begins = |name: &OsStr| name.as_bytes().starts_with(directory::PREFIX.as_bytes());
    path.file_name() == Some(OsStr::new(LIBRARY)) && directory.is_some_and(begins)
}

/// What a session needs of the system before its devices run.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) directory: SessionDirectory,
    /// Addresses of the devices on PCI.
    addresses: Vec<String>,
}

impl Redirect {
    /// Makes the directory, with the preload library in it.
    ///
    /// # Errors
    /// There is no preload library, or no place for a directory.
    pub(crate) fn new(session: &Session, driver: &Driver) -> Result<Redirect, RunError> {
        let library = session.portal.ok_or(RunError::NoLibrary)?;
        let directory = SessionDirectory::new()?;
        directory.put(LIBRARY, library)?;
        let commands = directory.path().join(COMMANDS);
        for (name, script) in module::scripts(&commands, Path::new(module::MODULES)) {
            directory.put(&format!("{COMMANDS}/{name}"), script.as_bytes())?;
        }
        let addresses = driver.parts().map(|part| part.pci_address.clone());
        Ok(Redirect {
            addresses: addresses.collect(),
            directory,
        })
    }

    /// The preload library.
    pub(crate) fn library(&self) -> PathBuf {
        self.directory.path().join(LIBRARY)
    }

    /// The commands of the session.
    pub(crate) fn commands(&self) -> PathBuf {
        self.directory.path().join(COMMANDS)
    }

    /// The variable that says where paths lead: the parts of a machine that the mounted tree would
    /// cover.
    pub(crate) fn variable(&self) -> (&'static str, OsString) {
        let mut paths = vec![
            "/sys/bus/dsa".to_owned(),
            "/sys/bus/pci/drivers/idxd".to_owned(),
            "/sys/module/idxd".to_owned(),
            "/sys/dev/char".to_owned(),
            "/dev/dsa".to_owned(),
            "/dev/char".to_owned(),
            module::MODULES.to_owned(),
            crate::cpu::CPUINFO.to_owned(),
        ];
        for address in &self.addresses {
            let bus = pci::bus(address);
            paths.push(format!("/sys/devices/pci{bus}"));
            paths.push(format!("/sys/bus/pci/devices/{address}"));
        }
        paths.sort();
        paths.dedup();
        let mut value = self.directory.root().as_os_str().as_bytes().to_vec();
        for path in paths {
            value.push(SEPARATOR);
            value.extend(path.bytes());
        }
        (REDIRECT_VARIABLE, OsStr::from_bytes(&value).to_owned())
    }

    /// Writes all files, and links to the machine's around them.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(crate) fn render(&self, tree: &Tree<'_>) -> Result<Files, RunError> {
        let mut files = Files::new(self.directory.root());
        let failed = |source| RunError::Files {
            path: self.directory.root(),
            source,
        };
        files.bring_up_to_date(tree).map_err(failed)?;
        around::link(&self.directory.root(), &self.addresses).map_err(failed)?;
        Ok(files)
    }
}
