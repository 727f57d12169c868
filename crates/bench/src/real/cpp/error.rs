//! Why cases of api:cpp cannot be measured.

use std::io;

use thiserror::Error;

/// Why cases of api:cpp cannot be measured.
#[derive(Debug, Error)]
pub enum CppError {
    /// There is no pkg-config.
    #[error("api:cpp: pkg-config cannot be run")]
    NoPkgConfig(#[source] io::Error),
    /// libdray is not installed where pkg-config looks.
    #[error("api:cpp: pkg-config finds no libdray: {said}")]
    NoLibrary {
        /// What pkg-config says.
        said: String,
    },
    /// There is no C++ compiler.
    #[error("api:cpp: the C++ compiler {compiler} cannot be run")]
    NoCompiler {
        /// Its name: CXX, or c++.
        compiler: String,
        /// The system's error.
        source: io::Error,
    },
    /// The loop cannot be compiled against the libdray that is installed.
    #[error("api:cpp: {compiler} cannot compile the loop against libdray {version}: {said}")]
    Compile {
        /// The compiler.
        compiler: String,
        /// Version of the library.
        version: String,
        /// Its first error.
        said: String,
    },
    /// A file cannot be written.
    #[error("api:cpp: the loop cannot be written to a temporary directory")]
    Write(#[source] io::Error),
    /// What was compiled cannot be loaded.
    #[error("api:cpp: the loop cannot be loaded: {said}")]
    Load {
        /// What the loader says.
        said: String,
    },
    /// The interface for C++ was not built.
    #[error("api:cpp: the interface for C++ was not built")]
    NotBuilt,
    /// No case of api:cpp has this operation.
    #[error("api:cpp: there is no such case")]
    NoCall,
    /// dray.hpp has thrown when a mover was opened.
    #[error("api:cpp: dray::mover cannot be opened: {text}")]
    Open {
        /// The exception's text.
        text: String,
    },
    /// dray.hpp has thrown in the loop.
    #[error("api:cpp: dray::mover: {text}")]
    Call {
        /// The exception's text.
        text: String,
    },
}

impl CppError {
    /// What to type next.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoLibrary { .. } | Self::Compile { .. } => Some(
                "in dray's checkout: cargo xtask install --prefix DIR; then PKG_CONFIG_PATH=DIR/lib/pkgconfig",
            ),
            Self::NoPkgConfig(_) => Some("install pkg-config"),
            Self::NoCompiler { .. } => Some("install a C++ compiler, or name one in CXX"),
            _ => None,
        }
    }
}
