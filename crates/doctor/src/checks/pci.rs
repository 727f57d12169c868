//! Is there a DSA at all?

use super::sources::{IDXD_CONFIG_85, KERNEL_IDXD, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::cpu::CPUINFO;
use crate::survey::pci::{DEVICES, DSA_IDS};

pub(super) const CHECK: Check = Check {
    id: "pci",
    title: "PCI function",
    needs: &[],
    why: "A DSA is a PCI function of the processor: vendor 8086, device 0b25 (Sapphire, Emerald and \
Granite Rapids, Sierra Forest), 11fb (Granite Rapids-D) or 1212 (Diamond Rapids). Without one \
nothing else matters. Processors from the 4th generation of Xeon Scalable on have up to four to a \
socket; some models have one, and on some the others are sold as Intel On Demand. The firmware can \
hide them, and a virtual machine has only what the host passes on.",
    sources: &[KERNEL_IDXD, USER_GUIDE, IDXD_CONFIG_85],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let functions = survey.pci.functions();
    if functions.is_empty() {
        return missing(context).into();
    }
    let seen = functions.iter().map(|function| {
        let on = DSA_IDS.iter().find(|(id, _)| *id == function.id);
        let on = on.map_or("", |(_, name)| *name);
        format!("{} (8086:{:04x}, {on})", function.address, function.id)
    });
    Verdict::Holds(seen.collect::<Vec<_>>().join(", "))
}

fn missing(context: &Context<'_>) -> Finding {
    let survey = context.survey;
    let none = match &survey.pci.functions {
        Ok(_) => "none of the functions is a DSA (8086:0b25, 8086:11fb, 8086:1212)".to_owned(),
        Err(reason) => reason.to_string(),
    };
    let evidence = [
        Evidence::new(DEVICES, none),
        Evidence::new(CPUINFO, survey.cpu.name()),
    ];
    let (what, advice) = if survey.is_guest() {
        (
            "this virtual machine has no DSA",
            "Let the host pass a DSA function on to this machine (its device must be of a kind that \
the host's vfio-pci accepts), or use the modelled device: all of `dray` but the hardware works \
without.",
        )
    } else if survey.cpu.with_dsa().is_some() {
        (
            "this processor's generation has a DSA, and none shows on PCI",
            "Look whether the model has one (ark.intel.com: Intel Data Streaming Accelerator, default \
devices), whether Intel On Demand has to activate it, and whether the firmware hides it: Socket \
Configuration, IIO Configuration, IOAT Configuration, DSA: enabled.",
        )
    } else {
        (
            "this processor has no DSA",
            "Use a machine with a Xeon Scalable of the 4th generation or later, or the modelled \
device: all of `dray` but the hardware works without.",
        )
    };
    let fix = Fix::advice(advice).then(["dray figures    # the published experiments, modelled"]);
    Finding::error(what)
        .confirmed_by(Saying::NO_DEVICE)
        .seen(evidence)
        .fix(fix)
}
