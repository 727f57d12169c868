//! Do programs find libaccel-config?

use super::sources::{DML_17, DML_40, DML_41};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::host::LIBRARY;

pub(super) const CHECK: Check = Check {
    id: "library",
    title: "libaccel-config",
    needs: &["pci"],
    why: "DML opens libaccel-config.so.1 at run time and, when it is not found, reports status 100 or an \
internal error without a word about it: one user needed strace. DTO, SPDK and dsa-perf-micros are \
linked with it. `make install` leaves it in /usr/local/lib or, as the guides have it, in /usr/lib64, \
where not every loader looks.",
    sources: &[DML_41, DML_40, DML_17],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    match &survey.host.library {
        Some(library) if library.found_by_loader => Verdict::Holds(library.path.clone()),
        Some(library) => {
            let path = &library.path;
            let dir = path.rsplit_once('/').map_or(path.as_str(), |(dir, _)| dir);
            let what = format!("{LIBRARY} is in {dir}, where the loader does not look");
            let evidence = Evidence::new("/etc/ld.so.conf.d", format!("no line {dir}"));
            let fix = Fix::advice("Tell the loader.").then([
                format!("echo {dir} | sudo tee /etc/ld.so.conf.d/accel-config.conf"),
                "sudo ldconfig".to_owned(),
            ]);
            Finding::warning(what)
                .confirmed_by(Saying::NO_LIBRARY)
                .seen([Evidence::new(path.clone(), "exists"), evidence])
                .fix(fix)
                .into()
        }
        None => {
            let what = format!("{LIBRARY} is not installed: DML says status 100");
            let fix = Fix::advice("Install it.").then([survey.kernel.install_library()]);
            let evidence = Evidence::new("/usr/lib, /usr/local/lib", format!("no {LIBRARY}"));
            Finding::warning(what)
                .confirmed_by(Saying::NO_LIBRARY)
                .seen([evidence])
                .fix(fix)
                .into()
        }
    }
}
