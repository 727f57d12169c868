//! Two results side by side.

mod picture;
mod ratio;
mod read;

pub use picture::picture;
pub use ratio::{Change, Ratio};
pub use read::{CompareError, Measurement, ResultFile, parse};

/// Cases of two results, the most changed first.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Cases that both have.
    pub ratios: Vec<Ratio>,
    /// Cases that only the first has.
    pub only_old: Vec<String>,
    /// Cases that only the second has.
    pub only_new: Vec<String>,
    /// Kinds of both results' times: `modelled` or `measured`. They stand over every table.
    pub kinds: [String; 2],
}

impl Comparison {
    /// Why the two should not be taken for the same kind of number.
    pub fn caution(&self) -> Option<String> {
        let [old, new] = &self.kinds;
        (old != new).then(|| {
            format!(
                "the first result is {old}, the second {new}: a ratio of the two is not a change"
            )
        })
    }
}

/// Matches the cases of two results by name.
///
/// # Errors
/// [`CompareError::NothingInCommon`] if no case is in both.
pub fn compare(old: &ResultFile, new: &ResultFile) -> Result<Comparison, CompareError> {
    let find = |file: &ResultFile, name: &str| -> Option<Measurement> {
        file.cases.iter().find(|case| case.name == name).cloned()
    };
    let mut comparison = Comparison {
        ratios: Vec::new(),
        only_old: Vec::new(),
        only_new: Vec::new(),
        // Other people's tools measure.
        kinds: [old, new].map(|file| file.time.clone().unwrap_or("measured".to_owned())),
    };
    for case in &old.cases {
        match find(new, &case.name) {
            Some(other) => comparison.ratios.push(Ratio::of(case, &other)),
            None => comparison.only_old.push(case.name.clone()),
        }
    }
    for case in &new.cases {
        if find(old, &case.name).is_none() {
            comparison.only_new.push(case.name.clone());
        }
    }
    if comparison.ratios.is_empty() {
        return Err(CompareError::NothingInCommon {
            old: old.cases.first().map(|case| case.name.clone()),
            new: new.cases.first().map(|case| case.name.clone()),
        });
    }
    comparison
        .ratios
        .sort_by(|a, b| b.size().total_cmp(&a.size()).then(a.name.cmp(&b.name)));
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(time: Option<&str>, cases: &[(&str, &[f64])]) -> ResultFile {
        ResultFile {
            time: time.map(str::to_owned),
            cases: cases
                .iter()
                .map(|(name, ns)| Measurement {
                    name: (*name).to_owned(),
                    ns: ns.to_vec(),
                })
                .collect(),
            failed: Vec::new(),
        }
    }

    #[test]
    fn the_most_changed_comes_first_whichever_way_it_went() {
        let old = file(None, &[("a", &[100.0]), ("b", &[100.0]), ("c", &[100.0])]);
        let new = file(None, &[("a", &[101.0]), ("b", &[40.0]), ("c", &[200.0])]);
        let compared = compare(&old, &new).unwrap();
        let names: Vec<&str> = compared.ratios.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "a"]);
        assert_eq!(compared.caution(), None);
    }

    #[test]
    fn what_is_not_in_both_is_told() {
        let old = file(None, &[("a", &[1.0]), ("gone", &[1.0])]);
        let new = file(Some("modelled"), &[("a", &[1.0]), ("come", &[1.0])]);
        let compared = compare(&old, &new).unwrap();
        assert_eq!(compared.only_old, ["gone"]);
        assert_eq!(compared.only_new, ["come"]);
        assert!(compared.caution().unwrap().contains("modelled"));
        let other = file(None, &[("x", &[1.0])]);
        assert!(compare(&old, &other).is_err());
    }
}
