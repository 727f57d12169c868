//! A measurement, as typed.

use dray_bench::FlagChange;
use dray_bench::micros::{
    Access, CpuQueue, Micros, Submission, cpu_list, cpu_queues, operand_list,
};
use dray_bench::real::Pages;
use dray_platform::WaitMode;

use super::args::Args;
use crate::complain::Usage;

pub(super) fn measurement(args: &Args) -> anyhow::Result<Micros> {
    let usage = |flag: &'static str, hint: &'static str| {
        move |reason: String| Usage::error(format!("{flag}: {reason}"), hint)
    };
    let cpus = args.cpus.as_deref().map(cpu_list).transpose();
    let mut queues: Vec<CpuQueue> = Vec::new();
    for text in &args.cpu_queues {
        queues.extend(cpu_queues(text).map_err(usage("-K", "-K[0-3]@dsa0,0"))?);
    }
    let mut nodes = Vec::new();
    for text in &args.nodes {
        let list = operand_list(text, |part| part.parse::<i32>().ok());
        nodes.push(list.map_err(usage("-S", "-S-1,1: a node for each operand"))?);
    }
    let offsets = match &args.offsets {
        None => Vec::new(),
        Some(text) => operand_list(text, |part| {
            part.parse::<u64>().ok().filter(|n| *n <= 1 << 20)
        })
        .map_err(usage("-O", "-O0,1,2: pages for each operand"))?,
    };
    if !args.buffers.is_multiple_of(args.batch) {
        return Err(Usage::error(
            format!(
                "-n{} -b{}: buffers do not fill whole batches",
                args.buffers, args.batch
            ),
            format!("-n{}", args.buffers.next_multiple_of(args.batch)),
        ));
    }
    if u64::from(args.buffers) * u64::from(args.size) > 1 << 40 {
        return Err(Usage::error(
            format!(
                "-n{} -s{}: more than 1 TiB of buffers",
                args.buffers, args.size
            ),
            "fewer or smaller buffers",
        ));
    }
    let (wait, submission) = misc(&args.misc)?;
    Ok(Micros {
        op: args.op,
        size: args.size,
        buffers: args.buffers,
        batch: args.batch,
        queue_depth: args.queue_depth,
        iterations: match args.iterations {
            -1 => None,
            n if n > 0 => Some(n as u64),
            n => {
                return Err(Usage::error(
                    format!("-i{n}: iterations are 1 or more"),
                    "-i1000, or -i-1 -T10 for a time",
                ));
            }
        },
        seconds: f64::from(args.seconds),
        stride: args.stride.filter(|stride| *stride > 0),
        offsets,
        cpus: cpus.map_err(usage("-k", "-k0-3,5"))?.unwrap_or(vec![0]),
        cpu_queues: queues,
        shared: args.shared.map(|w| w == 1),
        nodes,
        access: places(args)?,
        cache_control: args.cache_control,
        flags: args.flags.as_deref().map(flag_change).transpose()?,
        portal_rotates: args.portal_rotates,
        wait,
        submission,
        count_preparation: args.count_preparation,
        pages: match args.large_pages {
            None => Pages::Transparent,
            Some(0) => Pages::Huge2M,
            Some(_) => Pages::Huge1G,
        },
        shuffled: args.shuffle,
        verify: args.verify == 1,
        delta_percent: args.delta,
        block: args.block,
    })
}

/// `-y`, then `-z` for the operands that it names.
fn places(args: &Args) -> anyhow::Result<Vec<Access>> {
    let read = |text: &Option<String>,
                flag: &'static str,
                hint: &'static str,
                letters: &'static [(&str, Access)]| {
        let Some(text) = text else {
            return Ok(Vec::new());
        };
        let list = operand_list(text, |part| {
            let found = letters
                .iter()
                .find(|(letter, _)| letter.eq_ignore_ascii_case(part));
            found.map(|(_, access)| *access)
        });
        list.map_err(|reason| Usage::error(format!("{flag}: {reason}"), hint))
    };
    let mut places = read(
        &args.access,
        "-y",
        "-yR,W: N, R or W for each operand",
        &[
            ("N", Access::None),
            ("R", Access::Touched),
            ("W", Access::Touched),
        ],
    )?;
    let placed = read(
        &args.placement,
        "-z",
        "-zF,F: N, P, D or F for each operand",
        &[
            ("N", Access::None),
            ("P", Access::Touched),
            ("D", Access::Demoted),
            ("F", Access::Flushed),
        ],
    )?;
    for (index, place) in placed.into_iter().enumerate() {
        match places.get_mut(index) {
            Some(_) if place == Access::None => {}
            Some(old) => *old = place,
            None => places.push(place),
        }
    }
    Ok(places)
}

const PAUSE: u32 = 1 << 7;
const UMWAIT: u32 = 1 << 8;
const MOVDIR64B_RATE: u32 = 1 << 27;
const ENQCMD_RATE: u32 = 1 << 30;
/// A doorbell write, MOVDIR64B to memory, ENQCMD to memory: their cost has not been published.
const UNKNOWN_RATES: u32 = (1 << 28) | (1 << 29) | (1 << 31);

pub(super) fn misc(text: &str) -> anyhow::Result<(WaitMode, Option<Submission>)> {
    let hint = "-x 80 pause, -x 100 umwait, -x 8000000 MOVDIR64B rate, -x 40000000 ENQCMD rate";
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let mask = u32::from_str_radix(digits.unwrap_or(text), 16).map_err(|_| {
        Usage::error(
            format!("-x {text}: not a hexadecimal mask of 32 bits"),
            hint,
        )
    })?;
    if mask & UNKNOWN_RATES != 0 {
        let reason = "doorbells and writes to memory have no parameter in the model";
        return Err(Usage::error(format!("-x {text}: {reason}"), hint));
    }
    let submission = match (mask & MOVDIR64B_RATE != 0, mask & ENQCMD_RATE != 0) {
        (true, _) => Some(Submission::Movdir64b),
        (_, true) => Some(Submission::Enqcmd),
        _ => None,
    };
    let wait = match (mask & UMWAIT != 0, mask & PAUSE != 0) {
        (true, _) => WaitMode::Umwait,
        (_, true) => WaitMode::Pause,
        _ => WaitMode::Poll,
    };
    Ok((wait, submission))
}

fn flag_change(text: &str) -> anyhow::Result<FlagChange> {
    let number = |part: &str| match part.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => part.parse().ok(),
    };
    let parts: Option<Vec<u32>> = text.split(':').map(number).collect();
    match parts.as_deref() {
        Some([clear, set, every]) if *every > 0 => Ok(FlagChange {
            clear: *clear,
            set: *set,
            every: *every,
        }),
        _ => Err(Usage::error(
            format!("-F {text}: bits to clear, bits to set and every nth are needed"),
            "-F 0:0x100:1",
        )),
    }
}
