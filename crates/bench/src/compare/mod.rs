//! Two results side by side.

mod case;
mod picture;
mod ratio;
mod read;

use dray_experiment::Provenance;

use case::measured;
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
    /// Where both results' times come from. It stands over every table.
    pub kinds: [Provenance; 2],
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

/// A comparison in three numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareSummary<'a> {
    /// Geometric mean of the ratios.
    pub mean: f64,
    /// The case with the smallest ratio: it got fastest.
    pub best: &'a Ratio,
    /// The case with the largest ratio: it got slowest.
    pub worst: &'a Ratio,
}

impl Comparison {
    /// All ratios together. `None` if there are none; a ratio that is not a positive number is
    /// left out of the mean.
    pub fn summary(&self) -> Option<CompareSummary<'_>> {
        let order = |a: &&Ratio, b: &&Ratio| a.ratio.total_cmp(&b.ratio);
        let logs = self.ratios.iter().map(|r| r.ratio.ln());
        let logs: Vec<f64> = logs.filter(|log| log.is_finite()).collect();
        Some(CompareSummary {
            mean: (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp(),
            best: self.ratios.iter().min_by(order)?,
            worst: self.ratios.iter().max_by(order)?,
        })
    }
}

/// Matches the cases of two results by name; command lines of dsa_perf_micros and `dray micros` by what they measure.
///
/// # Errors
/// [`CompareError::NothingInCommon`] if no case is in both.
pub fn compare(old: &ResultFile, new: &ResultFile) -> Result<Comparison, CompareError> {
    let find = |file: &ResultFile, name: &str| -> Option<Measurement> {
        let named = file.cases.iter().find(|case| case.name == name);
        let wanted = measured(name);
        let alike = |case: &&Measurement| wanted.is_some() && measured(&case.name) == wanted;
        named.or_else(|| file.cases.iter().find(alike)).cloned()
    };
    let mut comparison = Comparison {
        ratios: Vec::new(),
        only_old: Vec::new(),
        only_new: Vec::new(),
        // Other people's tools measure.
        kinds: [old, new].map(|file| file.time.unwrap_or(Provenance::Measured)),
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

    fn file(time: Option<Provenance>, cases: &[(&str, &[f64])]) -> ResultFile {
        ResultFile {
            time,
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
    fn cases_are_sorted_by_the_size_of_their_change() {
        let old = file(None, &[("a", &[100.0]), ("b", &[100.0]), ("c", &[100.0])]);
        let new = file(None, &[("a", &[101.0]), ("b", &[40.0]), ("c", &[200.0])]);
        let compared = compare(&old, &new).unwrap();
        let names: Vec<&str> = compared.ratios.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "a"]);
        assert_eq!(compared.caution(), None);
    }

    #[test]
    fn a_summary_has_geometric_mean_best_and_worst() {
        let old = file(None, &[("a", &[100.0]), ("b", &[100.0]), ("c", &[100.0])]);
        let new = file(None, &[("a", &[100.0]), ("b", &[50.0]), ("c", &[400.0])]);
        let compared = compare(&old, &new).unwrap();
        let summary = compared.summary().unwrap();
        assert!((summary.mean - 2f64.powf(1.0 / 3.0)).abs() < 1e-12);
        assert_eq!(
            (summary.best.name.as_str(), summary.worst.name.as_str()),
            ("b", "c")
        );
    }

    #[test]
    fn cases_that_only_one_file_has_are_listed() {
        let old = file(None, &[("a", &[1.0]), ("gone", &[1.0])]);
        let new = file(
            Some(Provenance::Modelled),
            &[("a", &[1.0]), ("come", &[1.0])],
        );
        let compared = compare(&old, &new).unwrap();
        assert_eq!(compared.only_old, ["gone"]);
        assert_eq!(compared.only_new, ["come"]);
        assert!(compared.caution().unwrap().contains("modelled"));
        let other = file(None, &[("x", &[1.0])]);
        assert!(compare(&old, &other).is_err());
    }
}
