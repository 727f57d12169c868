//! Compiles the loop, and loads it.

use std::env;
use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::fs;
use std::mem::transmute_copy;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::sync::Arc;

use super::{Close, CppError, Open, Run};

/// The loop. It is compiled where it is measured: what is inline in dray.hpp is part of the program.
const SOURCE: &str = include_str!("loop.cpp");

/// The loop, loaded for as long as the process lives.
pub struct Library {
    pub(super) open: Open,
    pub(super) run: Run,
    pub(super) close: Close,
    description: String,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Library").field(&self.description).finish()
    }
}

/// What pkg-config says of libdray.
fn pkg_config(arguments: &[&str]) -> Result<Vec<String>, CppError> {
    let output = Command::new("pkg-config")
        .arg("--print-errors")
        .args(arguments)
        .arg("dray")
        .output()
        .map_err(CppError::NoPkgConfig)?;
    let words = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        text.split_whitespace().map(str::to_owned).collect()
    };
    match output.status.success() {
        true => Ok(words(&output.stdout)),
        false => Err(CppError::NoLibrary {
            said: words(&output.stderr).join(" "),
        }),
    }
}

impl Library {
    /// Compiles the loop with `CXX`, or else c++, against the libdray that pkg-config finds, and loads it.
    ///
    /// # Errors
    /// There is no compiler or no libdray, or they do not fit.
    pub fn build() -> Result<Arc<Library>, CppError> {
        let version = pkg_config(&["--modversion"])?.join(" ");
        let flags = pkg_config(&["--cflags", "--libs"])?;
        let directory = pkg_config(&["--variable=libdir"])?.join(" ");
        let compiler = env::var("CXX").ok().filter(|name| !name.is_empty());
        let compiler = compiler.unwrap_or_else(|| "c++".to_owned());
        let place = tempfile::tempdir().map_err(CppError::Write)?;
        let (source, object) = (place.path().join("loop.cpp"), place.path().join("loop.so"));
        fs::write(&source, SOURCE).map_err(CppError::Write)?;
        // A compiler may have arguments: `ccache g++`.
        let mut words = compiler.split_whitespace();
        let output = Command::new(words.next().unwrap_or("c++"))
            .args(words)
            .args(["-std=c++17", "-O2", "-fPIC", "-shared", "-o"])
            .arg(&object)
            .arg(&source)
            .args(flags)
            .arg(format!("-Wl,-rpath,{directory}"))
            .output();
        let output = output.map_err(|source| CppError::NoCompiler {
            compiler: compiler.clone(),
            source,
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| line.contains("error"));
            return Err(CppError::Compile {
                compiler,
                version,
                said: first.unwrap_or(said.trim()).to_owned(),
            });
        }
        let mut library = load(&object)?;
        library.description = format!(
            "api:cpp is dray.hpp of libdray {version} in {directory}, compiled by {compiler} -O2"
        );
        Ok(Arc::new(library))
    }

    /// What is measured, for readers of the numbers.
    pub fn description(&self) -> &str {
        &self.description
    }
}

fn load(object: &std::path::Path) -> Result<Library, CppError> {
    let path = CString::new(object.as_os_str().as_bytes()).map_err(|error| CppError::Load {
        said: error.to_string(),
    })?;
    // SAFETY: a string; what is loaded is what was compiled a moment ago.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(CppError::Load { said: last_error() });
    }
    Ok(Library {
        // SAFETY: these are the types that loop.cpp gives the functions of these names.
        open: unsafe { function(handle, c"dray_bench_open") }?,
        // SAFETY: as above.
        run: unsafe { function(handle, c"dray_bench_run") }?,
        // SAFETY: as above.
        close: unsafe { function(handle, c"dray_bench_close") }?,
        description: String::new(),
    })
}

/// # Safety
/// The function of this name must have the type `F`.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Result<F, CppError> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a library that is loaded, and a string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    match address.is_null() {
        true => Err(CppError::Load { said: last_error() }),
        // SAFETY: a function of this type, by the caller's promise.
        false => Ok(unsafe { transmute_copy::<*mut c_void, F>(&address) }),
    }
}

/// Of the loader.
fn last_error() -> String {
    // SAFETY: it gives the thread's own text.
    let text = unsafe { libc::dlerror() };
    match text.is_null() {
        true => String::new(),
        // SAFETY: a string that is valid until the thread's next call of the loader.
        false => unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
    }
}
