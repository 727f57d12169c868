//! How much of the model's agreement is mechanism and how much is fit, worked out beforehand.
//!
//! Fitting the parameters anew for each table takes minutes, so a platform's results are kept
//! beside its file, with a fingerprint of the parameters and of the published tables: evidence for
//! other numbers is not shown.

use dray_experiment::ReferenceTable;
use dray_platform::{Parameter, PlatformFile};
use serde::{Deserialize, Serialize};

use crate::break_even::{on_core, on_device};
use crate::check::CheckedTable;
use crate::coverage::{Coverage, ResultClass, coverage};
use crate::workload::Workload;
use crate::{FiguresError, Influence, LeftOut, influences, leave_out, reference_tables};

const KEPT: &[&str] = &[include_str!("../../../platforms/spr-2s.evidence.json")];

/// A table's error when the fit had not seen it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftOutError {
    /// Table.
    pub table: String,
    /// Median error of the points that count, in the table's unit of errors.
    pub median: f64,
    /// Worst error of the points that count.
    pub worst: f64,
    /// Points that miss the table's target.
    pub missed: usize,
    /// Points that count and lie within their 90 % interval; `None`: without intervals.
    pub inside: Option<usize>,
}

/// What is known of a platform's fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Parameters and tables that it was worked out for.
    pub fingerprint: String,
    /// Tables that each parameter has an influence on.
    pub influences: Vec<Influence>,
    /// Errors of the tables when left out.
    pub left_out: Vec<LeftOutError>,
    /// Published values within the intervals of a fit that had not seen their table, by class.
    pub coverage: Vec<Coverage>,
}

impl Evidence {
    /// Works it out, which takes minutes. `done` is called after each table.
    ///
    /// # Errors
    /// A point that cannot run.
    pub fn work_out(
        platform: &PlatformFile,
        done: &(dyn Fn(&str) + Sync),
    ) -> Result<Evidence, FiguresError> {
        let mut tables = reference_tables()?;
        let fingerprint = fingerprint(platform, &tables);
        tables.retain(|table| table.target.is_some());
        let influences = influences(platform, &tables)?;
        let left_out = leave_out(platform, &tables, &influences, true, done)?;
        Ok(Evidence {
            fingerprint,
            ..Evidence::of(&tables, influences, &left_out)?
        })
    }

    /// The same of tables that were left out, without a fingerprint.
    ///
    /// # Errors
    /// A point that is not well-formed.
    pub fn of(
        tables: &[ReferenceTable],
        influences: Vec<Influence>,
        left_out: &[LeftOut],
    ) -> Result<Evidence, FiguresError> {
        let predicted: Vec<&CheckedTable> = left_out.iter().map(|left| &left.table).collect();
        Ok(Evidence {
            fingerprint: String::new(),
            influences,
            left_out: left_out.iter().map(|left| summary(&left.table)).collect(),
            coverage: coverage(&predicted, tables)?,
        })
    }

    /// The coverage of results like those of a workload on the device, and on one core, as far as any
    /// were published.
    pub fn coverage_of(&self, w: &Workload) -> Vec<Coverage> {
        let classes = [on_device(w), on_core(w)].map(|w| ResultClass::of(&w));
        let known = |class: ResultClass| self.coverage.iter().find(|of| of.class == class).copied();
        classes.into_iter().flatten().filter_map(known).collect()
    }

    /// How many parameters have an influence on a table; `None`: it is in no fit.
    pub fn parameters_of(&self, table: &str) -> Option<usize> {
        self.left_out.iter().find(|left| left.table == table)?;
        let on = |influence: &&Influence| influence.tables.iter().any(|id| id == table);
        Some(self.influences.iter().filter(on).count())
    }

    /// What is kept for a platform, if it was worked out for the same parameters and tables.
    ///
    /// # Errors
    /// A published table that is not well-formed.
    pub fn kept(platform: &PlatformFile) -> Result<Option<Evidence>, FiguresError> {
        let wanted = fingerprint(platform, &reference_tables()?);
        let kept = KEPT
            .iter()
            .filter_map(|text| serde_json::from_str::<Evidence>(text).ok());
        Ok(kept
            .into_iter()
            .find(|evidence| evidence.fingerprint == wanted))
    }

    /// Parameters that have an influence on one table only, with that table.
    pub fn of_one_table(&self) -> Vec<(&str, &str)> {
        let single = self.influences.iter().filter(|i| i.tables.len() == 1);
        single
            .map(|i| (i.parameter.as_str(), i.tables[0].as_str()))
            .collect()
    }
}

fn summary(table: &CheckedTable) -> LeftOutError {
    LeftOutError {
        table: table.id.clone(),
        median: table.median(),
        worst: table.worst(),
        missed: table.missed().len(),
        inside: table.inside(),
    }
}

/// FNV-1a over all parameter values that published numbers depend on, and all published numbers that a
/// fit sees.
fn fingerprint(platform: &PlatformFile, tables: &[ReferenceTable]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut take = |text: &str| {
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    };
    // No published table has packets in it.
    let counts = |p: &&Parameter| !p.name.starts_with("vhost_");
    for parameter in platform.list().iter().filter(counts) {
        take(&format!("{}={};", parameter.name, parameter.value));
        take(&format!("{:?};", parameter.range));
    }
    // A table without a target is in no fit.
    for table in tables.iter().filter(|table| table.target.is_some()) {
        take(&format!("{}:{:?};", table.id, table.target));
        for point in &table.points {
            take(&format!("{:?}={};", point.parameters, point.value));
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_evidence_has_the_fingerprint_of_platform_and_tables() {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let kept = Evidence::kept(&platform).unwrap();
        assert!(
            kept.is_some(),
            "parameters or published tables changed, to {}: run \
             `cargo run --release -p dray-figures --example calibrate -- --keep`",
            fingerprint(&platform, &reference_tables().unwrap())
        );
        let other = platform.with("dispatch", 79.5).unwrap();
        assert_eq!(Evidence::kept(&other).unwrap(), None);
    }

    /// Sources that measured a data mover.
    const MEASURED: &[&str] = &["LightDSA", "accel-datapath reports", "accel-config dumps"];

    #[test]
    fn unconstrained_and_unmeasured_parameters_are_guesses() {
        let fitted = dray_platform::builtin("spr-2s").unwrap();
        let evidence = Evidence::kept(&fitted).unwrap().unwrap();
        let constrained = |name: &str| {
            let of = evidence.influences.iter().find(|i| i.parameter == name);
            of.is_some_and(|of| !of.tables.is_empty())
        };
        for platform in dray_platform::builtin_names() {
            let platform = dray_platform::builtin(platform).unwrap();
            for (p, base) in platform.list().iter().zip(fitted.list()) {
                let as_fitted = p.value == base.value && constrained(p.name);
                let measured = MEASURED.iter().any(|source| p.source.contains(source));
                assert!(
                    p.guess || as_fitted || measured,
                    "{}: {} = {} ({}) is not marked as a guess",
                    platform.name,
                    p.name,
                    p.value,
                    p.source
                );
            }
        }
    }
}
