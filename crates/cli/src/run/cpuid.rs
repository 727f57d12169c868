//! Programs that ask the processor whether it has the instructions, and are told no.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iced_x86::{Code, Decoder, DecoderOptions};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Architecture, Endianness, Object, ObjectSection, SectionKind};

/// Largest program that is looked at, in bytes.
const LARGEST: u64 = 256 << 20;
const BITS: u32 = 64;

/// Libraries that every program loads: they have CPUID, and choose no way to the device by it.
const RUNTIME: [&str; 9] = [
    "ld-linux",
    "ld-musl",
    "libc.",
    "libm.",
    "libgcc_s.",
    "libstdc++.",
    "libpthread.",
    "libdl.",
    "librt.",
];

/// What to say of a command that asked nothing of the device; `None` if neither it nor a library that it is linked
/// with has CPUID. `faults`: the processor can fault CPUID, and the command was not supervised.
pub(super) fn note(command: &OsStr, faults: bool) -> Option<String> {
    let path = found(command)?;
    let bytes = read(&path)?;
    let who = match contains(&bytes) {
        true => path.display().to_string(),
        false => {
            let mut libraries = libraries(&path, &bytes).into_iter();
            let library =
                libraries.find(|library| read(library).is_some_and(|bytes| contains(&bytes)))?;
            format!("{}, a library of {},", library.display(), path.display())
        }
    };
    Some(format!(
        "{who} contains CPUID, and asked nothing of the device: CPUID is the machine's here, which may \
         have no MOVDIR64B, ENQCMD or WAITPKG, while the session executes them and /proc/cpuinfo \
         shows them (libraries that are loaded later were not looked at){}",
        match faults {
            true =>
                "; this processor can fault CPUID: with --supervise always CPUID shows them, too",
            false => "",
        }
    ))
}

/// A file of a size that is looked at.
fn read(path: &Path) -> Option<Vec<u8>> {
    let fits = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LARGEST);
    if fits { fs::read(path).ok() } else { None }
}

/// The libraries that a program is linked with, as its dynamic linker finds them; the program is not executed.
fn libraries(path: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let Some(linker) = interpreter(bytes) else {
        return Vec::new();
    };
    let mut list = Command::new(linker);
    list.arg("--list").arg(path);
    list.env_remove("LD_PRELOAD").stderr(Stdio::null());
    let text = list
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    named(&String::from_utf8_lossy(&text))
}

/// The paths in lines `name => path (address)`, without those of the runtime.
fn named(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let (name, path) = line.trim().split_once(" => ")?;
        let (path, _) = path.rsplit_once(" (")?;
        let file = name.rsplit('/').next().unwrap_or(name);
        let runtime = RUNTIME.iter().any(|begin| file.starts_with(begin));
        (!runtime).then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

/// The dynamic linker that a program names (`PT_INTERP`).
fn interpreter(bytes: &[u8]) -> Option<PathBuf> {
    let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
    let headers = file.elf_program_headers();
    let found = headers
        .iter()
        .find_map(|header| header.interpreter(file.endian(), bytes).ok().flatten())?;
    Some(PathBuf::from(OsStr::from_bytes(found)))
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
fn contains(bytes: &[u8]) -> bool {
    let Ok(file) = object::File::parse(bytes) else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtimes_libraries_are_left_out() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibdml.so.1 => /opt/a b/libdml.so.1 (0x00007f00)\n\
                    \tlibc.so.6 => /lib/libc.so.6 (0x00007f01)\n\tlibx.so => not found\n\
                    \t/lib64/ld-linux-x86-64.so.2 => /lib64/ld-linux-x86-64.so.2 (0x7f02)\n";
        let found = named(text);
        assert_eq!(found[0], Path::new("/opt/a b/libdml.so.1"));
        assert!(
            !found.iter().any(|path| path.ends_with("libc.so.6")),
            "{found:?}"
        );
    }

    #[test]
    fn the_linker_of_this_program_lists_its_libraries() {
        let path = std::env::current_exe().expect("a program");
        let bytes = read(&path).expect("its file");
        assert!(interpreter(&bytes).is_some_and(|linker| linker.is_absolute()));
        assert!(
            libraries(&path, &bytes)
                .iter()
                .all(|library| library.is_file())
        );
    }
}
