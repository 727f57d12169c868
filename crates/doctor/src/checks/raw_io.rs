//! May the process map the portal?

use super::sources::{IDXD_CONFIG_73, PLUGINS_1779, SA_01084};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::kernel::RELEASE;
use crate::survey::pci::UNSAFE_ID;
use crate::survey::process::STATUS;

pub(super) const CHECK: Check = Check {
    id: "raw-io",
    title: "CAP_SYS_RAWIO",
    needs: &["nodes"],
    why: "Since May 2024 (Linux 6.10, the stable kernels of that month, and the distributions' ports) a \
program may map the portal of a device 8086:0b25 only with CAP_SYS_RAWIO: mapping fails with \
\"Operation not permitted\", also for root in a container. Without the capability descriptors are \
handed over with write(2), which DTO does by itself and DML, DPDK, SPDK and dsa-perf-micros do not; \
batches are refused there. 8086:11fb and later are not affected.",
    sources: &[PLUGINS_1779, IDXD_CONFIG_73, SA_01084],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let functions = survey.pci.functions();
    if !functions.iter().any(|function| function.id == UNSAFE_ID) {
        return Verdict::DoesNotApply("this device needs no capability".to_owned());
    }
    match survey.process.has_raw_io() {
        Some(true) => return Verdict::Holds("this process has it".to_owned()),
        Some(false) => {}
        None => return Verdict::Unknown(format!("{STATUS} does not say")),
    }
    let kernel = &survey.kernel;
    let certain = kernel.version() >= Some((6, 10));
    let what = match certain {
        true => "this process may not map portals: it lacks CAP_SYS_RAWIO",
        false => {
            "this process lacks CAP_SYS_RAWIO, and may not map portals if the kernel is of May 2024 or later"
        }
    };
    let mut fix = Fix::advice(
        "Give the program the capability, or let it use write(2) (accel-config 4.2's dsa_test and DTO do).",
    )
    .then([
        "sudo setcap cap_sys_rawio+ep PROGRAM",
        "# systemd: AmbientCapabilities=CAP_SYS_RAWIO",
    ]);
    if survey.process.container.is_some() {
        fix = fix.then([
            "docker run --cap-add SYS_RAWIO ...",
            "# Kubernetes: securityContext: capabilities: add: [\"SYS_RAWIO\"]",
        ]);
    }
    let evidence = [
        Evidence::new(STATUS, "CapEff without bit 17 (CAP_SYS_RAWIO)"),
        Evidence::of(RELEASE, &kernel.release),
    ];
    Finding::warning(what)
        .confirmed_by(Saying::MMAP_DENIED)
        .seen(evidence)
        .fix(fix)
        .into()
}
