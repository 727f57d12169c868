//! The machine that is set up, and how a plan reaches it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use dray_config::{
    Assumed, ConfigError, Directory, Journal, Plan, apply, model, render, session_state, survey,
    sysfs_root,
};
use dray_idxd::driver::{Driver, Options, Part, Personality};
use dray_idxd::{DeviceProfile, Profile, known_capabilities};
use dray_output::quoted;

use crate::complain::Usage;

/// A tree, what is in it, and its model.
pub(super) struct SysfsTree {
    tree: Directory,
    pub(super) profile: Profile,
    model: Driver,
}

impl SysfsTree {
    /// Looks at the machine, or at the tree that `DRAY_SYSFS_PATH` names.
    pub(super) fn look() -> anyhow::Result<SysfsTree> {
        let root = sysfs_root();
        let tree = Directory::open(&root).map_err(ConfigError::from)?;
        let profile = survey(&tree)?;
        let kernel = match root == Path::new("/sys") {
            true => fs::read_to_string("/proc/sys/kernel/osrelease").ok(),
            false => None,
        };
        let kernel = kernel.and_then(|release| release.trim().parse().ok());
        let (model, refused) = model(&profile, Assumed { kernel });
        for refused in refused {
            eprintln!("warning: the machine has what its model refuses: {refused}");
        }
        Ok(SysfsTree {
            tree,
            profile,
            model,
        })
    }

    /// The kernel whose rules the model has.
    pub(super) fn kernel(&self) -> Personality {
        self.model.options().personality
    }

    /// A plan that begins here.
    pub(super) fn plan(&self) -> Plan {
        Plan::new(self.model.clone())
    }

    /// The device with a name.
    pub(super) fn device(&self, name: &str) -> anyhow::Result<&DeviceProfile> {
        let devices = self.profile.device_profiles();
        match devices.iter().find(|device| device.dev == name) {
            Some(device) => Ok(device),
            None => {
                let names: Vec<&str> = devices.iter().map(|device| device.dev.as_str()).collect();
                let there = match names.as_slice() {
                    [] => "no DSA is here".to_owned(),
                    names => format!("there are {}", names.join(", ")),
                };
                let name = name.to_owned();
                Err(ConfigError::NoDevice { name, there }.into())
            }
        }
    }

    /// Applies a plan, and stores the former configuration for `--undo`.
    pub(super) fn make(mut self, plan: &Plan, dry_run: bool) -> anyhow::Result<()> {
        for note in plan.notes() {
            eprintln!("note: {note}");
        }
        if dry_run {
            for step in plan.steps() {
                let path = self.tree.root().join(&step.path).display().to_string();
                println!("echo {} > {}", quoted(&step.value), quoted(&path));
            }
            return Ok(());
        }
        if plan.steps().is_empty() {
            eprintln!("nothing to do: all is so already");
            return Ok(());
        }
        let devices = self.touched(plan);
        let journal = self.journal();
        // Without a place to keep it, a change is better not made than not taken back.
        journal.keep(&devices)?;
        if !self.tree.is_live() {
            let root = self.tree.root().display();
            eprintln!("note: {root} is a plain directory; dray decides what its driver would do");
        }
        apply(&mut self.tree, plan, &self.model, &devices)?;
        for line in done(plan) {
            eprintln!("{line}");
        }
        Ok(())
    }

    fn journal(&self) -> Journal {
        let identity = self.tree.identity();
        let directory = match self.tree.is_live() {
            true => state(),
            false => state_directory(),
        };
        Journal::new(&directory, self.tree.root(), identity.as_deref())
    }

    /// The devices that a plan writes to.
    fn touched(&self, plan: &Plan) -> Vec<DeviceProfile> {
        let object = |step: &dray_config::AttributeWrite| {
            let name = match step.path.strip_prefix("bus/dsa/devices/") {
                Some(rest) => rest.split('/').next().unwrap_or_default().to_owned(),
                None => step.value.clone(),
            };
            let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            let number = digits.split('.').next().unwrap_or_default();
            format!("dsa{number}")
        };
        let names: Vec<String> = plan.steps().iter().map(object).collect();
        let devices = self.profile.device_profiles().iter();
        let touched = devices.filter(|device| names.contains(&device.dev));
        touched.cloned().collect()
    }
}

/// What a plan has done, all of it: devices and work queues that were disabled and enabled, and the others
/// whose attributes were written.
fn done(plan: &Plan) -> Vec<String> {
    let steps = || plan.steps().iter();
    let bound = |to: &str, kind: &str| -> Vec<&str> {
        let binds = steps().filter(|step| step.path.rsplit('/').next() == Some(to));
        let values = binds.map(|step| step.value.as_str());
        values.filter(|value| value.starts_with(kind)).collect()
    };
    let mut written: Vec<&str> = Vec::new();
    for step in steps() {
        let object = step.path.strip_prefix("bus/dsa/devices/");
        let object = object.and_then(|rest| rest.split('/').next());
        if let Some(object) = object.filter(|object| !written.contains(object)) {
            written.push(object);
        }
    }
    let line = |what: &str, to: &str, kind: &str, nouns: [&str; 2]| {
        let names = bound(to, kind);
        let (count, noun) = (names.len(), nouns[usize::from(names.len() != 1)]);
        (count > 0).then(|| format!("{what} {count} of {count} {noun}: {}", names.join(", ")))
    };
    let (devices, queues) = (["device", "devices"], ["work queue", "work queues"]);
    // In the order in which it was done.
    let lines = [
        line("disabled", "unbind", "wq", queues),
        line("disabled", "unbind", "dsa", devices),
        (!written.is_empty()).then(|| format!("configured {}", written.join(", "))),
        line("enabled", "bind", "dsa", devices),
        line("enabled", "bind", "wq", queues),
    ];
    lines.into_iter().flatten().collect()
}

/// Where the journals of live trees are.
pub(super) fn state() -> PathBuf {
    session_state().unwrap_or_else(state_directory)
}

fn state_directory() -> PathBuf {
    if let Some(directory) = env::var_os("DRAY_STATE_DIR") {
        return directory.into();
    }
    if let Some(directory) = env::var_os("XDG_STATE_HOME") {
        return PathBuf::from(directory).join("dray");
    }
    match env::var_os("HOME") {
        Some(home) => PathBuf::from(home).join(".local/state/dray"),
        None => PathBuf::from("/var/lib/dray"),
    }
}

/// Puts back what was there before the last change.
pub(super) fn undo(dry_run: bool) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let before = machine.journal().kept()?;
    for device in &before {
        machine.device(&device.dev)?;
    }
    let mut plan = machine.plan();
    plan.put_back(&before)?;
    machine.make(&plan, dry_run)
}

/// Makes a tree without a machine.
pub(super) fn new_tree(
    directory: &Path,
    kernel: &str,
    version: u32,
    devices: u32,
) -> anyhow::Result<()> {
    let personality: Personality = kernel.parse().map_err(|error| {
        let known = Personality::ALL.map(|known| known.to_string());
        let hint = dray_suggest::suggest(kernel, known.iter().map(String::as_str));
        Usage::error(format!("{error}"), hint)
    })?;
    let capabilities = known_capabilities(version * 0x100).context("a version that is known")?;
    let hardware = dray_config::hardware(capabilities);
    let parts = (0..devices).map(|index| Part::new(2 * index, hardware.clone()));
    let driver = Driver::new(Options::new(personality), parts.collect());
    render(&driver, directory).map_err(ConfigError::from)?;
    Ok(())
}
