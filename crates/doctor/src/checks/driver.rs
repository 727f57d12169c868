//! Does idxd have the device?

use super::sources::{IDXD_CONFIG_7, IDXD_CONFIG_85, SPDK_2076, SPDK_2486};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::machine::Unreadable;
use crate::survey::Survey;
use crate::survey::pci::Function;

pub(super) const CHECK: Check = Check {
    id: "driver",
    title: "driver of the function",
    needs: &["module"],
    why: "A function belongs to one driver. SPDK's setup.sh and DPDK's dpdk-devbind.py give it to \
vfio-pci or uio_pci_generic for their own drivers; then there is no /sys/bus/dsa/devices/dsaN, and \
accel-config, DML, DTO and the kernel paths of SPDK and DPDK see nothing. A function without a \
driver has failed in the driver's probe, or was unbound. Before Linux 5.14 unbinding crashes.",
    sources: &[SPDK_2076, SPDK_2486, IDXD_CONFIG_85, IDXD_CONFIG_7],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let functions = survey.pci.functions();
    let bound = |function: &&Function| function.driver.as_deref() == Ok("idxd");
    let with_idxd = functions.iter().filter(bound).count();
    let mut findings = Vec::new();
    for function in functions.iter().filter(|function| !bound(function)) {
        let mut finding = match &function.driver {
            Ok(driver) => taken(function, driver),
            Err(Unreadable::Missing) => without(survey, function),
            Err(reason) => {
                let path = format!("{}/driver", function.path());
                return Verdict::Unknown(format!("{path}: {reason}"));
            }
        };
        if with_idxd == 0 {
            finding.severity = crate::finding::Severity::Error;
        }
        findings.push(finding);
    }
    Verdict::of(findings, || format!("idxd has {with_idxd}"))
}

fn taken(function: &Function, driver: &str) -> Finding {
    let address = &function.address;
    let what = format!("{address} belongs to {driver}, not to idxd");
    let path = function.path();
    let evidence = Evidence::new(format!("{path}/driver"), driver);
    let fix = Fix::advice(
        "Give it back, unless a program with a driver of its own (SPDK, DPDK, dsa_perf_micros -u) is to have it.",
    )
    .then([
        format!("echo {address} | sudo tee {path}/driver/unbind"),
        format!("echo idxd | sudo tee {path}/driver_override"),
        format!("echo {address} | sudo tee /sys/bus/pci/drivers_probe"),
    ]);
    Finding::warning(what)
        .confirmed_by(Saying::NO_DEVICE)
        .seen([evidence])
        .fix(fix)
}

fn without(survey: &Survey, function: &Function) -> Finding {
    let address = &function.address;
    let what = format!("{address} has no driver, though idxd is loaded");
    let said = survey.kernel.messages(address);
    let said = said.filter(|line| line.contains("idxd")).last();
    let evidence = Evidence::new(format!("{}/driver", function.path()), "does not exist");
    let fix = Fix::advice("Bind it; if that fails, dmesg says why.").then([
        format!("echo {address} | sudo tee /sys/bus/pci/drivers/idxd/bind"),
        format!("sudo dmesg | grep {address}"),
    ]);
    Finding::warning(what)
        .confirmed_by(Saying::PROBE_FAILED)
        .seen(std::iter::once(evidence).chain(said.map(Evidence::log)))
        .fix(fix)
}
