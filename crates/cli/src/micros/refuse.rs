//! Flags that are refused by name, and flags without effect on the core or device that executes.

use dray_bench::micros::not_measured;
use dray_spec::Opcode;

use super::args::Args;
use super::read::misc;
use crate::complain::Usage;

/// Flags that need what the model does not have.
pub(super) fn refuse(args: &Args) -> anyhow::Result<()> {
    let fetch = not_measured(u8::from(Opcode::TranslationFetch));
    let refused = [
        (
            args.drain,
            "-Y",
            "drain descriptors are not measured",
            "leave -Y out",
        ),
        (args.fetch.is_some(), "-X", fetch.as_str(), "leave -X out"),
        (
            args.mmio.is_some(),
            "-B",
            "buffers in PCI devices are not modelled",
            "leave -B out",
        ),
        (
            args.user_driver.is_some(),
            "-u",
            "there is no hardware to bind a driver to",
            "leave -u out",
        ),
        (
            args.owners.is_some(),
            "-R",
            "inter-domain operations are not modelled",
            "leave -R out",
        ),
        (
            args.window.is_some(),
            "-r",
            "inter-domain operations are not modelled",
            "leave -r out",
        ),
    ];
    let measured = args.cpu || args.device.is_some();
    if measured && args.processes {
        return Err(Usage::error(
            "-P: each CPU is a thread here, and there are no processes",
            "leave -P out",
        ));
    }
    if args.cpu && submits_only(args) {
        return Err(Usage::error(
            format!("-m -x {}: software submits nothing", args.misc),
            "leave -m or -x out",
        ));
    }
    match refused.iter().find(|(given, ..)| *given) {
        Some((_, flag, reason, hint)) => Err(Usage::error(format!("{flag}: {reason}"), *hint)),
        None => Ok(()),
    }
}

fn submits_only(args: &Args) -> bool {
    misc(&args.misc).is_ok_and(|(_, submission)| submission.is_some())
}

/// The flags for a device that have no effect with `-m`, as with dsa_perf_micros, for a note.
pub(super) fn without_effect(args: &Args) -> Option<String> {
    let given = [
        (args.batch != 1, "-b"),
        (args.shared.is_some(), "-w"),
        (!args.cpu_queues.is_empty(), "-K"),
        (args.cache_control, "-f"),
        (args.flags.is_some(), "-F"),
        (args.shuffle, "-a"),
        (args.portal_rotates, "-c"),
        (args.count_preparation, "-C"),
        (args.misc != "0", "-x"),
    ];
    let flags: Vec<&str> = given.iter().filter(|(g, _)| *g).map(|(_, f)| *f).collect();
    (!flags.is_empty()).then(|| {
        let flags = flags.join(" ");
        format!("{flags} without effect: with -m there is no queue and no descriptor")
    })
}
