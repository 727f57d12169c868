//! `dray figures --check`.

use std::fmt::Write;
use std::io;
use std::process::ExitCode;

use dray_figures::{CheckedTable, check_csv, check_json, error_unit};
use dray_platform::PlatformFile;

use crate::print::{self, Format};

pub(crate) fn run(
    platform: &PlatformFile,
    format: Format,
    strict: bool,
) -> anyhow::Result<ExitCode> {
    let tables = dray_figures::reference_tables()?;
    let checked = dray_figures::check(platform, &tables)?;
    let parameters = platform.list().len();
    let text = match format {
        Format::Json => check_json(&checked, &platform.name, parameters),
        Format::Csv => check_csv(&checked),
        Format::Table => tables_text(&checked, platform)?,
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

fn tables_text(checked: &[CheckedTable], platform: &PlatformFile) -> anyhow::Result<String> {
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
    let mut rows = print::plain(["table", "points", "median", "worst", "target", "verdict"]);
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
        rows.add_row([
            &table.id,
            &points,
            &error(table.median()),
            &error(table.worst()),
            &target,
            &verdict,
        ]);
    }
    print::right(&mut rows, 1);
    writeln!(text, "{rows}\n")?;
    writeln!(
        text,
        "{} parameters on platform {}; no table is an input of a result.",
        platform.list().len(),
        platform.name
    )?;
    Ok(text)
}
