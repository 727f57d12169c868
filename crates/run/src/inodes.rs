//! Numbers of paths.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A number for each path that anyone has seen. They stay: the tree has a few hundred names, and what
/// is not there gets no number.
#[derive(Debug)]
pub(crate) struct Inodes {
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    paths: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u64>,
}

/// Number of the root.
const ROOT: u64 = 1;

impl Inodes {
    pub(crate) fn new() -> Inodes {
        let root: Arc<str> = "".into();
        Inodes {
            table: Mutex::new(Table {
                paths: vec![root.clone()],
                numbers: HashMap::from([(root, ROOT)]),
            }),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of a number; `None` for one that was not given out.
    pub(crate) fn path(&self, number: u64) -> Option<Arc<str>> {
        let index = usize::try_from(number.checked_sub(ROOT)?).ok()?;
        self.table().paths.get(index).cloned()
    }

    /// The number of a path.
    pub(crate) fn number(&self, path: &str) -> u64 {
        let mut table = self.table();
        if let Some(number) = table.numbers.get(path) {
            return *number;
        }
        let number = ROOT + table.paths.len() as u64;
        let path: Arc<str> = path.into();
        table.paths.push(path.clone());
        table.numbers.insert(path, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_its_inode_number() {
        let inodes = Inodes::new();
        assert_eq!(inodes.number(""), 1);
        let sys = inodes.number("/sys");
        assert_eq!((sys, inodes.number("/sys")), (2, 2));
        assert_eq!(inodes.path(2).as_deref(), Some("/sys"));
        assert_eq!((inodes.path(0), inodes.path(3)), (None, None));
    }
}
