//! What was there before the last change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dray_idxd::{DeviceProfile, Profile};

use crate::ConfigError;
use crate::tree::TreeError;

/// A file with the settings and states of before the last change of one tree.
#[derive(Debug, Clone)]
pub struct Journal {
    file: PathBuf,
}

impl Journal {
    /// The journal of a tree, in a directory for such files. The path alone does not name the tree: each
    /// session of `dray run` has another one at `/sys`, which `identity` distinguishes.
    pub fn new(directory: &Path, root: &Path, identity: Option<&str>) -> Journal {
        let root = root.display().to_string();
        let identity = identity.map(|identity| format!("@{identity}"));
        let letters = root
            .bytes()
            .chain(identity.unwrap_or_default().into_bytes());
        let letters = letters.map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' => char::from(byte).to_string(),
            _ => format!("-{byte:02x}"),
        });
        let name: String = letters.collect();
        Journal {
            file: directory.join(format!("config-before{name}.json")),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Keeps what is there now.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, devices: &[DeviceProfile]) -> Result<(), ConfigError> {
        let failed = |source| TreeError::new(self.file.display().to_string(), source);
        if let Some(directory) = self.file.parent() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        // Whole or not at all: the file before is of use until this one is.
        let profile = Profile::of(devices.to_vec()).to_json();
        dray_output::write(&self.file, profile.as_bytes()).map_err(|error| failed(error.source))?;
        Ok(())
    }

    /// Keeps nothing any more.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn forget(&self) -> Result<(), ConfigError> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(TreeError::new(self.file.display().to_string(), error).into())
            }
            _ => Ok(()),
        }
    }

    /// What was kept.
    ///
    /// # Errors
    /// Nothing was, or the file is damaged.
    pub fn kept(&self) -> Result<Vec<DeviceProfile>, ConfigError> {
        match fs::metadata(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ConfigError::NothingToUndo {
                    path: self.file.display().to_string(),
                });
            }
            _ => {}
        }
        Ok(Profile::load(&self.file)?.device_profiles().to_vec())
    }
}
