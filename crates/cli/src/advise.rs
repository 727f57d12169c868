//! `dray advise`: whether one case is worth offloading.

use std::io;
use std::process::ExitCode;

use dray_experiment::{Point, Value, format_bytes};
use dray_figures::{BreakEven, Comparison, FiguresError, Model, VOCABULARY, Workload};
use dray_idxd::Profile;
use dray_platform::PlatformFile;

use crate::complain::Usage;
use crate::print::{self, Format};

const EXAMPLES: &str = "\
Examples:
  dray advise --op memmove --size 16k --depth 4
  dray advise --op crc --size 4k --depth 32 --placement llc
  dray advise --op memmove --size 1k --batch 16 --config 4e1w-s --format json

The whole chart: dray figures --only break-even.
Exit codes: 0 ok, whatever the advice; 1 failed; 2 usage or bad input.";

/// Arguments of `dray advise`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Operation: memmove, fill, nt_fill, compare, compval, dualcast, crc or copy_crc.
    #[arg(long, value_name = "OP", default_value = "memmove")]
    op: String,

    /// Bytes of one operation.
    #[arg(long, value_name = "BYTES")]
    size: String,

    /// Descriptors that the program keeps outstanding, a batch counted once.
    #[arg(long, value_name = "N", default_value = "1")]
    depth: String,

    /// Operations in a batch descriptor; 1: no batches.
    #[arg(long, value_name = "N", default_value = "1")]
    batch: String,

    /// Where the operands are: dram, llc, or l1 (of the core; the device finds them in the LLC).
    #[arg(long, value_name = "PLACE", default_value = "dram")]
    placement: String,

    /// Memory of the source: local, remote or cxl.
    #[arg(long, value_name = "NODE", default_value = "local")]
    src_node: String,

    /// Memory of the destination.
    #[arg(long, value_name = "NODE", default_value = "local")]
    dst_node: String,

    /// Machine to model: a built-in platform or a platform file.
    #[arg(long, value_name = "FILE|NAME", default_value = "spr-2s")]
    platform: String,

    /// Device configuration: an accel-config file or a name.
    #[arg(long, value_name = "FILE|NAME", default_value = "1e1w-d")]
    config: String,

    /// How to print it.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// What is found for one case.
struct Advice {
    compared: Comparison,
    from: BreakEven,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.op == "noop" {
        return Err(Usage::error(
            "--op noop: there is no software that does nothing as a NOOP does",
            "--op memmove",
        ));
    }
    let named = [
        ("op", &args.op),
        ("size", &args.size),
        ("depth", &args.depth),
        ("batch", &args.batch),
        ("placement", &args.placement),
        ("src_node", &args.src_node),
        ("dst_node", &args.dst_node),
    ];
    let mut point = Point::default();
    for (name, text) in named {
        let value = VOCABULARY
            .check(name, &Value::Text(text.clone()))
            .map_err(FiguresError::from)?;
        point = point.with(name, value);
    }
    let platform = PlatformFile::resolve(&args.platform).map_err(FiguresError::from)?;
    let profile = Profile::resolve(&args.config).map_err(FiguresError::from)?;
    let model = Model::new(platform, profile);
    let advice = Advice {
        compared: Comparison::run(&model, &Workload::from_point(&point)?)?,
        from: BreakEven::of(&model, &point)?,
    };
    let text = match args.format {
        Format::Table => advice.table(args, &model),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&advice.json(&point))?),
        Format::Csv => advice.csv(),
    };
    print::all(&mut io::stdout().lock(), &text)?;
    Ok(ExitCode::SUCCESS)
}

impl Advice {
    /// Name, unit, value on the device and on the core.
    fn rows(&self) -> Vec<(&'static str, &'static str, f64, f64)> {
        let of = |name| {
            let device = self.compared.device.get(name).unwrap_or_default();
            (device, self.compared.core.get(name).unwrap_or_default())
        };
        let (handing, working) = self.compared.core_time();
        let row = |what, unit, name| {
            let (device, core) = of(name);
            (what, unit, device, core)
        };
        vec![
            row("throughput", "GB/s", "throughput_gbps"),
            row("time per operation", "ns", "period_ns"),
            row("latency", "ns", "latency_ns"),
            ("core time per operation", "ns", handing, working),
        ]
    }

    fn table(&self, args: &Args, model: &Model) -> String {
        let mut table = print::plain(["", "unit", "DSA", "one core"]);
        for (what, unit, device, core) in self.rows() {
            table.add_row([
                what.to_owned(),
                unit.to_owned(),
                format!("{device:.1}"),
                format!("{core:.1}"),
            ]);
        }
        print::right(&mut table, 2);
        let batch = match args.batch.as_str() {
            "1" => String::new(),
            batch => format!(" in batches of {batch}"),
        };
        format!(
            "{} of {}{batch}, {} outstanding; {} with {}, all modelled\n\n{table}\n\n{}\n",
            args.op,
            args.size,
            args.depth,
            model.platform.name,
            args.config,
            self.words().join("\n"),
        )
    }

    fn words(&self) -> Vec<String> {
        let (device, core) = self.compared.period();
        let (handing, working) = self.compared.core_time();
        let verdict = match (device < core, handing < working) {
            (true, _) => format!(
                "Offload: {:.1} times the throughput of one core.",
                core / device
            ),
            (false, true) => format!(
                "One core is faster ({:.1} times), but handing the work over takes it {:.0} % of that time: offload if it has other work to do meanwhile.",
                device / core,
                100.0 * handing / working
            ),
            (false, false) => format!(
                "Do not offload: one core is faster ({:.1} times), and handing the work over takes it no less time than doing it.",
                device / core
            ),
        };
        let from = |what: &str, size: Option<u32>| match size {
            Some(size) => format!("{what} from {} on.", size_text(size.into())),
            None => format!("{what} at no size that the work queue takes."),
        };
        vec![
            verdict,
            from(
                "With so many outstanding, the device has more throughput",
                self.from.throughput,
            ),
            from("The core saves time", self.from.core_time),
        ]
    }

    fn json(&self, point: &Point) -> serde_json::Value {
        let case: serde_json::Map<String, serde_json::Value> = point
            .iter()
            .map(|(name, value)| {
                let value = match value.integer() {
                    Some(number) => number.into(),
                    None => value.to_string().into(),
                };
                (name.to_owned(), value)
            })
            .collect();
        let side = |core: bool| -> serde_json::Map<String, serde_json::Value> {
            let rows = self.rows().into_iter();
            let named = rows.map(|(what, unit, device, own)| {
                let unit = unit.replace("GB/s", "gbps");
                let name = format!("{}_{unit}", what.replace(' ', "_"));
                (name, if core { own } else { device }.into())
            });
            named.collect()
        };
        serde_json::json!({
            "case": case,
            "dsa": { "executor": "model", "metrics": side(false) },
            "core": { "executor": "model-cpu", "metrics": side(true) },
            "break_even_bytes": self.from.throughput,
            "core_break_even_bytes": self.from.core_time,
        })
    }

    fn csv(&self) -> String {
        let rows = self.rows().into_iter();
        let rows =
            rows.map(|(what, unit, device, core)| format!("{what},{unit},{device},{core}\n"));
        format!("metric,unit,dsa,core\n{}", rows.collect::<String>())
    }
}

fn size_text(bytes: u64) -> String {
    let text = format_bytes(bytes);
    match text.strip_suffix(|unit: char| unit.is_ascii_alphabetic()) {
        Some(number) => format!("{number} {}iB", &text[number.len()..]),
        None => format!("{text} B"),
    }
}
