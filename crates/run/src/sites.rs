//! Places in programs: the thread, the instruction that submitted a descriptor, and its callers.
//!
//! Addresses are found while the program is there, by its stack and the unwind tables of its files; names when somebody asks.

mod code;
mod symbols;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs;
use std::sync::Arc;

use dray_realtime::Origin;

use crate::processes::{Pid, field};
use code::Code;
use symbols::Symbols;

/// Callers that are kept of a place, with the place itself.
const FRAMES: usize = 16;
/// Places that are kept in a session; of later ones nothing is known.
const PLACES: usize = 1 << 16;

/// A function on the way to a place in a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// Address in the process: of the instruction, or behind the call.
    pub address: u64,
    /// The file that is mapped there.
    pub module: Option<String>,
    /// The address as the file counts, as addr2line(1) and objdump(1) take it.
    pub offset: Option<u64>,
    /// By the symbols of the file.
    pub function: Option<String>,
    /// Source file, if the file has line numbers.
    pub file: Option<String>,
    /// Its line.
    pub line: Option<u32>,
}

/// A place in a program, with its symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Number of the thread.
    pub thread: u32,
    /// The innermost function first; inlined ones apart.
    pub frames: Vec<Frame>,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)?;
        if let Some(function) = &self.function {
            write!(f, " in {function}")?;
        }
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " {file}:{line}"),
            (Some(file), None) => write!(f, " {file}"),
            (None, _) => match (&self.module, self.offset) {
                (Some(module), Some(offset)) => write!(f, " ({module}+{offset:#x})"),
                _ => Ok(()),
            },
        }
    }
}

/// A place that is known, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PlaceId(u32);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    pid: Pid,
    thread: u32,
    addresses: Vec<u64>,
}

/// All places of a session.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    codes: HashMap<Pid, Arc<Code>>,
    numbers: HashMap<Place, PlaceId>,
    /// Those without callers: by process, thread as it calls itself, and instruction.
    bare: BTreeMap<(Pid, u32, u64), PlaceId>,
    /// With the code that was there then.
    places: Vec<(Place, Option<Arc<Code>>)>,
    symbols: Symbols,
    /// Threads by the numbers that they have in the session's namespace of processes.
    threads: HashMap<(Pid, u32), u32>,
    /// Addresses that no code was at: a program says what it will, and its mappings are not read for each again.
    nowhere: HashSet<(Pid, u64)>,
}

/// Threads, and addresses without code, that are kept: what programs say is bounded.
const KEPT: usize = 1 << 14;

impl Sites {
    /// For a session that serves its programs this library.
    pub(crate) fn serving(library: Option<&'static [u8]>) -> Sites {
        let mut sites = Sites::default();
        sites.symbols.served = library;
        sites
    }

    /// The place where a descriptor was submitted. `stack` is what stands at its stack pointer, as far as it was read.
    pub(crate) fn enter(&mut self, pid: Pid, origin: &Origin, stack: &[u8]) -> Option<PlaceId> {
        let bare = (pid, origin.thread, origin.site);
        if stack.is_empty()
            && let Some(known) = self.bare.get(&bare)
        {
            return Some(*known);
        }
        let id = self.enter_new(pid, origin, stack)?;
        if stack.is_empty() && self.bare.len() < KEPT {
            self.bare.insert(bare, id);
        }
        Some(id)
    }

    fn enter_new(&mut self, pid: Pid, origin: &Origin, stack: &[u8]) -> Option<PlaceId> {
        self.read_code(pid, origin.site);
        let code = self.codes.get(&pid);
        let addresses = match code {
            Some(code) if !stack.is_empty() => code.unwind(origin, stack, FRAMES),
            _ => vec![origin.site],
        };
        if self.threads.len() == KEPT {
            self.threads.clear();
        }
        let thread = self.threads.entry((pid, origin.thread));
        let place = Place {
            pid,
            thread: *thread.or_insert_with(|| outside(pid, origin.thread)),
            addresses,
        };
        if let Some(known) = self.numbers.get(&place) {
            return Some(*known);
        }
        if self.places.len() == PLACES {
            return None;
        }
        let id = PlaceId(self.places.len() as u32);
        self.places.push((place.clone(), code.cloned()));
        self.numbers.insert(place, id);
        Some(id)
    }

    /// Reads the mappings of a process, if there is a place in it that is not in those that were read.
    fn read_code(&mut self, pid: Pid, site: u64) {
        let known = |code: &Arc<Code>| code.has(site);
        if self.codes.get(&pid).is_some_and(known) || self.nowhere.contains(&(pid, site)) {
            return;
        }
        if let Some(code) = Code::of(pid, &mut self.symbols) {
            if !code.has(site) && self.nowhere.len() < KEPT {
                self.nowhere.insert((pid, site));
            }
            self.codes.insert(pid, Arc::new(code));
        }
    }

    /// A process has ended, executes another program, or has given up its portal.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.codes.remove(&pid);
        self.bare.retain(|(of, ..), _| *of != pid);
        self.threads.retain(|(of, _), _| *of != pid);
        self.nowhere.retain(|(of, _)| *of != pid);
        // What has its number later is another one.
        self.numbers.retain(|place, _| place.pid != pid);
    }

    /// A place with its symbols.
    pub(crate) fn resolve(&mut self, id: PlaceId) -> Option<Site> {
        let (place, code) = self.places.get(id.0 as usize)?;
        let mut frames = Vec::new();
        for (index, address) in place.addresses.iter().enumerate() {
            // A call is before the address that it returns to, which may be another mapping's.
            let back = u64::from(index > 0);
            let asked = address.wrapping_sub(back);
            let found = code.as_ref().and_then(|code| code.find(asked));
            let Some((module, asked)) = found else {
                frames.push(Frame {
                    address: *address,
                    ..Frame::default()
                });
                continue;
            };
            let frame = Frame {
                address: *address,
                module: Some(module.name.clone()),
                offset: Some(asked.saturating_add(back)),
                ..Frame::default()
            };
            self.symbols.name(module, asked, &frame, &mut frames);
        }
        Some(Site {
            thread: place.thread,
            frames,
        })
    }
}

/// The number that a thread of a process has here, by the one that it has itself; that one where it is not found.
fn outside(pid: Pid, own: u32) -> u32 {
    let is_it = |thread: &u32| {
        // From the outermost namespace that can be seen to its own (proc_pid_status(5)).
        let numbers = field(*thread, "NSpid:");
        let last = numbers
            .as_deref()
            .and_then(|all| all.split_whitespace().last());
        last.and_then(|last| last.parse().ok()) == Some(own)
    };
    // The same number, where both have one namespace.
    if fs::exists(format!("/proc/{pid}/task/{own}")).is_ok_and(|there| there) && is_it(&own) {
        return own;
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let threads = tasks.flatten().flatten();
    let mut threads = threads.filter_map(|task| task.file_name().to_str()?.parse().ok());
    threads.find(is_it).unwrap_or(own)
}

#[cfg(test)]
mod tests;
