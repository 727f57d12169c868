//! The driver and its devices, for many threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dray_idxd::driver::{Driver, Entry, Errno};

/// The machine that the programs find.
#[derive(Debug)]
pub(crate) struct Machine {
    driver: Mutex<Driver>,
}

impl Machine {
    pub(crate) fn new(driver: Driver) -> Machine {
        Machine {
            driver: Mutex::new(driver),
        }
    }

    fn driver(&self) -> MutexGuard<'_, Driver> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Directories of sysfs that PCI has for the devices: `/sys/devices/pci0000:6a` and the names of
    /// the functions below.
    pub(crate) fn pci_addresses(&self) -> Vec<String> {
        let driver = self.driver();
        driver
            .parts()
            .map(|part| part.pci_address.clone())
            .collect()
    }

    pub(crate) fn list(&self, path: &str) -> Result<Vec<Entry>, Errno> {
        self.driver().list(path)
    }

    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        self.driver().read(path)
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), Errno> {
        self.driver().write(path, bytes)
    }

    /// The entries of `/dev/dsa`.
    pub(crate) fn nodes(&self) -> Vec<Entry> {
        self.driver().nodes()
    }
}
