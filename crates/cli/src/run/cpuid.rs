//! Programs that ask the processor whether it has the instructions, and are told no.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use iced_x86::{Code, Decoder, DecoderOptions};
use object::{Architecture, Object, ObjectSection, SectionKind};

/// Largest program that is looked at, in bytes.
const LARGEST: u64 = 256 << 20;
const BITS: u32 = 64;

/// What to say of a command that asked nothing of the device; `None` if it has no CPUID.
pub(super) fn note(command: &OsStr) -> Option<String> {
    let path = found(command)?;
    contains(&path).then(|| {
        format!(
            "{} contains CPUID, and asked nothing of the device: CPUID is the machine's here, which may \
             have no MOVDIR64B, ENQCMD or WAITPKG, while the session executes them and /proc/cpuinfo \
             shows them (its libraries were not looked at)",
            path.display()
        )
    })
}

/// The file that execvp(3) finds.
fn found(command: &OsStr) -> Option<PathBuf> {
    let path = PathBuf::from(command);
    if path.components().count() > 1 {
        return Some(path);
    }
    let directories = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&directories).map(|directory| directory.join(&path));
    files.find(|file| file.is_file())
}

/// Whether the code of an x86-64 program has the instruction, decoded from the start of each section.
fn contains(path: &std::path::Path) -> bool {
    let fits = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LARGEST);
    let bytes = if fits { fs::read(path) } else { return false };
    let Ok(bytes) = bytes else {
        return false;
    };
    let Ok(file) = object::File::parse(&*bytes) else {
        return false;
    };
    file.architecture() == Architecture::X86_64
        && file.sections().any(|section| {
            let code = section.data().unwrap_or_default();
            section.kind() == SectionKind::Text
                && Decoder::with_ip(BITS, code, section.address(), DecoderOptions::NONE)
                    .iter()
                    .any(|instruction| instruction.code() == Code::Cpuid)
        })
}
