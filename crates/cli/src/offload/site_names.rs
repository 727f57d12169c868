//! Names of the call sites that a survey has found.

use std::collections::HashMap;
use std::path::Path;

use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, SymbolKind};

/// Functions of files.
#[derive(Default)]
pub(super) struct SiteNames {
    files: HashMap<String, Option<Functions>>,
}

/// Functions of one file, by address.
struct Functions {
    /// Offset in the file, its bytes, and the address there.
    segments: Vec<(u64, u64, u64)>,
    functions: Vec<(u64, u64, String)>,
}

impl SiteNames {
    /// `file!function+0x12`, or `file+0x1234` where the file does not name the function.
    pub(super) fn name(&mut self, path: &str, offset: u64) -> String {
        if path.is_empty() {
            return format!("{offset:#x}");
        }
        let short = Path::new(path)
            .file_name()
            .map_or(path.into(), |name| name.to_string_lossy());
        let functions = self
            .files
            .entry(path.to_owned())
            .or_insert_with(|| Functions::read(Path::new(path)));
        // The byte before: the call itself.
        let found = functions
            .as_ref()
            .and_then(|functions| functions.find(offset.saturating_sub(1)));
        match found {
            Some((name, into)) => format!("{short}!{name}+{:#x}", into + 1),
            None => format!("{short}+{offset:#x}"),
        }
    }
}

impl Functions {
    fn read(path: &Path) -> Option<Functions> {
        let bytes = std::fs::read(path).ok()?;
        let header = FileHeader64::<Endianness>::parse(&*bytes).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, &*bytes).ok()?;
        let segments = segments
            .iter()
            .filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD)
            .map(|segment| {
                let offset = segment.p_offset(endian);
                (offset, segment.p_filesz(endian), segment.p_vaddr(endian))
            });
        let segments = segments.collect();
        let file = object::File::parse(&*bytes).ok()?;
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let mut functions: Vec<(u64, u64, String)> = symbols
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            .filter_map(|symbol| {
                let name = symbol.name().ok()?.to_owned();
                Some((symbol.address(), symbol.size(), name))
            })
            .collect();
        functions.sort();
        functions.dedup_by_key(|(address, _, _)| *address);
        Some(Functions {
            segments,
            functions,
        })
    }

    fn find(&self, offset: u64) -> Option<(&str, u64)> {
        let segment = self
            .segments
            .iter()
            .find(|(start, bytes, _)| (*start..start + bytes).contains(&offset))?;
        let address = offset - segment.0 + segment.2;
        let after = self
            .functions
            .partition_point(|(start, _, _)| *start <= address);
        let (start, size, name) = self.functions.get(after.checked_sub(1)?)?;
        (address < start + size).then(|| (name.as_str(), address - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_without_symbols_are_named_by_file_and_offset() {
        let mut names = SiteNames::default();
        assert_eq!(names.name("", 0x12), "0x12");
        assert_eq!(names.name("/not/there", 0x12), "there+0x12");
        assert_eq!(names.name("/etc/passwd", 0x12), "passwd+0x12");
        assert_eq!(names.name("[vdso]", 0x12), "[vdso]+0x12");
    }
}
