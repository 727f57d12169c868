//! `dray bench --real`.

use std::collections::BTreeSet;
use std::io;
use std::process::ExitCode;

use dray_bench::real::{Measured, Real, context};
use dray_bench::{Case, Counter, Layout, Row, TimeUnit, Timing, failed, positions, rows};
use dray_output::Output;

use super::args::{Args, Form};
use super::{add_context, bar, complaint, finish, shown};
use crate::print;

/// Counters of a measured case; percentiles are of an iteration.
const COUNTERS: [&str; 6] = ["Latency", "Latency/Op", "Throughput", "p50", "p90", "p99"];

pub(super) fn run(
    args: &Args,
    unit: TimeUnit,
    cases: &[Case],
    out: Option<&Output>,
) -> anyhow::Result<ExitCode> {
    let node = u16::try_from(args.node).ok();
    let machine = Real::new(args.lasting(), node).map_err(complaint)?;
    let mut context = context("dray bench --real");
    context.num_cpus = machine.cpus().len() as u32;
    add_context(args, &mut context)?;
    eprintln!(
        "Measured on {}, {} CPUs; repetitions of the cases take turns.",
        context.dray_platform, context.num_cpus
    );
    for warning in &context.dray_warnings {
        eprintln!("warning: {warning}");
    }
    let (all, warnings, failures) = measure(args, &machine, cases);
    for warning in &warnings {
        eprintln!("warning: {warning}");
    }
    context.dray_warnings.extend(warnings);
    if args.format == Form::Console {
        let names: Vec<String> = cases.iter().map(Case::to_string).collect();
        let names = names.iter().map(String::as_str);
        let layout = Layout::new(names, args.repeated(), args.tabular, unit);
        let only = args.report_aggregates_only || args.display_aggregates_only;
        let lines = all.iter().filter(|row| shown(row, only));
        let lines: String = lines.map(|row| layout.row(row)).collect();
        print::all(
            &mut io::stdout().lock(),
            &format!("{}{lines}", layout.head(&COUNTERS)),
        )?;
    }
    finish(args, unit, &context, &all, out)?;
    Ok(match failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Every case once, then every case again: what disturbs the machine for a while disturbs all of
/// them, and not one.
fn measure(args: &Args, machine: &Real, cases: &[Case]) -> (Vec<Row>, BTreeSet<String>, usize) {
    let mut found: Vec<Vec<(Timing, Vec<Counter>)>> = vec![Vec::new(); cases.len()];
    let mut reasons: Vec<Option<String>> = vec![None; cases.len()];
    let mut warnings = BTreeSet::new();
    let bar = bar(cases.len() * args.repeated() as usize);
    for _ in 0..args.repeated() {
        for (index, case) in cases.iter().enumerate() {
            bar.set_message(case.to_string());
            if reasons[index].is_none() {
                match machine.run(case) {
                    Ok(Measured {
                        timing,
                        percentiles,
                        warnings: doubts,
                    }) => {
                        let mut counters = timing.counters(case);
                        counters.extend(percentiles);
                        found[index].push((timing, counters));
                        warnings.extend(doubts.iter().map(|doubt| format!("{case}: {doubt}")));
                    }
                    Err(error) => reasons[index] = Some(error.to_string()),
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let mut all = Vec::new();
    for ((case, at), (timings, reason)) in cases
        .iter()
        .zip(positions(cases))
        .zip(found.iter().zip(&reasons))
    {
        match reason {
            None => all.extend(rows(case, at, timings)),
            Some(reason) => all.push(failed(case, at, reason.clone())),
        }
    }
    let failures = reasons.iter().flatten().count();
    (all, warnings, failures)
}
