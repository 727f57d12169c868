//! Entries of TOML and CSV files.

use std::path::Path;

use dray_pcie::read_text;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::FabricError;

/// Longest file of flows or jobs, bytes: more than ten million entries.
const MAX_BYTES: u64 = 1 << 30;

pub(crate) fn text(file: &Path) -> Result<String, FabricError> {
    read_text(file, MAX_BYTES).map_err(|error| FabricError::Read {
        path: file.to_owned(),
        message: error.to_string(),
    })
}

/// Whether a file is CSV by its name.
pub(crate) fn is_csv(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

pub(crate) fn toml_file<T: DeserializeOwned>(
    text: &str,
    file: &str,
    what: &'static str,
) -> Result<T, FabricError> {
    toml::from_str(text).map_err(|error| FabricError::Syntax {
        file: file.to_owned(),
        message: error.to_string().trim_end().to_owned(),
        what,
    })
}

pub(crate) fn csv_entries<T: DeserializeOwned>(
    text: &str,
    file: &str,
    what: &'static str,
) -> Result<Vec<T>, FabricError> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let rows = reader.deserialize().map(|row| {
        row.map_err(|error| FabricError::Syntax {
            file: file.to_owned(),
            message: error.to_string(),
            what,
        })
    });
    rows.collect()
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WordsField {
    List(Vec<String>),
    Words(String),
}

/// A list of words, or in CSV words separated by blanks.
pub(crate) fn words<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    let field: Option<WordsField> = Option::deserialize(deserializer)?;
    Ok(match field {
        None => None,
        Some(WordsField::List(list)) => Some(list),
        Some(WordsField::Words(words)) if words.trim().is_empty() => None,
        Some(WordsField::Words(words)) => {
            Some(words.split_whitespace().map(str::to_owned).collect())
        }
    })
}
