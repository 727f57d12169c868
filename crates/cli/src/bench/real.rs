//! `dray bench --real`.

use std::collections::BTreeSet;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use dray_bench::real::{CppLibrary, Measured, Real, context, describe};
use dray_bench::{Case, Counter, Finished, Layout, TimeUnit, Timing, failed, positions, rows};
use dray_output::Output;

use super::args::{Args, Form};
use super::{Ran, add_context, bar, complaint, conclude, finished, shown};
use crate::complain::with_causes;
use crate::{print, progress};

/// Counters of a measured case; percentiles are of an iteration.
const COUNTERS: [&str; 6] = ["Latency", "Latency/Op", "Throughput", "p50", "p90", "p99"];

pub(super) fn run(
    args: &Args,
    unit: TimeUnit,
    cases: &[Case],
    cpp: Option<Arc<CppLibrary>>,
    out: Option<&Output>,
) -> anyhow::Result<ExitCode> {
    let node = u16::try_from(args.node).ok();
    let mut machine = Real::new(args.lasting(), node).map_err(complaint)?;
    let mut context = context(match args.device {
        Some(_) => "dray bench --device",
        None => "dray bench --real",
    });
    if let Some(choice) = &args.device {
        let queues = choice.queues().map_err(complaint)?;
        let queues: Vec<String> = queues.iter().map(describe).collect();
        eprintln!("Work queues: {}", queues.join(", "));
        context.dray_profile = Some(queues.join(", "));
        machine = machine.with_device(choice.clone());
    }
    if let Some(library) = cpp {
        eprintln!("{}", library.description());
        let description = library.description().into();
        context.extra.insert("dray_cpp".to_owned(), description);
        machine = machine.with_cpp(library);
    }
    context.num_cpus = machine.cpus().len() as u32;
    add_context(args, &mut context)?;
    eprintln!(
        "Measured on {}, {} CPUs; repetitions of the cases take turns.",
        context.dray_platform, context.num_cpus
    );
    for warning in &context.dray_warnings {
        eprintln!("warning: {warning}");
    }
    progress::listen();
    let finished = finished(args, &context);
    let (ran, warnings) = measure(args, unit, &machine, cases, &finished)?;
    for warning in &warnings {
        eprintln!("warning: {warning}");
    }
    context.dray_warnings.extend(warnings);
    conclude(args, unit, context, &ran, out)
}

/// Every case once, then every case again: what disturbs the machine for a while disturbs all of
/// them, and not one.
///
/// On the console a case appears with its last repetition.
fn measure(
    args: &Args,
    unit: TimeUnit,
    machine: &Real,
    cases: &[Case],
    finished: &Finished,
) -> anyhow::Result<(Ran, BTreeSet<String>)> {
    let repeated = args.repeated() as usize;
    let mut found: Vec<Vec<(Timing, Vec<Counter>)>> = cases
        .iter()
        .map(|case| finished.of(case).iter().take(repeated).cloned().collect())
        .collect();
    let mut reasons: Vec<Option<String>> = vec![None; cases.len()];
    let mut warnings = BTreeSet::new();
    let names: Vec<String> = cases.iter().map(Case::to_string).collect();
    let names = names.iter().map(String::as_str);
    let layout = Layout::new(names, args.repeated(), args.tabular, unit);
    let only = args.report_aggregates_only || args.display_aggregates_only;
    let bar = bar(cases.len() * repeated);
    let show = |text: &str| bar.suspend(|| print::all(&mut io::stdout().lock(), text));
    if args.format == Form::Console {
        show(&layout.head(&COUNTERS))?;
    }
    let positions = positions(cases);
    let of_case = |index: usize, timings: &[(Timing, Vec<Counter>)], reason: &Option<String>| {
        let (case, at) = (&cases[index], positions[index]);
        match reason {
            None => rows(case, at, timings),
            Some(reason) => vec![failed(case, at, reason.clone())],
        }
    };
    for repetition in 0..repeated {
        for (index, case) in cases.iter().enumerate() {
            if progress::stopped() {
                break;
            }
            bar.set_message(case.to_string());
            if reasons[index].is_none() && found[index].len() <= repetition {
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
                    Err(error) => reasons[index] = Some(with_causes(&error)),
                }
            }
            if args.format == Form::Console && repetition + 1 == repeated {
                let rows = of_case(index, &found[index], &reasons[index]);
                let lines = rows.iter().filter(|row| shown(row, only));
                let lines: String = lines.map(|row| layout.row(row)).collect();
                show(&lines)?;
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let is_left = |index: &usize| reasons[*index].is_none() && found[*index].len() < repeated;
    let left = (0..cases.len()).filter(is_left).count();
    let measured = (0..cases.len()).filter(|i| reasons[*i].is_some() || !found[*i].is_empty());
    let all = measured.flat_map(|index| of_case(index, &found[index], &reasons[index]));
    let ran = Ran {
        rows: all.collect(),
        failures: reasons.iter().flatten().count(),
        left,
    };
    Ok((ran, warnings))
}
