//! Which results of page migration rest on guesses.

use dray_tier::modelled::MigrationParameters;

use super::program::{cost_of_a_unit, lines};
use super::{Slow, built_in, call_with, copies, persistent};
use crate::guess;
use crate::model::{Model, Window};
use crate::sensitivity::COUNTS;
use crate::workload::{What, Workload};
use crate::{FiguresError, Metric, Metrics};

/// The guesses of `platforms/migration.toml` behind the metrics of a workload, in words.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn guesses(model: &Model, w: &Workload) -> Result<Vec<(Metric, String)>, FiguresError> {
    let built_in = built_in();
    let run = |p: &MigrationParameters| -> Result<Metrics, FiguresError> {
        let pm = match w.tiers.slow {
            Some(Slow::Pm) => Some(persistent(model, p)?),
            _ => None,
        };
        let mut w = *w;
        if pm.is_some() {
            w.tiers.slow = Some(Slow::PmAsCxl);
        }
        let model = pm.as_ref().unwrap_or(model);
        let copies = |promotes| copies(model, &w, promotes, Window::Probe);
        match w.what {
            What::MigrateCall => Ok(call_with(&w, &copies(w.tiers.promotes)?, p)),
            What::Tiering => {
                let cost = cost_of_a_unit(&w, [&copies(false)?, &copies(true)?], p);
                let line = lines(model, w.tiers.slow, p)[1];
                // The program waits for lines as it waits for pages.
                let cost = cost.iter().map(|(metric, value)| match metric {
                    Metric::Accesses => (metric, value * line),
                    _ => (metric, value),
                });
                Ok(cost.fold(Metrics::default(), |all, (m, v)| all.with(m, v)))
            }
            _ => model.run_for(&w, Window::Probe),
        }
    };
    let tiers = matches!(w.what, What::MigrateCall | What::Tiering);
    if !tiers && w.tiers.slow != Some(Slow::Pm) {
        return Ok(Vec::new());
    }
    let base = run(built_in)?;
    let mut found = Vec::new();
    for (name, stated) in built_in.list().filter(|(_, stated)| stated.guess) {
        let words = guess::stated(name, stated.value, stated.unit, stated.range);
        for end in stated.range {
            let there = run(&built_in.with(name, end))?;
            for (metric, value) in base.iter() {
                let other = there.get(metric).unwrap_or(value);
                let moved = (other - value).abs() / value.abs().max(f64::MIN_POSITIVE) >= COUNTS;
                if moved && !found.contains(&(metric, words.clone())) {
                    found.push((metric, words.clone()));
                }
            }
        }
    }
    Ok(found)
}
