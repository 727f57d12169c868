//! Who copies the pages that the kernel moves: a core, or, with the module `dray_migrate`, threads and the device.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::copier::Copied;
use crate::sys::PAGE;

/// The module's counters, of all migrations on this machine.
const COUNTERS: &str = "/sys/module/dray_migrate/parameters/counters";

/// The module's counters, if it is loaded.
#[derive(Debug)]
pub(super) struct Copies(Option<File>);

/// Bytes that device and threads have copied so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    device: u64,
    threads: u64,
}

impl Copies {
    pub(super) fn of_the_module() -> Copies {
        Copies::over(Path::new(COUNTERS))
    }

    fn over(path: &Path) -> Copies {
        Copies(File::open(path).ok())
    }

    pub(super) fn has_module(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn read(&self) -> Counted {
        let mut bytes = [0u8; 4096];
        let read = self.0.as_ref().map(|file| file.read_at(&mut bytes, 0));
        let Some(Ok(len)) = read else {
            return Counted::default();
        };
        let text = String::from_utf8_lossy(&bytes[..len]);
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find(|(known, _)| *known == name);
            found
                .and_then(|(_, value)| value.trim().parse().ok())
                .unwrap_or(0)
        };
        Counted {
            device: value("bytes_by_device"),
            threads: value("pages_by_threads") * PAGE,
        }
    }

    /// Who has copied these bytes since: others' migrations count, too, up to as many.
    pub(super) fn since(&self, before: Counted, bytes: u64) -> Copied {
        let now = self.read();
        let device = now.device.saturating_sub(before.device).min(bytes);
        let threads = now
            .threads
            .saturating_sub(before.threads)
            .min(bytes - device);
        Copied {
            device,
            cores: threads,
            core: bytes - device - threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_the_cores_without_the_module_and_the_devices_by_its_counters() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("counters");
        let none = Copies::over(&path);
        let all = none.since(none.read(), 8192);
        assert_eq!([all.core, all.cores, all.device], [8192, 0, 0]);
        let put = |device: u64, threads: u64| {
            let text = format!(
                "pages_by_device 9\npages_by_threads {threads}\nbytes_by_device {device}\nx y\n"
            );
            std::fs::write(&path, text).expect("a file");
        };
        put(4096, 3);
        let copies = Copies::over(&path);
        let before = copies.read();
        put(4096 + 8192, 4);
        let since = copies.since(before, 16384);
        assert_eq!([since.core, since.cores, since.device], [4096, 4096, 8192]);
        // Others have copied more.
        let since = copies.since(before, 4096);
        assert_eq!([since.core, since.cores, since.device], [0, 0, 4096]);
    }
}
