//! `dray fidelity`.

use std::process::ExitCode;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use dray_device::Fidelity;
use dray_fidelity::{AREAS, Entry, page, sheet};
use serde::Serialize;

use crate::print;
use crate::said::Stdout;

const EXAMPLES: &str = "\
Examples:
  dray fidelity
  dray fidelity --area status --only approximate,unsupported
  dray fidelity --format json

The last line of dray run --stats says how many descriptors of a run were exact;
dray vfio prints it when its client has left.";

/// Arguments of `dray fidelity`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only these areas.
    #[arg(long, value_name = "AREA", value_delimiter = ',', value_parser = PossibleValuesParser::new(AREAS))]
    area: Vec<String>,
    /// Only what is so true.
    #[arg(long, value_name = "FIDELITY", value_delimiter = ',', value_parser = PossibleValuesParser::new(Fidelity::ALL.map(Fidelity::name)))]
    only: Vec<String>,
    /// How the sheet is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// How the sheet is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns for people.
    Table,
    /// One JSON document.
    Json,
    /// The page of the guide, with all of the sheet.
    Markdown,
}

#[derive(Serialize)]
struct Document {
    exact: usize,
    approximate: usize,
    unsupported: usize,
    entries: Vec<Entry>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let chosen = |list: &[String], word: &str| list.is_empty() || list.iter().any(|w| w == word);
    let mut entries = sheet();
    entries.retain(|e| chosen(&args.area, e.area) && chosen(&args.only, e.fidelity.name()));
    let count = |fidelity| entries.iter().filter(|e| e.fidelity == fidelity).count();
    let document = Document {
        exact: count(Fidelity::Exact),
        approximate: count(Fidelity::Approximate),
        unsupported: count(Fidelity::Unsupported),
        entries,
    };
    let text = match args.format {
        Format::Table => table(&document),
        Format::Json => print::document(&document)?,
        Format::Markdown => page(),
    };
    print::all(&mut Stdout, &text)?;
    Ok(ExitCode::SUCCESS)
}

fn table(document: &Document) -> String {
    let mut table = print::plain(["area", "name", "of", "fidelity", "missing", "test"]);
    for entry in &document.entries {
        table.add_row([
            entry.area.to_owned(),
            entry.name.clone(),
            entry.of.clone(),
            entry.fidelity.name().to_owned(),
            entry.missing.clone().unwrap_or_default(),
            entry.test.map_or(String::new(), |test| {
                format!("{}: {}", test.package, test.function)
            }),
        ]);
    }
    let (exact, approximate, unsupported) =
        (document.exact, document.approximate, document.unsupported);
    format!("{table}\n\n{exact} exact, {approximate} approximate, {unsupported} unsupported\n")
}
