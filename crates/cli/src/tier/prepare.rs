//! `dray tier prepare`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use dray_tier::prepare::{PrepareError, apply, plan, swaps, take_back};

use crate::complain::Usage;
use crate::print;

/// Arguments of `dray tier prepare`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The node that becomes the slow tier: its cores go off.
    #[arg(long, default_value_t = 1)]
    node: u32,
    /// Turn swapping off, too. It stays off when the rest is undone.
    #[arg(long)]
    swapoff: bool,
    /// Say what would be changed, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Take back what was prepared.
    #[arg(long, conflicts_with_all = ["node", "swapoff", "dry_run"])]
    undo: bool,
    /// File that remembers what there was before.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/run/dray-tier-prepare.json"
    )]
    state: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = Path::new("/");
    if args.undo {
        let steps = take_back(root, &args.state).map_err(usage)?;
        say(&format!("{steps} settings are as they were\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.state.exists() {
        return Err(Usage::error(
            format!("{} is there: the machine is prepared", args.state.display()),
            "dray tier prepare --undo",
        ));
    }
    let steps = plan(root, args.node).map_err(usage)?;
    let changes = steps.iter().map(|step| {
        let path = step.path.display();
        format!("/{path}: {} -> {}\n", step.before, step.after)
    });
    say(&changes.collect::<String>())?;
    let swaps = swaps(root);
    if !swaps.is_empty() {
        match args.swapoff {
            true => say(&format!("swapoff {}\n", swaps.join(" ")))?,
            false => eprintln!(
                "warning: pages may be swapped to {} instead of demoted: --swapoff",
                swaps.join(", ")
            ),
        }
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    apply(root, &steps, &args.state).map_err(usage)?;
    if args.swapoff && !swaps.is_empty() {
        let status = Command::new("swapoff").args(&swaps).status()?;
        if !status.success() {
            anyhow::bail!("swapoff ended with {status}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn say(text: &str) -> std::io::Result<()> {
    print::all(&mut std::io::stdout().lock(), text)
}

fn usage(error: PrepareError) -> anyhow::Error {
    let hint = match &error {
        PrepareError::NoNode { .. } => {
            "on a machine with one node programs can be tiered all the same: dray tier --fast 256M \
             -- ./program"
        }
        PrepareError::NoControl { .. } => "it needs CONFIG_MIGRATION and CONFIG_NUMA_BALANCING",
        PrepareError::NoCores { .. } => "name the node without the cores you want: --node N",
        PrepareError::Nothing { .. } | PrepareError::NoPlan { .. } => {
            "--state names the file that the preparation wrote"
        }
        PrepareError::File { .. } => "run as root",
    };
    Usage::error(error.to_string(), hint)
}
