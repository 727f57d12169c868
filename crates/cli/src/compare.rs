//! `dray compare`.

mod attests;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use dray_bench::compare::{Change, CompareError, Comparison, ResultFile, compare, parse, picture};

use dray_experiment::csv_table;
use dray_output::Output;

use crate::complain::Usage;
use crate::print::{self, Format};

const EXAMPLES: &str = "\
Examples:
  dray compare old.json new.json
  dray compare old.json new.json --fail-over 5% --svg change.svg
  dray compare before.log after.log
  dray compare my-dsa.json                 a result of dray attest beside the virtual device and the model
  dray compare my-dsa.json another.json    beside another machine's

Files are Google Benchmark's JSON or CSV (of any program), JSON or CSV of `dray bench` and
`dray micros`, logs with dsa_perf_micros's result lines, or results of `dray attest`.
Exit codes: 0 ok, 1 something got slower than --fail-over or deviates from the specification, 2 usage or bad input.";

/// Arguments of `dray compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The result before.
    old: PathBuf,
    /// The result after; a result of dray attest alone is set beside the virtual device and the model.
    new: Option<PathBuf>,
    /// Exit with 1 if a case takes so much more time, beyond what repetitions spread.
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    fail_over: Option<f64>,
    /// Also draw the ratios.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// How the ratios are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let first = text(&args.old)?;
    if attests::is_attest(&first) {
        return attests::run(args, &first);
    }
    let Some(new_path) = &args.new else {
        return Err(Usage::error(
            format!(
                "{} is no result of dray attest: it is compared with a second file",
                args.old.display()
            ),
            "dray compare OLD NEW",
        ));
    };
    let (old, new) = (read(&args.old, &first)?, read(new_path, &text(new_path)?)?);
    let svg = args.svg.as_deref().map(Output::prepare).transpose()?;
    let compared = compare(&old, &new).map_err(refused)?;
    if let Some(caution) = compared.caution() {
        eprintln!("warning: {caution}");
    }
    for (file, result) in [(&args.old, &old), (new_path, &new)] {
        for case in &result.failed {
            eprintln!("warning: {}: {case} ended with an error", file.display());
        }
    }
    for (file, cases) in [
        (&args.old, &compared.only_old),
        (new_path, &compared.only_new),
    ] {
        if let Some(first) = cases.first() {
            let count = cases.len();
            eprintln!(
                "note: {count} cases are in {} only, such as {first}",
                file.display()
            );
        }
    }
    let text = match args.format {
        Format::Table => table(&compared),
        Format::Csv => csv(&compared),
        Format::Json => json(&compared)?,
    };
    print::all(&mut io::stdout().lock(), &text)?;
    if let Some(output) = svg {
        let name = |path: &Path| {
            let name = path.file_name().unwrap_or(path.as_os_str());
            name.to_string_lossy().into_owned()
        };
        let svg = picture(&compared, &new, (&name(&args.old), &name(new_path)))?;
        output.write(svg.as_bytes())?;
    }
    let Some(share) = args.fail_over else {
        return Ok(ExitCode::SUCCESS);
    };
    let slower = compared
        .ratios
        .iter()
        .filter(|r| r.slower_than(share))
        .count();
    Ok(match slower {
        0 => ExitCode::SUCCESS,
        _ => {
            eprintln!(
                "error: {slower} of {} cases got slower by more than {} %",
                compared.ratios.len(),
                share * 100.0
            );
            ExitCode::FAILURE
        }
    })
}

/// Longest file of results that is read.
const MAX_BYTES: u64 = 64 << 20;

fn text(path: &Path) -> anyhow::Result<String> {
    dray_output::read_text(path, MAX_BYTES).map_err(|error| {
        Usage::error(
            format!("cannot read {}: {error}", path.display()),
            "dray bench --benchmark_out=FILE writes one",
        )
    })
}

fn read(path: &Path, text: &str) -> anyhow::Result<ResultFile> {
    parse(text, &path.display().to_string()).map_err(refused)
}

fn refused(error: CompareError) -> anyhow::Error {
    let hint = match &error {
        CompareError::Unknown { .. } => {
            "dray bench --benchmark_out=FILE, or dray micros --format json > FILE"
        }
        CompareError::NothingInCommon { .. } => {
            "both results need the same cases: the same --benchmark_filter, or the same flags"
        }
    };
    Usage::error(error.to_string(), hint)
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Faster => "faster",
        Change::Slower => "slower",
        Change::Same => "same",
    }
}

fn table(compared: &Comparison) -> String {
    // Where both are of one kind, saying so twice says nothing.
    let (old, new) = match compared.caution() {
        None => ("old ns".to_owned(), "new ns".to_owned()),
        Some(_) => {
            let [old, new] = &compared.kinds;
            (format!("old ns, {old}"), format!("new ns, {new}"))
        }
    };
    let mut table = print::plain([
        "case",
        old.as_str(),
        new.as_str(),
        "ratio",
        "95 % interval",
        "n",
        "",
    ]);
    for r in &compared.ratios {
        let interval = r
            .interval
            .map_or("one measurement".to_owned(), |(low, high)| {
                format!("{low:.4} to {high:.4}")
            });
        table.add_row([
            r.name.clone(),
            format!("{:.2}", r.old_ns),
            format!("{:.2}", r.new_ns),
            format!("{:.4}", r.ratio),
            interval,
            format!("{}/{}", r.repetitions.0, r.repetitions.1),
            word(r.change()).to_owned(),
        ]);
    }
    print::right(&mut table, 1);
    let summary = compared.summary().map_or(String::new(), |summary| {
        format!(
            "\ngeometric mean {:.4}; best {:.4} ({}); worst {:.4} ({})\n",
            summary.mean,
            summary.best.ratio,
            summary.best.name,
            summary.worst.ratio,
            summary.worst.name
        )
    });
    format!("{table}\n{summary}")
}

fn csv(compared: &Comparison) -> String {
    let head = [
        "case",
        "old_ns",
        "new_ns",
        "ratio",
        "low",
        "high",
        "old_repetitions",
        "new_repetitions",
        "change",
        "old_time",
        "new_time",
    ];
    let [old, new] = &compared.kinds;
    let rows = compared.ratios.iter().map(|r| {
        let end = |of: fn((f64, f64)) -> f64| r.interval.map(|i| of(i).to_string());
        vec![
            r.name.clone(),
            r.old_ns.to_string(),
            r.new_ns.to_string(),
            r.ratio.to_string(),
            end(|(low, _)| low).unwrap_or_default(),
            end(|(_, high)| high).unwrap_or_default(),
            r.repetitions.0.to_string(),
            r.repetitions.1.to_string(),
            word(r.change()).to_owned(),
            old.to_string(),
            new.to_string(),
        ]
    });
    csv_table(&head, rows)
}

fn json(compared: &Comparison) -> anyhow::Result<String> {
    let rows: Vec<serde_json::Value> = compared
        .ratios
        .iter()
        .map(|r| {
            serde_json::json!({
                "case": r.name,
                "old_ns": r.old_ns,
                "new_ns": r.new_ns,
                "ratio": r.ratio,
                "interval": r.interval.map(|(low, high)| [low, high]),
                "repetitions": [r.repetitions.0, r.repetitions.1],
                "change": word(r.change()),
            })
        })
        .collect();
    let document = serde_json::json!({
        "caution": compared.caution(),
        "times": compared.kinds,
        "only_old": compared.only_old,
        "only_new": compared.only_new,
        "ratios": rows,
        "summary": compared.summary().map(|summary| serde_json::json!({
            "geometric_mean": summary.mean,
            "best": { "case": summary.best.name, "ratio": summary.best.ratio },
            "worst": { "case": summary.worst.name, "ratio": summary.worst.ratio },
        })),
    });
    print::document(&document).context("the comparison as JSON")
}

/// `5%` or `5`: percent.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text.trim());
    match number.trim().parse::<f64>() {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a percentage, such as 5%".to_owned()),
    }
}
