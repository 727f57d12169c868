//! `dray figures --check`.

use std::fmt::Write;
use std::process::ExitCode;

use dray_figures::{
    CheckedTable, Coverage, Evidence, Progress, check_csv, check_json, error_unit, leave_out,
};
use dray_platform::PlatformFile;

use crate::print::{self, Format};
use crate::progress::Bar;
use crate::said::Stdout;

/// The fits that are made for a check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fits {
    /// Errors of tables that the fit has not seen, worked out anew.
    pub(crate) leave_out: bool,
    /// The same, with intervals.
    pub(crate) coverage: bool,
}

pub(crate) fn run(
    platform: &PlatformFile,
    format: Format,
    fits: Fits,
    strict: bool,
) -> anyhow::Result<ExitCode> {
    let tables = dray_figures::reference_tables()?;
    let checked = dray_figures::check(platform, &tables)?;
    let parameters = platform.list().len();
    let (left_out, evidence) = match fits.leave_out || fits.coverage {
        true => {
            let bar = Bar::tables(checked.iter().filter(|t| t.target.is_some()).count());
            let influences = dray_figures::influences(platform, &tables)?;
            let done = |_: &str| bar.done();
            let left = leave_out(platform, &tables, &influences, fits.coverage, &done);
            bar.clear();
            let left = left?;
            let evidence = Evidence::of(&tables, influences, &left)?;
            (left, Some(evidence))
        }
        false => (Vec::new(), Evidence::kept(platform)?),
    };
    let text = match format {
        Format::Json => check_json(
            &checked,
            &left_out,
            evidence.as_ref(),
            &platform.name,
            parameters,
        ),
        Format::Csv => check_csv(&checked),
        Format::Table => tables_text(&checked, evidence.as_ref(), fits, platform)?,
    };
    print::all(&mut Stdout, &text)?;
    let missed = checked
        .iter()
        .filter(|table| !table.missed().is_empty())
        .count();
    if strict && missed > 0 {
        eprintln!("error: {missed} tables miss their target");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn tables_text(
    checked: &[CheckedTable],
    evidence: Option<&Evidence>,
    fits: Fits,
    platform: &PlatformFile,
) -> anyhow::Result<String> {
    let mut text = String::new();
    for table in checked {
        writeln!(text, "{}: {}", table.id, table.title)?;
        writeln!(text, "  measured with: {}", table.configuration)?;
        let machine = match table.overrides.is_empty() {
            true => String::new(),
            false => {
                let list: Vec<String> = table
                    .overrides
                    .iter()
                    .map(|(n, v)| format!("{n} = {v}"))
                    .collect();
                format!(", with {}", list.join(", "))
            }
        };
        writeln!(
            text,
            "  source: {}; platform {}{machine}",
            table.source, table.platform
        )?;
        let mut rows = print::plain(["point", "model", "published", "unit", "error", ""]);
        for p in &table.points {
            let over = table.target.is_some_and(|target| p.error.abs() > target);
            let mark = match (p.checked, over) {
                (false, _) => "not counted",
                (true, true) => "misses the target",
                (true, false) => "",
            };
            rows.add_row([
                p.label.clone(),
                format!("{:.3}", p.model),
                format!("{:.3}", p.published),
                table.unit.clone(),
                format!("{:+.1} {}", p.error, error_unit(table)),
                mark.to_owned(),
            ]);
        }
        print::right(&mut rows, 1);
        writeln!(text, "{rows}\n")?;
    }
    text += &overview(checked, evidence, fits);
    writeln!(
        text,
        "{} parameters on platform {}, one set for all tables.",
        platform.list().len(),
        platform.name
    )?;
    if let Some(evidence) = evidence {
        text += "fitted: parameters that move the table by more than 0.5 % within their ranges, all fitted; a table with fewer points says nothing for the model.\n\
            left out: errors of the table under parameters fitted to all other tables, from the middle of their ranges.\n";
        if fits.coverage {
            text += "inside: published values within the 90 % interval of the model so fitted.\n";
            writeln!(text, "\n{}", classes(&evidence.coverage))?;
        }
    }
    Ok(text)
}

/// One row for each table.
fn overview(checked: &[CheckedTable], evidence: Option<&Evidence>, fits: Fits) -> String {
    let mut head = vec!["table", "points", "median", "worst", "target", "verdict"];
    if evidence.is_some() {
        head.extend(["fitted", "left out: median", "worst"]);
    }
    if fits.coverage {
        head.push("inside");
    }
    let mut rows = print::plain(head);
    for table in checked {
        let unit = error_unit(table);
        let error = |value: f64| match table.errors().is_empty() {
            true => String::new(),
            false => format!("{value:.1} {unit}"),
        };
        let missed = table.missed().len();
        let (target, verdict) = match table.target {
            None => ("none".to_owned(), String::new()),
            Some(target) if missed == 0 => (format!("{target} {unit}"), "met".to_owned()),
            Some(target) => (format!("{target} {unit}"), format!("missed by {missed}")),
        };
        let points = table.errors().len();
        let mut row = vec![
            table.id.clone(),
            points.to_string(),
            error(table.median()),
            error(table.worst()),
            target,
            verdict,
        ];
        let left = evidence.and_then(|e| e.left_out.iter().find(|left| left.table == table.id));
        if let (Some(evidence), Some(left)) = (evidence, left) {
            let fitted = evidence.parameters_of(&table.id).unwrap_or_default();
            row.extend([fitted.to_string(), error(left.median), error(left.worst)]);
            if let Some(inside) = left.inside.filter(|_| fits.coverage) {
                row.push(format!("{inside} of {points}"));
            }
        }
        rows.add_row(row);
    }
    print::right(&mut rows, 1);
    format!("{rows}\n\n")
}

/// One row for each class of results.
fn classes(coverage: &[Coverage]) -> String {
    let mut rows = print::plain(["class", "points", "inside", "share", "median width"]);
    for of in coverage {
        rows.add_row([
            of.class.words().to_owned(),
            of.points.to_string(),
            of.inside.to_string(),
            format!("{:.0} %", 100.0 * of.inside as f64 / of.points as f64),
            format!("{:.2} times", of.width),
        ]);
    }
    print::right(&mut rows, 1);
    rows.to_string()
}
