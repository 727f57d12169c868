//! Fits the platform's parameters to all published tables and prints what changed; with `--keep`
//! also writes the evidence that the report shows, which takes minutes.
//!
//! `cargo run --release -p dray-figures --example calibrate [-- --keep]`

use std::path::Path;

use dray_figures::{Evidence, FiguresError, check, fit, influences, reference_tables};

const EVIDENCE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../platforms/spr-2s.evidence.json"
);

fn main() -> Result<(), FiguresError> {
    let platform = dray_platform::builtin("spr-2s")?;
    let mut tables = reference_tables()?;
    tables.retain(|table| table.target.is_some());
    let started = std::time::Instant::now();
    let influences = influences(&platform, &tables)?;
    for influence in &influences {
        println!("{:24} {}", influence.parameter, influence.tables.join(" "));
    }
    println!("influences after {:?}", started.elapsed());
    let fitted = fit(&platform, &tables, &influences, None)?;
    for (new, old) in fitted.list().iter().zip(platform.list()) {
        println!(
            "{:24} {:>10} -> {:>10} {}",
            new.name,
            old.value,
            new.value,
            new.unit.name()
        );
    }
    let (now, then) = (check(&platform, &tables)?, check(&fitted, &tables)?);
    for (now, then) in now.iter().zip(&then) {
        println!(
            "{:24} median {:5.1} -> {:5.1}  worst {:5.1} -> {:5.1}  missed {} -> {}",
            now.id,
            now.median(),
            then.median(),
            now.worst(),
            then.worst(),
            now.missed().len(),
            then.missed().len()
        );
    }
    println!("fit after {:?}", started.elapsed());
    if std::env::args().any(|a| a == "--keep") {
        let evidence = Evidence::work_out(&platform, &|table| eprintln!("left out {table}"))?;
        let text = serde_json::to_string_pretty(&evidence).expect("names and finite numbers");
        dray_output::write(Path::new(EVIDENCE), format!("{text}\n").as_bytes())?;
    }
    Ok(())
}
