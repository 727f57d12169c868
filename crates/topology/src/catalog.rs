//! The topologies that are built in.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::PcieError;

const FILES: [(&str, &str); 5] = [
    ("local", include_str!("../../../fabrics/local.toml")),
    ("testbed", include_str!("../../../fabrics/testbed.toml")),
    (
        "validation",
        include_str!("../../../fabrics/validation.toml"),
    ),
    ("fat-tree", include_str!("../../../fabrics/fat-tree.toml")),
    ("gpu8", include_str!("../../../fabrics/gpu8.toml")),
];

/// Longest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Names of the built-in topologies.
pub fn built_in_names() -> impl Iterator<Item = &'static str> + Clone {
    FILES.into_iter().map(|(name, _)| name)
}

/// Text of the built-in topology of this name.
pub fn built_in(name: &str) -> Option<&'static str> {
    let found = FILES.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| text)
}

/// Text and name of a file, or of a built-in topology.
pub(super) fn find(name: &str) -> Result<(String, String), PcieError> {
    let path = Path::new(name);
    if let Some(text) = built_in(name)
        && !path.exists()
    {
        return Ok((text.to_owned(), format!("fabrics/{name}.toml")));
    }
    if !path.exists() {
        return Err(PcieError::NotFound {
            name: name.to_owned(),
            what: "topology",
            hint: dray_suggest::suggest(name, built_in_names()),
        });
    }
    read(path).map(|text| (text, name.to_owned()))
}

/// Reads a text file of reasonable length.
pub(crate) fn read(path: &Path) -> Result<String, PcieError> {
    read_text(path, MAX_BYTES).map_err(|error| PcieError::Io {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

/// The text of a file of at most `max_bytes`. It reads no more than that: a device file may have no end.
///
/// # Errors
///
/// A file that cannot be read, is longer, or is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(max_bytes + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let message = format!("is longer than {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not text in UTF-8"))
}
