//! Programs of a session that are not tiered because they do not load the preload library: statically linked ones,
//! those with privileges of their own, and those whose environment was replaced.
//!
//! A program that does not load the library sends no event, and so all processes that descend from the
//! command are looked at now and then: what is mapped into them is what was loaded. A program that lives for less
//! than a look and the next is not seen; it has little memory to tier.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use dray_interpose::program::{Obstacle, PreloadSupport, kind};

use crate::session::Session;
use crate::sys::processes::{Identity, all, descendants, executable, name};

/// Between two looks, at least.
const PAUSE: Duration = Duration::from_millis(500);
/// A look may take so much of the time between two: a thousandth of a core.
const SHARE: u32 = 1000;

/// Looks for such programs until the other end of the channel is gone.
pub(crate) fn watch(session: Session, library: &str, ended: &Receiver<()>) {
    let mut looker = Looker::new(PathBuf::from("/proc"), std::process::id(), library);
    let mut pause = PAUSE;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let begin = Instant::now();
        for text in looker.look() {
            session.add_untiered(&text);
        }
        pause = (begin.elapsed() * SHARE).max(PAUSE);
    }
}

/// What has been seen of processes.
#[derive(Debug)]
struct Looker {
    proc: PathBuf,
    /// All others descend from it; it is not tiered itself.
    root: u32,
    /// File name of the preload library.
    library: String,
    /// What descended from the root at the last look, and what it executed; judged or not.
    known: HashMap<Identity, (Option<PathBuf>, bool)>,
    named: HashSet<String>,
}

impl Looker {
    fn new(proc: PathBuf, root: u32, library: &str) -> Looker {
        Looker {
            proc,
            root,
            library: library.to_owned(),
            known: HashMap::new(),
            named: HashSet::new(),
        }
    }

    /// Programs that are not tiered and were not named before, each with the reason.
    fn look(&mut self) -> Vec<String> {
        let all = all(&self.proc);
        // Those whose parents have ended belong to it still.
        let orphans = all.iter().map(|(process, _)| process);
        let orphans: Vec<Identity> = orphans
            .filter(|process| self.known.contains_key(process))
            .copied()
            .collect();
        let roots: Vec<u32> = std::iter::once(self.root)
            .chain(orphans.iter().map(|process| process.pid))
            .collect();
        let mut living: HashSet<Identity> = descendants(&all, &roots).into_iter().collect();
        living.extend(orphans);
        let before = std::mem::take(&mut self.known);
        let mut found = Vec::new();
        for process in living {
            let file = executable(&self.proc, process.pid);
            let judged = match before.get(&process) {
                Some((before, judged)) if *before == file => {
                    // The second look at it: the dynamic linker has had its time.
                    if !judged && let Some(text) = self.judge(process, file.as_deref()) {
                        found.push(text);
                    }
                    true
                }
                _ => false,
            };
            self.known.insert(process, (file, judged));
        }
        found.retain(|text| self.named.insert(text.clone()));
        found.sort();
        found
    }

    /// Which program it is, and why it is not tiered; `None` if it is, or has ended.
    fn judge(&self, process: Identity, file: Option<&Path>) -> Option<String> {
        let directory = self.proc.join(process.pid.to_string());
        let reason = match fs::read(directory.join("maps")) {
            Ok(maps) => {
                let lines = maps.split(|byte| *byte == b'\n');
                let mut names = lines.filter_map(|line| line.rsplit(|byte| *byte == b'/').next());
                let library = self.library.as_bytes();
                // The file may have been removed since.
                if maps.is_empty() || names.any(|name| name.starts_with(library)) {
                    return None;
                }
                let path = CString::new(directory.join("exe").as_os_str().as_bytes()).ok()?;
                match kind(&path) {
                    Ok(PreloadSupport::Hindered(obstacle)) if obstacle != Obstacle::RawCalls => {
                        obstacle.to_string()
                    }
                    _ => "was started without dray's LD_PRELOAD".to_owned(),
                }
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Obstacle::Privileged.to_string()
            }
            Err(_) => return None,
        };
        let program = match file {
            Some(file) => file.display().to_string(),
            None => name(&self.proc, process.pid)?,
        };
        Some(format!("{program} {reason}: it is not tiered"))
    }
}

#[cfg(test)]
mod tests;
