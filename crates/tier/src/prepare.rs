//! Setting a machine with two nodes up for the kernel's own tiering, as kernels-with-dsa has it in
//! its steps 1, 2 and 4, and undoing it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A file that is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Below the root.
    pub path: PathBuf,
    /// What it said.
    pub before: String,
    /// What it is to say.
    pub after: String,
}

/// Why a machine cannot be set up.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The slow tier must be a node of its own.
    #[error("there is no NUMA node {node}: the kernel tiers between nodes")]
    NoNode {
        /// Which.
        node: u32,
    },
    /// A control that this kernel does not have.
    #[error("{path} is not there: this kernel cannot {what}")]
    NoControl {
        /// The file.
        path: PathBuf,
        /// What it would do.
        what: &'static str,
    },
    /// All cores are on the node whose cores are to go.
    #[error("all cores are on node {node}: none would be left")]
    NoCores {
        /// Which.
        node: u32,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing was set up, or it has been undone.
    #[error("there is nothing to undo: {path} is not there")]
    Nothing {
        /// Where it would be written.
        path: PathBuf,
    },
    /// Not what this program writes.
    #[error("{path} is not what `dray tier prepare` writes")]
    NoPlan {
        /// Which.
        path: PathBuf,
    },
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> PrepareError {
    let path = path.to_owned();
    move |source| PrepareError::File { path, source }
}

/// What is to be changed for node `slow` to be the slow tier. Files are below `root`, which is `/`
/// but in tests.
///
/// # Errors
/// [`PrepareError`].
pub fn plan(root: &Path, slow: u32) -> Result<Vec<Step>, PrepareError> {
    let node = root.join(format!("sys/devices/system/node/node{slow}"));
    if !node.is_dir() {
        return Err(PrepareError::NoNode { node: slow });
    }
    let list = node.join("cpulist");
    let cores = cores(&fs::read_to_string(&list).map_err(file(&list))?);
    let online = root.join("sys/devices/system/cpu/online");
    let all = self::cores(&fs::read_to_string(&online).map_err(file(&online))?);
    if !cores.is_empty() && all.iter().all(|core| cores.contains(core)) {
        return Err(PrepareError::NoCores { node: slow });
    }
    let mut wanted: Vec<(PathBuf, &str, &'static str)> = cores
        .iter()
        .map(|core| {
            let path = format!("sys/devices/system/cpu/cpu{core}/online");
            (PathBuf::from(path), "0", "take cores off")
        })
        .collect();
    let control = |path: &str| PathBuf::from(path);
    wanted.push((
        control("sys/kernel/mm/numa/demotion_enabled"),
        "true",
        "demote pages",
    ));
    wanted.push((
        control("proc/sys/kernel/numa_balancing"),
        "2",
        "promote pages",
    ));
    let mut steps = Vec::new();
    for (path, after, what) in wanted {
        let full = root.join(&path);
        if !full.exists() {
            return Err(PrepareError::NoControl { path: full, what });
        }
        let before = fs::read_to_string(&full).map_err(file(&full))?;
        let before = before.trim().to_owned();
        if before != after {
            steps.push(Step {
                path,
                before,
                after: after.to_owned(),
            });
        }
    }
    Ok(steps)
}

/// Devices and files that pages are swapped to: they are to be off.
pub fn swaps(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join("proc/swaps")).unwrap_or_default();
    let lines = text.lines().skip(1);
    lines
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// Carries steps out, and writes first to `undo` what takes them back. If one fails those before it
/// are taken back.
///
/// # Errors
/// A file that cannot be written.
pub fn apply(root: &Path, steps: &[Step], undo: &Path) -> Result<(), PrepareError> {
    let text = serde_json::to_string_pretty(steps).map_err(|error| PrepareError::File {
        path: undo.to_owned(),
        source: error.into(),
    })?;
    fs::write(undo, text).map_err(file(undo))?;
    for (index, step) in steps.iter().enumerate() {
        let path = root.join(&step.path);
        if let Err(error) = fs::write(&path, &step.after) {
            for done in steps[..index].iter().rev() {
                let _ = fs::write(root.join(&done.path), &done.before);
            }
            let _ = fs::remove_file(undo);
            return Err(file(&path)(error));
        }
    }
    Ok(())
}

/// Takes back what was carried out; how many steps.
///
/// # Errors
/// There is nothing to undo; a file that cannot be written: what is left can be undone again.
pub fn take_back(root: &Path, undo: &Path) -> Result<usize, PrepareError> {
    let text = fs::read_to_string(undo).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => PrepareError::Nothing {
            path: undo.to_owned(),
        },
        _ => file(undo)(error),
    })?;
    let steps: Vec<Step> = serde_json::from_str(&text).map_err(|_| PrepareError::NoPlan {
        path: undo.to_owned(),
    })?;
    for step in steps.iter().rev() {
        // A plan from elsewhere must not write anywhere.
        let known = [
            "sys/devices/system/cpu/",
            "sys/kernel/mm/numa/",
            "proc/sys/kernel/",
        ];
        let inside = known.iter().any(|start| step.path.starts_with(start))
            && !step.path.components().any(|part| part.as_os_str() == "..");
        if !inside {
            return Err(PrepareError::NoPlan {
                path: undo.to_owned(),
            });
        }
        let path = root.join(&step.path);
        fs::write(&path, &step.before).map_err(file(&path))?;
    }
    fs::remove_file(undo).map_err(file(undo))?;
    Ok(steps.len())
}

/// `0-3,8` as numbers. What is no list has none.
fn cores(text: &str) -> Vec<u32> {
    const MOST: u32 = 1 << 16;
    let mut found = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            found.extend(first.min(MOST)..=last.min(MOST));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("not the root")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        put("sys/devices/system/node/node0/cpulist", "0-1\n");
        put("sys/devices/system/node/node1/cpulist", "2-3\n");
        put("sys/devices/system/cpu/online", "0-3\n");
        put("sys/devices/system/cpu/cpu2/online", "1\n");
        put("sys/devices/system/cpu/cpu3/online", "1\n");
        put("sys/kernel/mm/numa/demotion_enabled", "false\n");
        put("proc/sys/kernel/numa_balancing", "1\n");
        put("proc/swaps", "Filename Type\n/dev/sda2 partition 1 0 -2\n");
        root
    }

    fn read(root: &Path) -> [String; 3] {
        [
            "sys/devices/system/cpu/cpu3/online",
            "sys/kernel/mm/numa/demotion_enabled",
            "proc/sys/kernel/numa_balancing",
        ]
        .map(|path| {
            let text = fs::read_to_string(root.join(path)).expect("it is there");
            text.trim().to_owned()
        })
    }

    #[test]
    fn preparations_can_be_undone() {
        let root = machine();
        let root = root.path();
        let undo = root.join("undo");
        let steps = plan(root, 1).expect("two nodes");
        assert_eq!(steps.len(), 4);
        apply(root, &steps, &undo).expect("files");
        assert_eq!(read(root), ["0", "true", "2"]);
        assert_eq!(plan(root, 1).expect("still").len(), 0);
        assert_eq!(take_back(root, &undo).expect("a plan"), 4);
        assert_eq!(read(root), ["1", "false", "1"]);
        assert!(matches!(
            take_back(root, &undo),
            Err(PrepareError::Nothing { .. })
        ));
        assert_eq!(swaps(root), ["/dev/sda2"]);
    }

    #[test]
    fn nodes_that_cannot_be_prepared_are_named() {
        let root = machine();
        let root = root.path();
        assert!(matches!(
            plan(root, 7),
            Err(PrepareError::NoNode { node: 7 })
        ));
        fs::write(root.join("sys/devices/system/node/node1/cpulist"), "0-3").expect("a file");
        assert!(matches!(plan(root, 1), Err(PrepareError::NoCores { .. })));
        fs::write(root.join("sys/devices/system/node/node1/cpulist"), "\n").expect("a file");
        fs::remove_file(root.join("sys/kernel/mm/numa/demotion_enabled")).expect("there");
        assert!(matches!(plan(root, 1), Err(PrepareError::NoControl { .. })));
        let undo = root.join("undo");
        for plan in ["x", r#"[{"path":"etc/passwd","before":"x","after":"y"}]"#] {
            fs::write(&undo, plan).expect("a file");
            assert!(matches!(
                take_back(root, &undo),
                Err(PrepareError::NoPlan { .. })
            ));
        }
    }
}
