//! `dray-fuzz`: random inputs on one target, for a time.

use std::panic::catch_unwind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;
use dray_fuzz::{Inputs, TARGETS};

/// Tries random inputs on a target, without looking at coverage; `cargo fuzz run` does that.
#[derive(Debug, Parser)]
#[command(after_help = "Example: dray-fuzz descriptors --seconds 3600")]
struct Arguments {
    /// What to try: descriptors, registers, profiles, files, fabrics, flows,
    /// messages, operations, vhost_messages, vhost_split or vhost_packed.
    target: String,
    /// How long.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Tries this file alone, which the fuzzer has left.
    #[arg(long)]
    input: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let Some(target) = TARGETS.iter().find(|t| t.name == arguments.target) else {
        let known: Vec<_> = TARGETS.iter().map(|t| t.name).collect();
        bail!(
            "no target {}: there are {}",
            arguments.target,
            known.join(", ")
        );
    };
    if let Some(path) = &arguments.input {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        (target.run)(&bytes);
        println!("{}: no finding in {}", target.name, path.display());
        return Ok(());
    }
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut tried = 0_u64;
    for input in Inputs::new(arguments.seed, target.max_bytes) {
        if Instant::now() >= end {
            break;
        }
        if catch_unwind(|| (target.run)(&input)).is_err() {
            let path = format!("{}-{}-{tried}.input", target.name, arguments.seed);
            std::fs::write(&path, &input).with_context(|| path.clone())?;
            bail!("a finding after {tried} inputs: try it again with --input {path}");
        }
        tried += 1;
    }
    println!(
        "{}: {tried} inputs in {} s from seed {}, no finding",
        target.name, arguments.seconds, arguments.seed
    );
    Ok(())
}
