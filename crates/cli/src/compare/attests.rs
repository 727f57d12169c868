//! Results of `dray attest`, side by side.

use std::fmt::Write;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use dray_attest::{Attest, AttestComparison, Difference, MAX_BYTES};
use dray_experiment::csv_table;
use serde::Deserialize;

use super::Args;
use crate::complain::Usage;
use crate::print::{self, Format};
use crate::progress;

/// Points that are printed; JSON has all.
const MOST_POINTS: usize = 12;

/// Whether a text says that it is such a result.
pub(super) fn is_attest(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        document: String,
    }
    text.len() <= MAX_BYTES
        && serde_json::from_str::<Kind>(text).is_ok_and(|kind| kind.document == Attest::DOCUMENT)
}

fn parse(path: &Path, text: &str) -> anyhow::Result<Attest> {
    #[derive(Deserialize)]
    struct Document {
        schema: u32,
        #[serde(flatten)]
        attest: Attest,
    }
    let bad = |why: String| {
        let hint = "dray attest --out FILE writes one";
        Usage::error(
            format!("{} is no result of dray attest: {why}", path.display()),
            hint,
        )
    };
    if !is_attest(text) {
        return Err(bad(format!(
            "it has no \"document\": {:?}",
            Attest::DOCUMENT
        )));
    }
    let document: Document = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    if document.schema != print::SCHEMA {
        let (found, known) = (document.schema, print::SCHEMA);
        return Err(bad(format!(
            "schema {found} is not {known}, which this version reads"
        )));
    }
    Ok(document.attest)
}

/// Compares the first with the second, or with the virtual device and the model.
pub(super) fn run(args: &Args, first: &str) -> anyhow::Result<ExitCode> {
    for (given, flag) in [
        (args.fail_over.is_some(), "--fail-over"),
        (args.svg.is_some(), "--svg"),
    ] {
        if given {
            let message = format!("{flag} is for benchmarks, not for results of dray attest");
            return Err(Usage::error(message, "dray compare A.json B.json"));
        }
    }
    let a = parse(&args.old, first)?;
    let name = |path: &Path| path.display().to_string();
    let compared = match &args.new {
        Some(path) => {
            let b = parse(path, &super::text(path)?)?;
            AttestComparison::of([name(&args.old), name(path)], &a, &b)
        }
        None => {
            progress::listen();
            let compared =
                AttestComparison::with_virtual(name(&args.old), &a, &|_| !progress::stopped());
            compared.map_err(|error| Usage::error(error.to_string(), "dray attest --out FILE"))?
        }
    };
    let text = match args.format {
        Format::Table => table(&compared)?,
        Format::Json => print::document(&compared).context("the comparison as JSON")?,
        Format::Csv => csv(&compared),
    };
    print::all(&mut io::stdout().lock(), &text)?;
    Ok(match compared.deviates() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn table(compared: &AttestComparison) -> anyhow::Result<String> {
    let mut text = format!("a: {}\nb: {}\n", compared.of[0], compared.of[1]);
    section(&mut text, "The queues are not the same", &compared.queues)?;
    section(&mut text, "Rules of the specification", &compared.rows)?;
    section(&mut text, "Order", &compared.litmus)?;
    section(
        &mut text,
        "Parameters of the model, 90 % intervals",
        &compared.parameters,
    )?;
    let (different, both) = (compared.points.len(), compared.points_in_both);
    if both > 0 {
        writeln!(text, "\nTimes: {different} of {both} points differ")?;
        let mut rows = print::plain(["figure", "point", "a, ns", "b, ns", "b/a"]);
        for point in compared.points.iter().take(MOST_POINTS) {
            rows.add_row([
                point.figure.clone(),
                point.point.clone(),
                format!("{:.1}", point.a_ns),
                format!("{:.1}", point.b_ns),
                format!("{:.3}", point.ratio),
            ]);
        }
        print::right(&mut rows, 2);
        if different > 0 {
            writeln!(text, "{rows}")?;
        }
        if different > MOST_POINTS {
            writeln!(
                text,
                "and {} more; --format json has all",
                different - MOST_POINTS
            )?;
        }
    }
    if compared.emulated {
        writeln!(
            text,
            "\nTimes are not compared: those of a virtual device are the emulation's."
        )?;
    }
    let nothing = compared.rows.is_empty() && compared.litmus.is_empty();
    if nothing {
        writeln!(
            text,
            "\nNo rule of the specification and no case of order that both tried differs."
        )?;
    }
    Ok(text)
}

fn section(text: &mut String, title: &str, differences: &[Difference]) -> std::fmt::Result {
    if differences.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n{title}:")?;
    for difference in differences {
        let of = difference.section.as_ref();
        let of = of.map_or(String::new(), |section| format!(" (spec {section})"));
        let word = match difference.deviates {
            true => "deviates: ",
            false => "",
        };
        writeln!(text, "  {word}{}{of}", difference.what)?;
        writeln!(text, "    a: {}\n    b: {}", difference.a, difference.b)?;
    }
    Ok(())
}

fn csv(compared: &AttestComparison) -> String {
    let of = |kind: &'static str, list: &[Difference]| {
        let row = move |d: &Difference| {
            let section = d.section.clone().unwrap_or_default();
            let deviates = d.deviates.to_string();
            vec![
                kind.to_owned(),
                d.what.clone(),
                section,
                deviates,
                d.a.clone(),
                d.b.clone(),
            ]
        };
        list.iter().map(row).collect::<Vec<_>>()
    };
    let points = compared.points.iter().map(|point| {
        let what = format!("{} {}", point.figure, point.point);
        let (a, b) = (point.a_ns.to_string(), point.b_ns.to_string());
        vec![
            "period_ns".to_owned(),
            what,
            String::new(),
            false.to_string(),
            a,
            b,
        ]
    });
    let all = [
        of("queue", &compared.queues),
        of("rule", &compared.rows),
        of("order", &compared.litmus),
        of("parameter", &compared.parameters),
        points.collect(),
    ];
    let head = ["kind", "what", "section", "deviates", "a", "b"];
    csv_table(&head, all.into_iter().flatten())
}
