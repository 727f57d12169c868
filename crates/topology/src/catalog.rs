//! The topologies that are built in.

use std::path::Path;

use dray_output::read_text;

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
