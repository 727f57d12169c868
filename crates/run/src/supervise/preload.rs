//! The preload library in the environment of programs that cannot load it.
//!
//! Another dynamic linker than glibc's ends a program whose `LD_PRELOAD` has a library made for glibc. The name
//! is removed from the environment on the new program's stack, before its linker runs.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use dray_interpose::program::{Obstacle, PreloadSupport, kind};

use super::opener::LIBRARY;
use super::ptrace::{self, Tid};
use crate::redirect;

const VARIABLE: &[u8] = b"LD_PRELOAD=";
/// Longest string that execve(2) takes (`MAX_ARG_STRLEN`).
const LONGEST: usize = 32 * 4096;
/// Bytes of a string that are read at a time.
const PART: usize = 1024;
/// Pointers that are read at a time.
const POINTERS: usize = 64;

/// Removes the library from the environment of a tracee that has just executed a program, if the program's
/// dynamic linker is not glibc's.
///
/// # Errors
/// The tracee has been killed.
pub(super) fn withhold(tid: Tid) -> io::Result<()> {
    let Ok(file) = CString::new(format!("/proc/{tid}/exe")) else {
        return Ok(());
    };
    if kind(&file) != Ok(PreloadSupport::Hindered(Obstacle::Linker)) {
        return Ok(());
    }
    // The stack is as the kernel has made it: number of arguments, arguments, null, environment, null (System V
    // ABI, x86-64, 3.4.1).
    let stack = ptrace::registers(tid)?.rsp;
    let mut count = [0; 8];
    if ptrace::read_memory(tid, stack, &mut count) < count.len() {
        return Ok(());
    }
    let mut at = (u64::from_le_bytes(count).saturating_add(2))
        .saturating_mul(8)
        .saturating_add(stack);
    loop {
        let mut pointers = [0; 8 * POINTERS];
        let read = ptrace::read_memory(tid, at, &mut pointers);
        for pointer in pointers[..read].chunks_exact(8) {
            let mut word = [0; 8];
            word.copy_from_slice(pointer);
            match u64::from_le_bytes(word) {
                0 => return Ok(()),
                string => shorten(tid, string),
            }
        }
        if read < pointers.len() {
            return Ok(());
        }
        at = at.saturating_add(read as u64);
    }
}

/// Removes the library from the string at this address, if it is the variable.
fn shorten(tid: Tid, address: u64) {
    let mut name = [0; VARIABLE.len()];
    if ptrace::read_memory(tid, address, &mut name) < name.len() || name != *VARIABLE {
        return;
    }
    let address = address + VARIABLE.len() as u64;
    let mut value = Vec::new();
    let length = loop {
        let mut part = [0; PART];
        let read = ptrace::read_memory(tid, address + value.len() as u64, &mut part);
        value.extend(&part[..read]);
        if let Some(length) = value.iter().position(|byte| *byte == 0) {
            break length;
        }
        if read < PART || value.len() > LONGEST {
            return;
        }
    };
    let mut shorter = without_library(&value[..length]);
    shorter.resize(length, 0);
    ptrace::write_memory(tid, address, &shorter);
}

/// A value of `LD_PRELOAD` without the library of a session.
fn without_library(value: &[u8]) -> Vec<u8> {
    // The separators of ld.so(8).
    let names = value.split(|byte| matches!(byte, b':' | b' '));
    let others = names.filter(|name| {
        let path = Path::new(OsStr::from_bytes(name));
        path.file_name() != Some(OsStr::new(LIBRARY)) && !redirect::is_library(path)
    });
    others.collect::<Vec<_>>().join(&b':')
}

/// An environment without the library.
pub(crate) fn without(environment: &[CString]) -> Vec<CString> {
    let shortened = environment.iter().map(|variable| {
        let value = variable.to_bytes().strip_prefix(VARIABLE)?;
        let mut bytes = VARIABLE.to_vec();
        bytes.extend(without_library(value));
        CString::new(bytes).ok()
    });
    let all = shortened.zip(environment);
    all.map(|(shorter, variable)| shorter.unwrap_or_else(|| variable.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_library_of_a_session_is_removed() {
        for (value, expected) in [
            ("", ""),
            ("/dev/.dray-portal.so", ""),
            ("/dev/.dray-portal.so:/x/other.so", "/x/other.so"),
            ("a.so /dev/.dray-portal.so b.so", "a.so:b.so"),
            ("/lib/libasan.so.8", "/lib/libasan.so.8"),
        ] {
            assert_eq!(without_library(value.as_bytes()), expected.as_bytes());
        }
        let environment = ["PATH=/bin", "LD_PRELOAD=/dev/.dray-portal.so:x.so"];
        let environment = environment.map(|text| CString::new(text).unwrap());
        let expected = ["PATH=/bin", "LD_PRELOAD=x.so"].map(|text| CString::new(text).unwrap());
        assert_eq!(without(&environment), expected);
    }
}
