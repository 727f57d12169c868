//! Functions and lines, by the symbols and the debugging information of files.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use addr2line::Loader;
use rustix::fs::{MemfdFlags, memfd_create};

use super::Frame;
use super::code::Module;

/// Files that are kept open in a session.
const FILES: usize = 256;

/// A file, by device and inode.
pub(super) type FileId = (u64, u64);

/// The files of programs: kept open, so that one that is deleted or replaced later is still what was mapped.
#[derive(Default)]
pub(crate) struct Symbols {
    modules: HashMap<FileId, Arc<Module>>,
    /// The library that the session's own file system serves to programs.
    pub(super) served: Option<&'static [u8]>,
    library: Option<Arc<Module>>,
    /// `None` for one without symbols.
    loaders: HashMap<FileId, Option<Loader>>,
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbols")
            .field("modules", &self.modules.len())
            .finish_non_exhaustive()
    }
}

impl Symbols {
    /// The file with this inode that a process has mapped under this name. Another one may have the name by now, even one
    /// that would have to be waited for.
    pub(super) fn module(&mut self, path: &Path, inode: u64, name: &str) -> Option<Arc<Module>> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.ino() != inode {
            return None;
        }
        let id = (metadata.dev(), metadata.ino());
        if let Some(known) = self.modules.get(&id) {
            return Some(known.clone());
        }
        if self.modules.len() == FILES {
            return None;
        }
        let module = Arc::new(Module::read(file, id, name)?);
        self.modules.insert(id, module.clone());
        Some(module)
    }

    /// The library that this session serves under this name: who serves a file does not open it.
    pub(super) fn library(&mut self, name: &str) -> Option<Arc<Module>> {
        if self.library.is_none() {
            let mut file = File::from(memfd_create("dray-portal", MemfdFlags::CLOEXEC).ok()?);
            file.write_all(self.served?).ok()?;
            let metadata = file.metadata().ok()?;
            let id = (metadata.dev(), metadata.ino());
            self.library = Module::read(file, id, name).map(Arc::new);
        }
        self.library.clone()
    }

    /// Adds what is at `address` of a file: the inlined functions first. One frame without names if nothing is known.
    pub(super) fn name(
        &mut self,
        module: &Module,
        address: u64,
        frame: &Frame,
        frames: &mut Vec<Frame>,
    ) {
        let loader = self.loaders.entry(module.id).or_insert_with(|| {
            Loader::new(format!("/proc/self/fd/{}", module.file.as_raw_fd())).ok()
        });
        let before = frames.len();
        if let Some(loader) = loader {
            if let Ok(mut found) = loader.find_frames(address) {
                while let Ok(Some(inner)) = found.next() {
                    let location = inner.location.as_ref();
                    let function = inner.function.as_ref();
                    frames.push(Frame {
                        function: function
                            .and_then(|name| name.demangle().ok())
                            .map(String::from),
                        file: location.and_then(|at| at.file).map(str::to_owned),
                        line: location.and_then(|at| at.line).filter(|line| *line > 0),
                        ..frame.clone()
                    });
                }
            }
            if let Some(last) = frames[before..].last_mut().filter(|f| f.function.is_none()) {
                last.function = symbol(loader, address);
            }
            if frames.len() == before {
                frames.push(Frame {
                    function: symbol(loader, address),
                    ..frame.clone()
                });
            }
        }
        if frames.len() == before {
            frames.push(frame.clone());
        }
    }
}

/// By the symbol table.
fn symbol(loader: &Loader, address: u64) -> Option<String> {
    let name = loader.find_symbol(address)?;
    Some(addr2line::demangle_auto(name.into(), None).into_owned())
}
