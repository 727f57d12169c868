//! `dray figures --check`.

use std::fmt::Write;
use std::io;
use std::process::ExitCode;

use dray_figures::{CheckedTable, LeftOut, Progress, check_csv, check_json, error_unit};
use dray_platform::PlatformFile;

use crate::print::{self, Format};
use crate::progress::Bar;

pub(crate) fn run(
    platform: &PlatformFile,
    format: Format,
    leave_out: bool,
    strict: bool,
) -> anyhow::Result<ExitCode> {
    let tables = dray_figures::reference_tables()?;
    let checked = dray_figures::check(platform, &tables)?;
    let parameters = platform.list().len();
    let left_out = match leave_out {
        true => {
            let bar = Bar::tables(checked.iter().filter(|t| t.target.is_some()).count());
            let influences = dray_figures::influences(platform, &tables)?;
            let left = dray_figures::leave_out(platform, &tables, &influences, &|_| bar.done());
            bar.clear();
            left?
        }
        false => Vec::new(),
    };
    let text = match format {
        Format::Json => check_json(&checked, &left_out, &platform.name, parameters),
        Format::Csv => check_csv(&checked),
        Format::Table => tables_text(&checked, &left_out, platform)?,
    };
    print::all(&mut io::stdout().lock(), &text)?;
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
    left_out: &[LeftOut],
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
    let mut head = vec!["table", "points", "median", "worst", "target", "verdict"];
    if !left_out.is_empty() {
        head.extend(["left out: median", "worst"]);
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
        let points = table.errors().len().to_string();
        let mut row = vec![
            table.id.clone(),
            points,
            error(table.median()),
            error(table.worst()),
            target,
            verdict,
        ];
        if let Some(left) = left_out.iter().find(|left| left.table.id == table.id) {
            row.extend([error(left.table.median()), error(left.table.worst())]);
        }
        rows.add_row(row);
    }
    print::right(&mut rows, 1);
    writeln!(text, "{rows}\n")?;
    writeln!(
        text,
        "{} parameters on platform {}, one set for all tables.",
        platform.list().len(),
        platform.name
    )?;
    if !left_out.is_empty() {
        writeln!(
            text,
            "Left out: errors of a table under parameters fitted to all other tables, from the middle of their ranges."
        )?;
    }
    Ok(text)
}
