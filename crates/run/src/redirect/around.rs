//! Links to the machine's own files beside the tree, so that they are found by paths that lead up from the
//! tree and in listings of directories that hold both.

use crate::pci;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Directories that hold both.
const COMMON: [&str; 10] = [
    "",
    "/dev",
    "/sys",
    "/sys/bus",
    "/sys/bus/pci",
    "/sys/bus/pci/devices",
    "/sys/bus/pci/drivers",
    "/sys/dev",
    "/sys/devices",
    "/sys/module",
];

/// Links what the machine has in those directories into them, and the PCI functions at `addresses`.
///
/// # Errors
/// The directory cannot be written.
pub(crate) fn link(root: &Path, addresses: &[String]) -> io::Result<()> {
    for directory in COMMON {
        let into = root.join(directory.trim_start_matches('/'));
        fs::create_dir_all(&into)?;
        if directory == "/sys/bus/pci/devices" {
            for address in addresses {
                let bus = pci::bus(address);
                let target = format!("../../../devices/pci{bus}/{address}");
                link_one(Path::new(&target), &into.join(address))?;
            }
        }
        // A machine may lack one of them, or hide it.
        let Ok(entries) = fs::read_dir(format!("{directory}/")) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = Path::new("/").join(directory).join(entry.file_name());
            if COMMON.iter().any(|common| path == Path::new(common)) {
                continue;
            }
            // A link in sysfs is relative, and would lead elsewhere from here.
            let target = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => fs::canonicalize(&path).unwrap_or(path),
                _ => path,
            };
            link_one(&target, &into.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// The session's own entries come first.
fn link_one(target: &Path, link: &Path) -> io::Result<()> {
    match symlink(target, link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_links_to_the_machine_s_own_files() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("dev/dsa")).unwrap();
        link(root.path(), &["0000:6a:01.0".to_owned()]).unwrap();
        let target = |path: &str| fs::read_link(root.path().join(path)).unwrap();
        assert_eq!(target("usr"), fs::canonicalize("/usr").unwrap());
        assert_eq!(target("dev/null"), Path::new("/dev/null"));
        assert_eq!(
            target("sys/bus/pci/devices/0000:6a:01.0"),
            Path::new("../../../devices/pci0000:6a/0000:6a:01.0")
        );
        assert!(root.path().join("dev/dsa").is_dir());
        assert!(
            !fs::symlink_metadata(root.path().join("sys/bus"))
                .unwrap()
                .is_symlink()
        );
    }
}
