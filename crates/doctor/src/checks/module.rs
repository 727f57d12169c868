//! Is the driver loaded?

use super::sources::{KERNEL_IDXD, PLUGINS_919, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::command_line::forbids;
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::kernel::{COMMAND_LINE, Setting};
use crate::survey::module::LOADED;

pub(super) const CHECK: Check = Check {
    id: "module",
    title: "idxd module",
    needs: &["cpu", "kernel", "options"],
    why: "The driver is the module idxd (with idxd_bus). udev loads it when the PCI function shows, \
unless a rule of modprobe.d or the command line forbids it, or the distribution packs it apart from \
the kernel. A container sees the modules of its host and cannot load any.",
    sources: &[PLUGINS_919, USER_GUIDE, KERNEL_IDXD],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let (module, kernel) = (&survey.module, &survey.kernel);
    match &module.loaded {
        Ok(true) => return Verdict::Holds("loaded".to_owned()),
        Ok(false) => {}
        Err(reason) => return Verdict::Unknown(format!("{LOADED}: {reason}")),
    }
    let not_loaded = Evidence::new(LOADED, "does not exist");
    let load = "sudo modprobe idxd";
    let mut words = kernel.words();
    let on_line = words.find(|word| forbids(word, "idxd") || *word == "nomodule");
    let finding = if let Some(word) = on_line {
        let line = Evidence::of(COMMAND_LINE, &kernel.command_line);
        let fix = Fix::advice("Take it away.").then(kernel.remove_from_command_line(word));
        Finding::error(format!("the command line forbids the idxd module: {word}"))
            .confirmed_by(Saying::MODULE_NOT_LOADED)
            .seen([not_loaded, line])
            .fix(fix)
    } else if let Some((path, rule)) = module.blacklisted() {
        let rule = Evidence::new(path.clone(), rule.clone());
        let fix = Fix::advice(format!("Take the line out of {path}, and load the module."));
        Finding::error(format!("{path} forbids the idxd module"))
            .confirmed_by(Saying::MODULE_NOT_LOADED)
            .seen([not_loaded, rule])
            .fix(fix.then([load]))
    } else if module.installed == Ok(false) && kernel.option("INTEL_IDXD") != Some(Setting::BuiltIn)
    {
        let directory = Evidence::new(module.directory.clone(), "no idxd.ko");
        let fix = Fix::advice("Install the package that has it, and load it.");
        Finding::error("the idxd module is not installed for this kernel")
            .confirmed_by(Saying::MODULE_MISSING)
            .seen([not_loaded, directory])
            .fix(fix.then(kernel.install_modules()).then([load]))
    } else {
        let failed = kernel.message("idxd").map(Evidence::log);
        let fix = Fix::advice("Load it; if it does not stay, dmesg says why.");
        Finding::error("the idxd module is not loaded")
            .confirmed_by(Saying::MODULE_NOT_LOADED)
            .seen(std::iter::once(not_loaded).chain(failed))
            .fix(fix.then([load, "sudo dmesg | grep idxd"]))
    };
    finding.into()
}
