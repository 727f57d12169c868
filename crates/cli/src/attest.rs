//! `dray attest`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use dray::hw::{self, HwError, QueueInfo};
use dray_attest::{
    Attest, AttestError, MAX_BYTES, Plan, Source, Step, attest_hardware, attest_virtual,
};
use dray_device::{Capabilities, DeviceConfig, WorkQueueConfig, WorkQueueMode};
use dray_output::{Output, counted};

use crate::complain::Usage;
use crate::{print, progress};

const EXAMPLES: &str = "\
Examples:
  dray attest --dry-run                     steps, and how long they take
  sudo dray attest --out my-dsa.json        the first free work queue here
  sudo dray attest --device hw:wq1.0        this one
  dray attest --device virtual              the virtual device in this process
  dray compare my-dsa.json                  beside the virtual device
  dray compare my-dsa.json another.json     beside another machine

A work queue is used as it is configured, and no attribute is written: nothing
has to be put back. It must be enabled, of the type user, and no other program
should use it. The file has no names of hosts or users, no serial numbers and no
addresses of the network; docs/attest.md lists what is in it.
Exit codes: 0 nothing deviates, 1 something does, 2 usage or bad input, 3 there
is no DSA, 130 interrupted.";

/// Arguments of `dray attest`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The work queue: hw, the first that is free; hw:wqX.Y; or virtual, a device in this process.
    #[arg(long, value_name = "hw[:wqX.Y]|virtual", default_value = "hw", value_parser = Source::parse)]
    device: Source,
    /// Where the result goes; - is standard output.
    #[arg(long, value_name = "FILE", default_value = "attest.json")]
    out: PathBuf,
    /// Say what would be done, and how long it may take.
    #[arg(long)]
    dry_run: bool,
    /// Minutes after which no further point is measured; 0 to 60. With 0 rules and order alone are tried.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=60))]
    minutes: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = Plan {
        at_most: Duration::from_secs(60 * args.minutes),
        ..Plan::default()
    };
    let queue = match &args.device {
        Source::Virtual => None,
        Source::Hardware(name) => Some(queue(name.as_deref())?),
    };
    if args.dry_run {
        print::all(&mut io::stdout().lock(), &plan_text(args, queue.as_ref()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let output = match args.out.as_os_str() == "-" {
        true => None,
        false => Some(Output::prepare(&args.out)?),
    };
    progress::listen();
    let told = |step: Step| {
        tell(step);
        !progress::stopped()
    };
    let attest = match &queue {
        Some(queue) => attest_hardware(queue, plan, &told),
        None => attest_virtual(virtual_config(), None, plan, &told),
    };
    let attest = match attest {
        Err(AttestError::Interrupted) => {
            eprintln!("interrupted: nothing was written, and nothing has to be put back");
            return Ok(ExitCode::from(130));
        }
        attest => attest.map_err(explained)?,
    };
    let text = print::document(&attest)?;
    anyhow::ensure!(
        text.len() <= MAX_BYTES,
        "the result has {} bytes; more than {MAX_BYTES} are not written",
        text.len()
    );
    match output {
        Some(output) => output.write(text.as_bytes())?,
        None => print::all(&mut io::stdout().lock(), &text)?,
    }
    eprint!("{}", summary(&attest));
    Ok(match attest.deviates() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// The queue that is named, or the first that can be used.
fn queue(name: Option<&str>) -> Result<QueueInfo, HwError> {
    let queues = hw::discover()?;
    let Some(name) = name else {
        return queues.into_iter().next().ok_or(HwError::NoQueues {
            path: "/dev/dsa".into(),
        });
    };
    let available: Vec<String> = queues.iter().map(QueueInfo::name).collect();
    let mut queues = queues.into_iter();
    queues
        .find(|queue| queue.name() == name)
        .ok_or(HwError::NoSuchQueue {
            name: name.to_owned(),
            available: available.join(", "),
        })
}

fn virtual_config() -> DeviceConfig {
    let queue = WorkQueueConfig::new(0, WorkQueueMode::Dedicated, 32);
    DeviceConfig {
        capabilities: Capabilities::version_2(),
        ..DeviceConfig::sapphire_rapids(4, vec![queue])
    }
}

fn plan_text(args: &Args, queue: Option<&QueueInfo>) -> String {
    let (rules, cases) = Plan::rules();
    let plan = Plan::default();
    let on = queue.map_or("a virtual device in this process".to_owned(), |queue| {
        format!(
            "{}, {} entries, {}, version {:#x}",
            queue.name(),
            queue.entries,
            match queue.mode {
                WorkQueueMode::Dedicated => "dedicated",
                WorkQueueMode::Shared => "shared",
            },
            queue.version
        )
    });
    let points = match queue {
        Some(_) if args.minutes == 0 => "3. no points\n".to_owned(),
        Some(_) => format!(
            "3. up to {} points of figures 2, 3, 4, 6a and 7 and of parameters, as the queue is configured, and parameters \
             of a platform fitted to them: up to {} minutes\n",
            Plan::points(),
            args.minutes
        ),
        None => "3. no points: the times of a virtual device are the emulation's\n".to_owned(),
    };
    let limit = match args.minutes {
        0 => "Seconds".to_owned(),
        minutes => format!("At most {minutes} minutes"),
    };
    format!(
        "On {on}:\n\
         1. {rules} rules of the specification with {cases} cases, each where the queue is configured for it: seconds\n\
         2. {} cases of order, {} times each: seconds\n\
         {points}\
         {limit}; no attribute is written, no queue is configured. The result: {}\n",
        Plan::litmus(),
        plan.litmus_times,
        args.out.display()
    )
}

/// A line for each part that is done.
fn tell(step: Step) {
    match step {
        Step::Rules(n, of) if n == of => eprintln!("{of} rules tried"),
        Step::Litmus(n, of) if n == of => eprintln!("{of} cases of order run"),
        Step::Points(n, of) if n == of => eprintln!("{of} points measured"),
        Step::Rules(..) | Step::Litmus(..) | Step::Points(..) => {}
    }
}

fn summary(attest: &Attest) -> String {
    let held: usize = attest.rows.iter().map(|row| row.held).sum();
    let left: usize = attest.left_out();
    let mut text = format!(
        "{held} cases of {} held, {left} were left out; {} of order\n",
        counted(attest.rows.len(), "rule"),
        counted(attest.litmus.len(), "case")
    );
    for failed in attest.points.iter().flat_map(|points| &points.failed) {
        text += &format!("not measured: {failed}\n");
    }
    for row in attest.failed_rows() {
        text += &format!("deviates: {} (spec {}): ", row.rule, row.section);
        text += &row.failures.join("; ");
        text += "\n";
    }
    for case in attest.forbidden() {
        let seen: Vec<String> = case
            .forbidden()
            .map(|(outcome, count)| format!("{outcome:?} {count} times"))
            .collect();
        let (name, section, rule) = (&case.case, &case.section, &case.rule);
        text += &format!(
            "deviates: {name} (spec {section}): {rule}; seen: {}\n",
            seen.join(", ")
        );
    }
    text
}

fn explained(error: AttestError) -> anyhow::Error {
    match error {
        AttestError::Hardware(error) => error.into(),
        AttestError::Figures(error) => (*error).into(),
        AttestError::Configuration { .. } => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let message = format!("{error}: {}", source.unwrap_or_default());
            Usage::error(
                message,
                "dray doctor; the attributes of the queue are not what a driver accepts",
            )
        }
        other => other.into(),
    }
}
