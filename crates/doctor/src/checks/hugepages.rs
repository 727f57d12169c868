//! Are there huge pages?

use super::sources::{PERF_MICROS, SPDK_2076, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::host::MEMORY;

pub(super) const CHECK: Check = Check {
    id: "hugepages",
    title: "huge pages",
    needs: &["queues"],
    why: "With pages of 4 KiB a device translates an address for every page; with 2 MiB or 1 GiB it \
measures better, and faults less. dsa_perf_micros -l, SPDK and DPDK take reserved huge pages and \
fail without.",
    sources: &[PERF_MICROS, SPDK_2076, USER_GUIDE],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let host = &context.survey.host;
    let Some(pages) = host.huge_pages else {
        return Verdict::Unknown(format!("{MEMORY} does not say"));
    };
    let gigantic = *host.gigantic_pages.as_ref().unwrap_or(&0);
    if pages > 0 || gigantic > 0 {
        return Verdict::Holds(format!("{pages} of the default size, {gigantic} of 1 GiB"));
    }
    let what = "no huge pages are reserved: SPDK, DPDK and dsa_perf_micros -l fail";
    let fix = Fix::advice("Reserve some, such as 1024 of 2 MiB.")
        .then(["sudo sysctl vm.nr_hugepages=1024"]);
    let evidence = Evidence::new(MEMORY, "HugePages_Total: 0");
    Finding::note(what)
        .confirmed_by(Saying::NO_HUGE_PAGES)
        .seen([evidence])
        .fix(fix)
        .into()
}
