//! `dray tier status`.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use dray_tier::Session;
use dray_tier::launch::sessions;

use super::{metrics, table};
use crate::complain::Usage;
use crate::print::{self, TextOrJson};

/// Arguments of `dray tier status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print once, also on a terminal.
    #[arg(long)]
    once: bool,
}

/// Ways to print a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    /// OpenMetrics, of all sessions of this user or of the one that is named.
    Openmetrics,
}

/// Which session.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// Number of the `dray tier` process; without it, the only one.
    #[arg(long, value_name = "PID")]
    session: Option<u32>,
}

impl Which {
    /// Opens it.
    pub(super) fn open(&self) -> anyhow::Result<Session> {
        let all = sessions();
        let numbers: Vec<String> = all.iter().map(|(number, _)| number.to_string()).collect();
        let found = match self.session {
            Some(wanted) => all.iter().find(|(number, _)| *number == wanted),
            None if all.len() > 1 => {
                return Err(Usage::error(
                    format!("there are several sessions: {}", numbers.join(", ")),
                    format!("name one: --session {}", numbers[0]),
                ));
            }
            None => all.first(),
        };
        let (number, path) = found.ok_or_else(|| {
            Usage::error(
                "there is no such session of this user",
                "start one: dray tier --fast 256M -- ./program",
            )
        })?;
        Session::open(path).map_err(|error| {
            Usage::error(
                format!("session {number} cannot be read: {error}"),
                "it may be another version's: use the dray that started it",
            )
        })
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let format = match args.format {
        Format::Text => TextOrJson::Text,
        Format::Json => TextOrJson::Json,
        Format::Openmetrics => return all(args),
    };
    let session = args.which.open()?;
    let live = std::io::stdout().is_terminal() && !args.once && format == TextOrJson::Text;
    loop {
        let text = table::print(&dray_tier::stats::snapshot(&session), format)?;
        let out = &mut std::io::stdout().lock();
        if live {
            // The cursor goes home, and the rest of the screen is erased.
            print::raw(out, "\x1b[H\x1b[J")?;
        }
        print::all(out, &text)?;
        if !live || args.which.open().is_err() {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// A scrape of no session is one of no metrics.
fn all(args: &Args) -> anyhow::Result<ExitCode> {
    let found = match args.which.session {
        Some(number) => vec![(number, args.which.open()?)],
        // One that ends meanwhile is none.
        None => sessions()
            .into_iter()
            .filter_map(|(number, path)| Some((number, Session::open(&path).ok()?)))
            .collect(),
    };
    let snapshots: Vec<_> = found
        .iter()
        .map(|(number, session)| (*number, dray_tier::stats::snapshot(session)))
        .collect();
    print::all(&mut std::io::stdout().lock(), &metrics::text(&snapshots))?;
    Ok(ExitCode::SUCCESS)
}
