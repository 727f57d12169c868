//! `dray advise`: whether one case is worth offloading.

mod depths;
mod printed;

use std::process::ExitCode;

use clap::ValueEnum;
use dray_experiment::{Point, Value};
use dray_figures::{Advice, FiguresError, Model, Used, VOCABULARY, Workload};
use dray_platform::PlatformFile;
use dray_spec::Opcode;

use crate::complain::Usage;
use crate::configured::{self, Configured};
use crate::print::{self, Format};
use crate::said::Stdout;
use depths::{DEPTHS, Depths};
use printed::Printed;

const EXAMPLES: &str = "\
Examples:
  dray advise --op copy --size 16k
  dray advise --op memmove --size 16k --depth 4
  dray advise --op crc --size 4k --depth 32 --placement llc
  dray advise --op memmove --size 1k --batch 16 --config 4e1w-s --format json

The whole chart: dray figures --only break-even.
Exit codes: 0 ok, whatever the advice; 1 failed; 2 usage or bad input.";

/// Operations that software can do as well.
const OPERATIONS: &[&str] = &[
    "memmove", "fill", "nt_fill", "compare", "compval", "dualcast", "crc", "copy_crc",
];

/// How the core walks its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Access {
    /// From one end to the other.
    Streaming,
    /// In random order, where no prefetcher helps.
    Random,
}

impl Access {
    /// Its value of the parameter `access`.
    fn word(self) -> &'static str {
        match self {
            Access::Streaming => "sequential",
            Access::Random => "random",
        }
    }
}

/// Whose code the core runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Core {
    /// A program's, with vector registers.
    User,
    /// The kernel's, which copies without vector registers.
    Kernel,
}

impl Core {
    /// Its value of the parameter `core`.
    fn word(self) -> &'static str {
        match self {
            Core::User => "user",
            Core::Kernel => "kernel",
        }
    }
}

/// Arguments of `dray advise`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Operation: memmove (or copy), fill, nt_fill, compare, compval, dualcast, crc or copy_crc.
    #[arg(long, value_name = "OP", default_value = "memmove")]
    op: String,

    /// Bytes of one operation.
    #[arg(long, value_name = "BYTES")]
    size: String,

    /// Descriptors that the program keeps outstanding, a batch counted once; without it 1, 4, 16 and 64 are compared.
    #[arg(long, value_name = "N")]
    depth: Option<String>,

    /// Operations in a batch descriptor; 1: no batches.
    #[arg(long, value_name = "N", default_value = "1")]
    batch: String,

    /// Where the operands are: dram, llc, or l1 (of the core; the device finds them in the LLC).
    #[arg(long, value_name = "PLACE", default_value = "dram")]
    placement: String,

    /// How the core walks its buffers.
    #[arg(long, value_enum, value_name = "ACCESS", default_value_t = Access::Streaming)]
    access: Access,

    /// Whose code the core runs.
    #[arg(long, value_enum, value_name = "CORE", default_value_t = Core::User)]
    core: Core,

    /// Measure the operation on a core of this machine, and take that instead of the modelled
    /// core's time per line.
    #[arg(long)]
    measure_cpu: bool,

    /// Memory of the source: local, remote or cxl.
    #[arg(long, value_name = "NODE", default_value = "local")]
    src_node: String,

    /// Memory of the destination.
    #[arg(long, value_name = "NODE", default_value = "local")]
    dst_node: String,

    /// Machine to model: a built-in platform or a platform file.
    #[arg(long, value_name = "FILE|NAME", default_value = "spr-2s")]
    platform: String,

    /// Device configuration: an accel-config file or a name. Without it the device that is
    /// configured here, or 1e1w-d.
    #[arg(long, value_name = "FILE|NAME")]
    config: Option<String>,

    /// How to print it.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

impl Args {
    /// Whether this machine is measured, too.
    pub(crate) fn measures(&self) -> bool {
        self.measure_cpu
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let depth = args.depth.as_deref().unwrap_or("1");
    let point = point(args, depth)?;
    let platform = PlatformFile::resolve(&args.platform).map_err(FiguresError::from)?;
    let chosen = configured::profile(args.config.as_deref(), "1e1w-d");
    let Configured { profile, name } = chosen.map_err(FiguresError::from)?;
    for finding in profile.unmodelled() {
        eprintln!("warning: {finding}");
    }
    let used = Used::of(&profile)?;
    let workload = Workload::from_point(&point)?;
    let mut model = Model::new(platform, profile);
    if args.measure_cpu {
        let measured = dray_figures::measured_core(&model, &workload)?;
        eprintln!("{}", measured.describe());
        model = measured.model;
    }
    let printed = |point: Point| -> Result<Printed<'_>, FiguresError> {
        let workload = Workload::from_point(&point)?;
        Ok(Printed {
            args,
            config: &name,
            used,
            advice: Advice::of(&model, &workload)?,
            workload,
            point,
            model: &model,
        })
    };
    let text = if args.depth.is_some() {
        let printed = printed(point)?;
        match args.format {
            Format::Table => printed.table(),
            Format::Json => print::document(&printed.json())?,
            Format::Csv => printed.csv(),
        }
    } else {
        let fit = DEPTHS.into_iter().filter(|depth| *depth <= used.entries);
        let each = fit.map(|depth| Ok((depth, printed(point.with("depth", u64::from(depth)))?)));
        let depths = Depths(each.collect::<Result<_, FiguresError>>()?);
        match args.format {
            Format::Table => depths.table(),
            Format::Json => print::document(&depths.json())?,
            Format::Csv => depths.csv(),
        }
    };
    print::all(&mut Stdout, &print::wrapped(&text))?;
    Ok(ExitCode::SUCCESS)
}

fn point(args: &Args, depth: &str) -> anyhow::Result<Point> {
    let known = args.op.parse::<Opcode>();
    let op = known.map_or(args.op.clone(), |op| op.name().to_owned());
    if op == "noop" {
        return Err(Usage::error(
            "--op noop: there is no software that does nothing as a NOOP does",
            "--op memmove",
        ));
    }
    if !OPERATIONS.contains(&op.as_str()) {
        let hint = dray_suggest::suggest(&args.op, OPERATIONS.iter().copied());
        return Err(Usage::error(
            format!("--op {} is not an operation of the core; {hint}", args.op),
            "--op memmove is a copy",
        ));
    }
    let named = [
        ("op", op.as_str()),
        ("size", &args.size),
        ("depth", depth),
        ("batch", &args.batch),
        ("placement", &args.placement),
        ("src_node", &args.src_node),
        ("dst_node", &args.dst_node),
    ];
    let mut point = Point::default()
        .with("access", args.access.word())
        .with("core", args.core.word());
    for (name, text) in named {
        let value = VOCABULARY
            .check(name, &Value::Text(text.to_owned()))
            .map_err(FiguresError::from)?;
        point = point.with(name, value);
    }
    Ok(point)
}
