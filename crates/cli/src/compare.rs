//! `dray compare`.

mod attests;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use dray_bench::compare::{
    Change, CompareError, Comparison, Ratio, ResultFile, compare, parse, picture,
};
use dray_experiment::csv_table;
use dray_output::{Output, counted};

use crate::complain::Usage;
use crate::print::{self, Format};
use crate::terminal::{self, Verdict};

const EXAMPLES: &str = "\
Examples:
  dray compare old.json new.json
  dray compare old.json new.json --fail-over 5% --svg change.svg
  dray compare before.log after.log
  dray compare my-dsa.json                 dray attest's, beside the model
  dray compare my-dsa.json another.json    beside another machine's

Files are Google Benchmark's JSON or CSV (of any program), JSON or CSV of `dray
bench` and `dray micros`, logs with dsa_perf_micros's result lines, or results
of `dray attest`.
Exit codes: 0 ok, 1 something got slower than --fail-over or deviates from the
specification, 2 usage or bad input.";

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
            let (count, are) = match cases.len() {
                1 => ("1 case", "is"),
                count => (&*format!("{count} cases"), "are"),
            };
            let file = file.display();
            eprintln!("note: {count} {are} in {file} only, such as {first}");
        }
    }
    match args.format {
        Format::Table => terminal::judged(&table(&compared), verdict)?,
        Format::Csv => print::all(&mut io::stdout().lock(), &csv(&compared))?,
        Format::Json => print::all(&mut io::stdout().lock(), &json(&compared)?)?,
    }
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
            "dray bench --benchmark_out=FILE or dray attest --out FILE writes one",
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

/// What a line of the table says of its case.
fn verdict(line: &str) -> Option<Verdict> {
    match line.split_whitespace().last()? {
        "slower" => Some(Verdict::Bad),
        "faster" => Some(Verdict::Good),
        _ => None,
    }
}

/// The answer, and the cases that changed.
fn table(compared: &Comparison) -> String {
    let ratios = &compared.ratios;
    let count = |change: Change| ratios.iter().filter(|r| r.change() == change).count();
    let [faster, slower, same] = [Change::Faster, Change::Slower, Change::Same].map(count);
    let changes = match faster + slower {
        0 => "none changed".to_owned(),
        _ => format!("{slower} slower, {faster} faster, {same} the same"),
    };
    let cases = counted(ratios.len(), "case");
    let mut text = print::wrapped(&format!("{cases}: {changes}{}.\n", overall(compared)));
    let changed: Vec<&Ratio> = ratios
        .iter()
        .filter(|r| r.change() != Change::Same)
        .collect();
    if changed.is_empty() {
        return text;
    }
    let common = common_parts(ratios);
    if !common.is_empty() {
        text += &print::wrapped(&format!("Each case: {}.\n", common.join("/")));
    }
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
    for r in &changed {
        let interval = r
            .interval
            .map_or("one measurement".to_owned(), |(low, high)| {
                format!("{low:.4} to {high:.4}")
            });
        table.add_row([
            short(&r.name, &common),
            format!("{:.2}", r.old_ns),
            format!("{:.2}", r.new_ns),
            format!("{:.4}", r.ratio),
            interval,
            format!("{}/{}", r.repetitions.0, r.repetitions.1),
            word(r.change()).to_owned(),
        ]);
    }
    print::right(&mut table, 1);
    text += &format!("\n{table}\n");
    if same > 0 {
        text += &print::wrapped("\n--format csv or json lists what is the same, too.\n");
    }
    text
}

/// All ratios together, as the end of a sentence.
fn overall(compared: &Comparison) -> String {
    compared.summary().map_or(String::new(), |summary| {
        let (mean, best, worst) = (summary.mean, summary.best.ratio, summary.worst.ratio);
        format!("; new time by old time {mean:.4} (geometric mean), from {best:.4} to {worst:.4}")
    })
}

/// Parts of the names that all cases have.
fn common_parts(ratios: &[Ratio]) -> Vec<&str> {
    let has = |r: &Ratio, part: &str| r.name.split('/').any(|other| other == part);
    let parts = ratios
        .first()
        .into_iter()
        .flat_map(|r| r.name.split('/').skip(1));
    match ratios.len() {
        // The whole name says more than a part that is in it alone.
        0 | 1 => Vec::new(),
        _ => parts
            .filter(|part| ratios.iter().all(|r| has(r, part)))
            .collect(),
    }
}

/// A name without the parts that all have. The first part, the operation, stays.
fn short(name: &str, common: &[&str]) -> String {
    let mut parts = name.split('/');
    let first = parts.next().into_iter();
    let own = parts.filter(|part| !common.contains(part));
    first.chain(own).collect::<Vec<_>>().join("/")
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
