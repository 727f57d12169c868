//! `dray bench`.

mod args;
mod real;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use dray_bench::real::CppLibrary;
use dray_bench::{
    Api, Axes, BenchError, COMMAND, Case, Context, Finished, Layout, Modelled, Row, RowKind,
    TimeUnit, UNFINISHED, failed, positions, rows, select, write_csv, write_json,
};
use dray_output::Output;
use dray_platform::{PlatformFile, WaitMode};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(crate) use args::Args;
use args::{Form, Unit, Wait, axes};

use crate::complain::{Usage, with_causes};
use crate::configured::{self, Configured};
use crate::{print, progress};

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args::refuse(args)?;
    let unit = match args.time_unit {
        Unit::Ns => TimeUnit::Ns,
        Unit::Us => TimeUnit::Us,
        Unit::Ms => TimeUnit::Ms,
        Unit::S => TimeUnit::S,
    };
    let mut axes = axes(args)?;
    let out = match args.list {
        true => None,
        false => args.out.as_deref().map(Output::prepare).transpose()?,
    };
    if args.real || args.device.is_some() {
        let (cases, cpp) = measured(args, axes)?;
        return match args.list {
            true => list(&cases),
            false => real::run(args, unit, &cases, cpp, out.as_ref()),
        };
    }
    let platform = PlatformFile::resolve(&args.platform).map_err(|e| complaint(e.into()))?;
    let chosen = configured::profile(args.config.as_deref(), "1e1w-s");
    let Configured { profile, name } = chosen.map_err(|e| complaint(e.into()))?;
    // DML's own configurations take transfers as large as the device does.
    let widest = args.config.is_none() && name == "1e1w-s";
    let node = u16::try_from(args.node).ok();
    let mut machine = Modelled::new(platform, &profile, widest)
        .map_err(complaint)?
        .on_node(node)
        .waiting(match args.wait {
            Wait::Poll => WaitMode::Poll,
            Wait::Pause => WaitMode::Pause,
            Wait::Umwait => WaitMode::Umwait,
        })
        .lasting(args.lasting());
    axes.lacking = machine.lacks();
    let cases = select(axes.cases(), &args.filter).map_err(complaint)?;
    if args.list {
        return list(&cases);
    }
    for finding in profile.unmodelled() {
        eprintln!("warning: {finding}");
    }
    let topology = machine.platform().topology;
    let cores = u32::from(topology.sockets) * u32::from(topology.cores_per_socket);
    let mut context = Context::modelled(&machine.platform().name, &name, cores);
    add_context(args, &mut context)?;
    eprintln!(
        "Modelled time on platform {}, device {}: Time is virtual, CPU is the time that the core was busy.",
        context.dray_platform, name
    );
    if cases
        .iter()
        .any(|case| matches!(case.api, Api::C | Api::Cpp))
    {
        eprintln!(
            "note: api:c and api:cpp run the same path as api:rust: interfaces cost nothing in modelled time; --real and --device hw measure api:cpp."
        );
    }
    progress::listen();
    let finished = finished(args, &context);
    let ran = measure(args, unit, &cases, &finished, |case| machine.run(case))?;
    conclude(args, unit, context, &ran, out.as_ref())
}

/// Cases that this machine can measure, and the interface for C++ if any of them needs it. Where it cannot be
/// built, a filter that names api:cpp is an error, and others leave its cases out.
fn measured(args: &Args, axes: Axes) -> anyhow::Result<(Vec<Case>, Option<Arc<CppLibrary>>)> {
    let with_cpp = Axes {
        cpp: true,
        ..axes.clone()
    };
    let cases = select(with_cpp.cases(), &args.filter).map_err(complaint)?;
    if cases.iter().all(|case| case.api != Api::Cpp) {
        return Ok((cases, None));
    }
    match CppLibrary::build() {
        Ok(library) => Ok((cases, Some(library))),
        Err(error) if args.filter.contains("api:cpp") => Err(complaint(error.into())),
        Err(error) => {
            let error = BenchError::from(error);
            let cases = select(axes.cases(), &args.filter).map_err(complaint)?;
            eprintln!(
                "note: cases of api:cpp are left out: {}",
                with_causes(&error)
            );
            if let Some(hint) = error.hint() {
                eprintln!("hint: {hint}");
            }
            Ok((cases, None))
        }
    }
}

/// What a run gave.
struct Ran {
    rows: Vec<Row>,
    /// Cases that failed.
    failures: usize,
    /// Cases that it was stopped before.
    left: usize,
}

/// The flags that were given, as one text.
fn command() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.join(" ")
}

/// Results in the file to be written, if it is what the same command left when it was stopped.
fn finished(args: &Args, context: &Context) -> Finished {
    let (Some(path), Form::Json) = (&args.out, args.out_format) else {
        return Finished::default();
    };
    // Devices and pipes hold no results.
    let Some(text) = path
        .is_file()
        .then(|| std::fs::read_to_string(path).ok())
        .flatten()
    else {
        return Finished::default();
    };
    let mut ours = context.clone();
    ours.extra.insert(COMMAND.to_owned(), command().into());
    let finished = Finished::read(&text, &ours);
    if finished.cases() > 0 {
        eprintln!(
            "going on with {} cases of {}, which was stopped",
            finished.cases(),
            path.display()
        );
    }
    finished
}

/// Writes what a run gave; the exit code that it has.
fn conclude(
    args: &Args,
    unit: TimeUnit,
    mut context: Context,
    ran: &Ran,
    out: Option<&Output>,
) -> anyhow::Result<ExitCode> {
    if ran.left > 0 {
        let extra = &mut context.extra;
        extra.insert(UNFINISHED.to_owned(), ran.left.into());
        extra.insert(COMMAND.to_owned(), command().into());
    }
    finish(args, unit, &context, &ran.rows, out)?;
    if ran.left > 0 {
        let next = match (&args.out, args.out_format) {
            (Some(_), Form::Json) => "the same command goes on",
            _ => "--benchmark_out=FILE keeps results, and the same command goes on then",
        };
        eprintln!("stopped with {} cases left; {next}", ran.left);
        return Ok(ExitCode::from(130));
    }
    Ok(match ran.failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn list(cases: &[Case]) -> anyhow::Result<ExitCode> {
    let names: String = cases.iter().map(|case| format!("{case}\n")).collect();
    print::all(&mut io::stdout().lock(), &names)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the cases; on the console, rows appear as they come. How many cases failed.
fn measure(
    args: &Args,
    unit: TimeUnit,
    cases: &[Case],
    finished: &Finished,
    mut run: impl FnMut(&Case) -> Result<dray_bench::Timing, BenchError>,
) -> anyhow::Result<Ran> {
    let names: Vec<String> = cases.iter().map(Case::to_string).collect();
    let names = names.iter().map(String::as_str);
    let layout = Layout::new(names, args.repeated(), args.tabular, unit);
    let console = args.format == Form::Console;
    let bar = bar(cases.len());
    let out = &mut io::stdout();
    let show = |text: &str, out: &mut io::Stdout| bar.suspend(|| print::all(out, text));
    if console {
        show(&layout.head(&["Latency", "Latency/Op", "Throughput"]), out)?;
    }
    let (mut all, mut failures, mut left) = (Vec::new(), 0, 0);
    for (case, at) in cases.iter().zip(positions(cases)) {
        if progress::stopped() {
            left += 1;
            continue;
        }
        bar.set_message(case.to_string());
        let known = finished.of(case).first().map(|(timing, _)| *timing);
        let found = match known.map_or_else(|| run(case), Ok) {
            Ok(timing) => {
                let one = (timing, timing.counters(case));
                rows(case, at, &vec![one; args.repeated() as usize])
            }
            Err(error) => {
                failures += 1;
                vec![failed(case, at, with_causes(&error))]
            }
        };
        for row in found {
            if console
                && shown(
                    &row,
                    args.report_aggregates_only || args.display_aggregates_only,
                )
            {
                show(&layout.row(&row), out)?;
            }
            all.push(row);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Ran {
        rows: all,
        failures,
        left,
    })
}

/// Whether a row is printed with `aggregates_only`: aggregates, and cases that have none.
fn shown(row: &Row, aggregates_only: bool) -> bool {
    !aggregates_only || row.is_aggregate() || row.repetitions < 2
}

/// Prints what is no console table, and writes the file.
fn finish(
    args: &Args,
    unit: TimeUnit,
    context: &Context,
    rows: &[Row],
    out: Option<&Output>,
) -> anyhow::Result<()> {
    let keep = |only: bool| -> Vec<Row> {
        let kept = rows.iter().filter(|row| shown(row, only));
        kept.cloned().collect()
    };
    let text = |form: Form, rows: &[Row]| -> anyhow::Result<String> {
        Ok(match form {
            Form::Json => write_json(context, rows, unit)?,
            Form::Csv => write_csv(rows, unit),
            Form::Console => console(args, unit, rows),
        })
    };
    if args.format != Form::Console {
        let only = args.report_aggregates_only || args.display_aggregates_only;
        print::all(&mut io::stdout().lock(), &text(args.format, &keep(only))?)?;
    }
    if let Some(output) = out {
        let text = text(args.out_format, &keep(args.report_aggregates_only))?;
        output.write(text.as_bytes())?;
    }
    Ok(())
}

fn console(args: &Args, unit: TimeUnit, rows: &[Row]) -> String {
    let names: Vec<String> = rows.iter().map(|row| row.case.to_string()).collect();
    let names = names.iter().map(String::as_str);
    let layout = Layout::new(names, args.repeated(), args.tabular, unit);
    let counters = match rows
        .iter()
        .all(|row| matches!(row.kind, RowKind::Failed(_)))
    {
        true => &[][..],
        false => &["Latency", "Latency/Op", "Throughput"][..],
    };
    let lines: String = rows.iter().map(|row| layout.row(row)).collect();
    format!("{}{lines}", layout.head(counters))
}

fn bar(cases: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(cases as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} cases, {eta} left: {wide_msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

/// What was typed wrong comes with a hint and exit code 2.
pub(crate) fn complaint(error: BenchError) -> anyhow::Error {
    match error.is_bad_input() {
        true => {
            let hint = error.hint();
            Usage::error(
                error.to_string(),
                hint.unwrap_or_else(|| "--help shows what there is".to_owned()),
            )
        }
        false => error.into(),
    }
}

/// What the user adds to the head.
fn add_context(args: &Args, context: &mut Context) -> anyhow::Result<()> {
    for pair in &args.context {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Usage::error(
                format!("--benchmark_context={pair}: a key, '=' and a value are needed"),
                "--benchmark_context=machine=mine",
            )
        })?;
        context.extra.insert(key.to_owned(), value.into());
    }
    Ok(())
}
