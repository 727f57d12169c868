//! Where results come from.

use std::fmt;
use std::str::FromStr;

use dray_suggest::suggest;
use serde::{Deserialize, Serialize};

/// Whether a time is one of the model or of this machine. The two are never compared without saying so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Computed by the model of a platform.
    Modelled,
    /// Measured on a machine.
    Measured,
}

impl Provenance {
    const ALL: [Self; 2] = [Self::Modelled, Self::Measured];

    /// Its word in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Modelled => "modelled",
            Self::Measured => "measured",
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error says which word was meant.
impl FromStr for Provenance {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|known| known.name() == word).ok_or_else(|| {
            let hint = suggest(word, Self::ALL.map(Self::name));
            format!("`{word}` is neither modelled nor measured; {hint}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_unknown_ones_refused() {
        for known in Provenance::ALL {
            assert_eq!(known.name().parse(), Ok(known));
            let json = serde_json::to_string(&known).unwrap();
            assert_eq!(json, format!("\"{known}\""));
        }
        let error = "modeled".parse::<Provenance>().unwrap_err();
        assert!(error.ends_with("did you mean `modelled`?"), "{error}");
    }
}
