//! `dray-fuzz`: random inputs on one target or all, for a time.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;
use dray_fuzz::{Inputs, TARGETS, Target};

/// Tries random inputs on a target, without looking at coverage; `cargo fuzz run` does that.
#[derive(Debug, Parser)]
#[command(after_help = "Example: dray-fuzz descriptors --seconds 3600")]
struct Arguments {
    /// What to try: descriptors, registers, profiles, files, recordings, fabrics, flows,
    /// messages, operations, vhost_messages, vhost_split or vhost_packed.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    target: Option<String>,
    /// All targets, one after the other.
    #[arg(long)]
    all: bool,
    /// How long, for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Where the random numbers start: a number, or `random`.
    #[arg(long, default_value = "1", value_parser = seed)]
    seed: u64,
    /// Where an input is kept that is a finding.
    #[arg(long, default_value = ".")]
    keep: PathBuf,
    /// Tries this file alone, which the fuzzer has left.
    #[arg(long, requires = "target")]
    input: Option<PathBuf>,
}

fn seed(text: &str) -> Result<u64, std::num::ParseIntError> {
    match text {
        // Keyed at random.
        "random" => Ok(RandomState::new().build_hasher().finish() >> 32),
        number => number.parse(),
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let wanted =
        |target: &&Target| arguments.all || arguments.target.as_deref() == Some(target.name);
    let targets: Vec<_> = TARGETS.iter().filter(wanted).collect();
    if targets.is_empty() {
        let known: Vec<_> = TARGETS.iter().map(|t| t.name).collect();
        bail!(
            "no target {}: there are {}",
            arguments.target.unwrap_or_default(),
            known.join(", ")
        );
    }
    if let Some(path) = &arguments.input {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        for target in targets {
            (target.run)(&bytes);
            println!("{}: no finding in {}", target.name, path.display());
        }
        return Ok(());
    }
    let mut findings = Vec::new();
    for target in targets {
        findings.extend(search(target, &arguments)?);
    }
    match findings.is_empty() {
        true => Ok(()),
        false => bail!(
            "findings; try each again with --input: {}",
            findings.join(", ")
        ),
    }
}

/// Tries random inputs until the time is over. Where the first finding is kept, by its target and file.
fn search(target: &Target, arguments: &Arguments) -> anyhow::Result<Option<String>> {
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    let seed = arguments.seed;
    for (tried, input) in Inputs::new(seed, target.max_bytes).enumerate() {
        if Instant::now() >= end {
            println!(
                "{}: {tried} inputs in {} s from seed {seed}, no finding",
                target.name, arguments.seconds
            );
            break;
        }
        if catch_unwind(|| (target.run)(&input)).is_err() {
            let name = format!("{}-{seed}-{tried}.input", target.name);
            let path = arguments.keep.join(name);
            std::fs::create_dir_all(&arguments.keep)
                .and_then(|()| std::fs::write(&path, &input))
                .with_context(|| path.display().to_string())?;
            println!(
                "{}: a finding after {tried} inputs from seed {seed}",
                target.name
            );
            return Ok(Some(format!("{} {}", target.name, path.display())));
        }
    }
    Ok(None)
}
