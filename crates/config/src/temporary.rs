//! A configuration for a while: put back when it is no longer needed.

use std::path::Path;

use dray_idxd::driver::{Driver, Personality};
use dray_idxd::{DeviceProfile, EngineProfile, GroupProfile, WorkQueueProfile};

use crate::tree::{Tree, attribute};
use crate::{
    Assumed, ConfigError, Directory, Journal, Plan, apply, check, fit, load, model, survey,
};

/// A device that is configured for a while. Dropping it puts back what was there before;
/// [`TemporaryConfig::put_back`] does so and tells whether it could.
///
/// While it lasts, what was there before is also in the journal: if the process is killed, `dray config
/// --undo` puts it back.
#[derive(Debug)]
pub struct TemporaryConfig {
    tree: Directory,
    device: String,
    /// What a survey found before the first change.
    before: Vec<DeviceProfile>,
    /// The machine as it is now.
    model: Driver,
    kernel: Option<Personality>,
    journal: Journal,
    /// What the journal had kept of an earlier change.
    older: Option<Vec<DeviceProfile>>,
    changed: bool,
}

impl TemporaryConfig {
    /// Looks at the tree at `root` and takes a device: `device`, or the first that nobody uses. `state`
    /// is the directory of the journal. Nothing is written to the device yet.
    ///
    /// # Errors
    /// There is no such device, or a program uses it.
    pub fn begin(
        root: &Path,
        state: &Path,
        device: Option<&str>,
    ) -> Result<TemporaryConfig, ConfigError> {
        let tree = Directory::open(root)?;
        let profile = survey(&tree)?;
        let kernel = match root == Path::new("/sys") {
            true => std::fs::read_to_string("/proc/sys/kernel/osrelease").ok(),
            false => None,
        };
        let kernel = kernel.and_then(|release| release.trim().parse().ok());
        let (model, _) = model(&profile, Assumed { kernel });
        let devices = profile.device_profiles();
        let clients = |device: &DeviceProfile| {
            let bytes = tree.read(&attribute(&device.dev, "clients")).ok();
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            text.map_or(0, |text| text.trim().parse::<u64>().unwrap_or(0))
        };
        let found = match device {
            Some(name) => devices.iter().find(|device| device.dev == name),
            None => devices
                .iter()
                .find(|device| clients(device) == 0)
                .or(devices.first()),
        };
        let Some(found) = found else {
            let names: Vec<&str> = devices.iter().map(|device| device.dev.as_str()).collect();
            return Err(ConfigError::NoDevice {
                name: device.unwrap_or("dsa0").to_owned(),
                there: match names.as_slice() {
                    [] => "no DSA is here".to_owned(),
                    names => format!("there are {}", names.join(", ")),
                },
            });
        };
        let clients = clients(found);
        if clients > 0 {
            return Err(ConfigError::InUse {
                name: found.dev.clone(),
                clients: clients.to_string(),
            });
        }
        let journal = Journal::new(state, tree.root(), tree.identity().as_deref());
        Ok(TemporaryConfig {
            device: found.dev.clone(),
            before: vec![found.clone()],
            older: journal.kept().ok(),
            tree,
            model,
            kernel,
            journal,
            changed: false,
        })
    }

    /// Name of the device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// What the device was before, and what it can do.
    pub fn before(&self) -> &DeviceProfile {
        &self.before[0]
    }

    /// Configures the device as a profile of any device says, and enables it with its queues. If that
    /// fails, what was there before the first change is there again.
    ///
    /// # Errors
    /// What the device or its driver would refuse, or did refuse.
    pub fn configure(&mut self, profile: &DeviceProfile) -> Result<(), ConfigError> {
        let (fitted, _) = fit(&named(profile, &self.device), self.before());
        check(&fitted.dev, std::slice::from_ref(&fitted))?;
        let mut plan = Plan::new(self.model.clone());
        plan.disable_device(&self.device, true)?;
        load(&mut plan, &fitted, true)?;
        if !self.changed {
            self.journal.keep(&self.before)?;
            self.changed = true;
        }
        let applied = apply(&mut self.tree, &plan, &self.model, &self.before);
        match applied {
            Ok(()) => {
                self.model = plan.into_model();
                Ok(())
            }
            Err(error) => {
                // What it is now, the machine says.
                if let Ok(profile) = survey(&self.tree) {
                    let kernel = self.kernel;
                    self.model = model(&profile, Assumed { kernel }).0;
                }
                Err(error)
            }
        }
    }

    /// Puts back what was there before the first change.
    ///
    /// # Errors
    /// The machine refuses it; `dray config --undo` tries again.
    pub fn put_back(&mut self) -> Result<(), ConfigError> {
        if !self.changed {
            return Ok(());
        }
        let mut plan = Plan::new(self.model.clone());
        plan.put_back(&self.before)?;
        apply(&mut self.tree, &plan, &self.model, &self.before)?;
        self.model = plan.into_model();
        self.changed = false;
        match &self.older {
            Some(older) => self.journal.keep(older),
            None => self.journal.forget(),
        }
    }
}

impl Drop for TemporaryConfig {
    fn drop(&mut self) {
        // Nobody is left to tell; the journal still has it then.
        let _ = self.put_back();
    }
}

/// A profile under the name of another device.
fn named(profile: &DeviceProfile, device: &str) -> DeviceProfile {
    let number = device.trim_start_matches("dsa");
    // The part before the number, and the number within the device.
    let renamed = |name: &str| {
        let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let index = name.rsplit_once('.').map_or("0", |(_, index)| index);
        format!("{kind}{number}.{index}")
    };
    let queue = |queue: &WorkQueueProfile| WorkQueueProfile {
        dev: renamed(&queue.dev),
        ..queue.clone()
    };
    let engine = |engine: &EngineProfile| EngineProfile {
        dev: renamed(&engine.dev),
        ..engine.clone()
    };
    let group = |group: &GroupProfile| GroupProfile {
        dev: renamed(&group.dev),
        grouped_workqueues: group.grouped_workqueues.iter().map(queue).collect(),
        grouped_engines: group.grouped_engines.iter().map(engine).collect(),
        ..group.clone()
    };
    DeviceProfile {
        dev: device.to_owned(),
        groups: profile.groups.iter().map(group).collect(),
        ungrouped_workqueues: profile.ungrouped_workqueues.iter().map(queue).collect(),
        ungrouped_engines: profile.ungrouped_engines.iter().map(engine).collect(),
        ..profile.clone()
    }
}
