//! Topology files from machines: sysfs, live or captured, hwloc's and NCCL's XML, `nvidia-smi topo -m`, `lspci -vv`.

mod hwloc;
mod lspci;
mod nccl;
mod sysfs;
mod topo_matrix;
mod tree;

use std::path::Path;

use crate::PcieError;
use crate::error::syntax;

/// A topology file made from a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The file's text.
    pub toml: String,
    /// What could not be read, or was left out, one sentence each.
    pub notes: Vec<String>,
}

/// Reads the PCI tree of a machine: `path` is `/sys`, a directory that holds the same (`devices/`
/// with `pci0000:00` and so on below it), or a file for [`import_text`].
///
/// # Errors
///
/// A path that cannot be read, a tree without PCI devices, a file of another form.
pub fn import(path: &Path, name: &str) -> Result<Imported, PcieError> {
    let from = path.display().to_string();
    if path.is_dir() {
        let tree = sysfs::read(path).map_err(|error| of_import(error, &from))?;
        return finish(tree, name, &from);
    }
    import_text(&crate::catalog::read(path)?, &from, name)
}

/// Reads a text that a tool wrote: XML of hwloc (`lstopo`) or of NCCL, the matrix of `nvidia-smi topo -m`, or `lspci -vv`;
/// `from` is its name in errors.
///
/// # Errors
///
/// A text that is none of these, or is cut; a machine without PCI devices.
pub fn import_text(text: &str, from: &str, name: &str) -> Result<Imported, PcieError> {
    let tree = tree(text, from).map_err(|error| of_import(error, from))?;
    finish(tree, name, from)
}

/// The same error as one about what the machine is imported from.
fn of_import(error: PcieError, from: &str) -> PcieError {
    let message = match error {
        PcieError::Syntax { message, .. } => message,
        // Of the file that was made from it: the rules of topologies, which it breaks.
        PcieError::Rule { entry, rule, .. } => format!("{entry}: {rule}"),
        other => return other,
    };
    PcieError::Import {
        from: from.to_owned(),
        message,
    }
}

fn tree(text: &str, from: &str) -> Result<tree::Tree, PcieError> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if let Some(system) = document(start, "system") {
        return nccl::read(system, from);
    }
    match document(start, "topology") {
        Some(topology) => hwloc::read(topology, from),
        None if start.starts_with('<') => hwloc::read(start, from),
        _ if topo_matrix::is_one(text) => topo_matrix::read(text, from),
        _ if lspci::is_one(text) => lspci::read(text, from),
        _ => {
            let known = "XML of hwloc (`lstopo --whole-io --of xml`) or NCCL (NCCL_TOPO_DUMP_FILE), \
                         `nvidia-smi topo -m` or `lspci -vv`";
            Err(syntax(from, format!("is none of {known}")))
        }
    }
}

/// The XML of an element in a text, which may have a prompt or prose around it.
fn document<'t>(text: &'t str, element: &str) -> Option<&'t str> {
    let opened = format!("<{element}");
    let is_name = |at: &usize| {
        let next = text[at + opened.len()..].chars().next();
        next.is_some_and(|c| c == '>' || c.is_whitespace())
    };
    let mut places = text.match_indices(&opened).map(|(at, _)| at);
    let start = places.find(is_name)?;
    if text.starts_with('<') {
        return Some(text);
    }
    let closed = format!("</{element}>");
    let end = text.rfind(&closed).map(|at| at + closed.len());
    text.get(start..end.unwrap_or(text.len()))
}

fn finish(tree: tree::Tree, name: &str, from: &str) -> Result<Imported, PcieError> {
    let written = tree::to_file(tree, name, from).and_then(|imported| {
        // What was written must read back.
        crate::Topology::from_toml(&imported.toml, &format!("{name}.toml"))?;
        Ok(imported)
    });
    written.map_err(|error| of_import(error, from))
}

/// `8.0 GT/s PCIe` is generation 3, as are `8GT/s` and `8000 MT/s`.
fn generation(text: &str) -> Option<u32> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let speed: f64 = number.parse().ok()?;
    let speed = match unit.trim_start().starts_with('M') {
        true => speed / 1000.0,
        false => speed,
    };
    [2.5, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0]
        .iter()
        .position(|known| (known - speed).abs() < 1e-6)
        .map(|index| index as u32 + 1)
}

/// Lanes of a link: `16`, `x16`.
fn width(text: &str) -> Option<u32> {
    let width = text.trim().trim_start_matches('x').parse().ok();
    width.filter(|width| matches!(width, 1 | 2 | 4 | 8 | 12 | 16 | 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_widths_are_read_as_tools_write_them() {
        let read = [
            "8.0 GT/s PCIe",
            "16GT/s",
            "2.5GT/s (downgraded)",
            "5 GT/s",
            "32000 MT/s",
        ]
        .map(generation);
        assert_eq!(generation("128GT/s"), Some(7));
        assert_eq!(read, [Some(3), Some(4), Some(1), Some(2), Some(5)]);
        assert_eq!(
            ["Unknown", "", "100000 MT/s", "GT/s"].map(generation),
            [None; 4]
        );
        assert_eq!(
            ["16", "x8", "0", "63", ""].map(width),
            [Some(16), Some(8), None, None, None]
        );
    }
}
