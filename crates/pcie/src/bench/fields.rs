//! Values of an experiment's streams, which may name a swept parameter or a variant's word.

use std::collections::BTreeMap;

use dray_experiment::parse_bytes;
use serde::Deserialize;

/// A number, or text: a size such as `4k`, a word, or `$name`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Field {
    Number(u64),
    Text(String),
}

/// What `$name` stands for at one point.
pub(crate) type Words = BTreeMap<String, String>;

impl Field {
    /// The text, with `$name` replaced.
    pub(crate) fn text(&self, words: &Words) -> Result<String, String> {
        match self {
            Self::Number(number) => Ok(number.to_string()),
            Self::Text(text) => match text.strip_prefix('$') {
                None => Ok(text.clone()),
                Some(name) => words.get(name).cloned().ok_or_else(|| {
                    format!("`{text}` names neither a swept parameter nor a word of every variant")
                }),
            },
        }
    }

    /// The number, with `$name` replaced.
    pub(crate) fn number(&self, words: &Words) -> Result<u64, String> {
        let text = self.text(words)?;
        parse_bytes(&text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_fields_are_replaced_by_their_values() {
        let words = Words::from([("size".to_owned(), "4k".to_owned())]);
        assert_eq!(Field::Text("$size".to_owned()).number(&words), Ok(4096));
        assert_eq!(Field::Number(7).number(&words), Ok(7));
        let error = Field::Text("$other".to_owned()).number(&words).unwrap_err();
        assert!(error.contains("$other"));
        assert!(Field::Text("A".to_owned()).number(&words).is_err());
    }
}
