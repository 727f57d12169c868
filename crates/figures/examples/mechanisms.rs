//! Validates mechanisms one at a time: how far tables are missed that the fit has not seen, with each
//! mechanism and without it. A mechanism is a parameter with a value at which it does nothing.
//!
//! `cargo run --release -p dray-figures --example mechanisms -- batch_shared=0 enqcmd_contention=0`
//!
//! The first rows are those of the model as it is. Minutes for each.

use dray_figures::{FiguresError, Influence, influences, leave_out, reference_tables};
use dray_platform::PlatformFile;

fn main() -> Result<(), FiguresError> {
    let platform = dray_platform::builtin("spr-2s")?;
    let mut tables = reference_tables()?;
    tables.retain(|table| table.target.is_some());
    let free = influences(&platform, &tables)?;
    let print = |case: &str, platform: &PlatformFile, free: &[Influence]| {
        for one in leave_out(platform, &tables, free, false, &|_| ())? {
            let (median, worst) = (one.table.median(), one.table.worst());
            println!("{case} {} {median:.1} {worst:.1}", one.table.id);
        }
        Ok::<(), FiguresError>(())
    };
    println!("case table median worst");
    print("all", &platform, &free)?;
    for argument in std::env::args().skip(1) {
        let Some((name, value)) = argument.split_once('=') else {
            eprintln!("{argument}: no PARAMETER=VALUE");
            continue;
        };
        let Ok(value) = value.parse::<f64>() else {
            eprintln!("{argument}: {value} is no number");
            continue;
        };
        // The value may be outside of the range, which is that of the mechanism at work.
        let range = [value; 2];
        let without = platform.measured(name, value, range, "the mechanism does nothing")?;
        let others: Vec<Influence> = free
            .iter()
            .filter(|influence| influence.parameter != name)
            .cloned()
            .collect();
        print(&argument, &without, &others)?;
    }
    Ok(())
}
