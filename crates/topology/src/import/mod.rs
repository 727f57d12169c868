//! Topology files from machines: sysfs, live or captured, and hwloc's XML.

mod hwloc;
mod sysfs;
mod tree;

use std::path::Path;

use crate::PcieError;

/// A topology file made from a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The file's text.
    pub toml: String,
    /// What could not be read, or was left out, one sentence each.
    pub notes: Vec<String>,
}

/// Reads the PCI tree of a machine: `path` is `/sys`, a directory that holds the same (`devices/`
/// with `pci0000:00` and so on below it), or a file that `lstopo` wrote as XML.
///
/// # Errors
///
/// A path that cannot be read, a tree without PCI devices, XML that is not hwloc's.
pub fn import(path: &Path, name: &str) -> Result<Imported, PcieError> {
    let from = path.display().to_string();
    if path.is_dir() {
        return finish(sysfs::read(path)?, name, &from);
    }
    import_hwloc(&crate::catalog::read(path)?, &from, name)
}

/// Reads the text of an XML file of hwloc; `from` is its name in errors.
///
/// # Errors
///
/// XML that is not hwloc's, a machine without PCI devices.
pub fn import_hwloc(text: &str, from: &str, name: &str) -> Result<Imported, PcieError> {
    finish(hwloc::read(text, from)?, name, from)
}

fn finish(tree: Vec<tree::PciNode>, name: &str, from: &str) -> Result<Imported, PcieError> {
    let imported = tree::to_file(tree, name, from)?;
    // What was written must read back.
    crate::Topology::from_toml(&imported.toml, &format!("{name}.toml"))?;
    Ok(imported)
}
