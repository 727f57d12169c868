//! A configuration for a while: put back when it is no longer needed.

use std::path::Path;

use dray_idxd::driver::{Driver, Personality};
use dray_idxd::{DeviceProfile, EngineProfile, GroupProfile, WorkQueueProfile};

use crate::tree::{Tree, attribute};
use crate::{
    Assumed, ConfigError, Directory, Journal, Plan, apply, check, fit, load, model, survey,
};

/// A device, or several, configured for a while. Dropping it puts back what was there before;
/// [`TemporaryConfig::put_back`] does so and says whether it could.
///
/// While it lasts, what was there before is also in the journal: if the process is killed, `dray config
/// --undo` puts it back.
#[derive(Debug)]
pub struct TemporaryConfig {
    tree: Directory,
    /// What a survey found before the first change, of each device that was taken.
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
    /// Looks at the tree at `root` and takes a device: `device`, or the first that is not in use. `state`
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
        let found = match device {
            Some(name) => devices.iter().find(|device| device.dev == name),
            None => devices
                .iter()
                .find(|device| clients(&tree, device) == 0)
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
        let clients = clients(&tree, found);
        if clients > 0 {
            return Err(ConfigError::InUse {
                name: found.dev.clone(),
                clients: clients.to_string(),
            });
        }
        let journal = Journal::new(state, tree.root(), tree.identity().as_deref());
        Ok(TemporaryConfig {
            before: vec![found.clone()],
            older: journal.kept().ok(),
            tree,
            model,
            kernel,
            journal,
            changed: false,
        })
    }

    /// Takes more devices that are not in use, until there are `count` in all, those on the node of the
    /// first one before others: how many there are then.
    ///
    /// # Errors
    /// The tree cannot be read, the journal not written.
    pub fn take(&mut self, count: usize) -> Result<usize, ConfigError> {
        if self.before.len() >= count {
            return Ok(self.before.len());
        }
        let profile = survey(&self.tree)?;
        let mut free: Vec<&DeviceProfile> = profile
            .device_profiles()
            .iter()
            .filter(|device| self.devices().all(|taken| taken != device.dev))
            .filter(|device| clients(&self.tree, device) == 0)
            .collect();
        let node = self.before().numa_node;
        free.sort_by_key(|device| device.numa_node != node);
        free.truncate(count - self.before.len());
        self.before.extend(free.into_iter().cloned());
        if self.changed {
            self.journal.keep(&self.before)?;
        }
        Ok(self.before.len())
    }

    /// Name of the first device.
    pub fn device(&self) -> &str {
        &self.before[0].dev
    }

    /// Names of all devices, in the order in which they were taken.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.before.iter().map(|device| device.dev.as_str())
    }

    /// What the first device was before, and what it can do.
    pub fn before(&self) -> &DeviceProfile {
        &self.before[0]
    }

    /// Configures the first device as a profile of any device says, and enables it with its queues. If
    /// that fails, what was there before the first change is there again.
    ///
    /// # Errors
    /// What the device or its driver would refuse, or did refuse.
    pub fn configure(&mut self, profile: &DeviceProfile) -> Result<(), ConfigError> {
        self.configure_all(std::slice::from_ref(profile))
    }

    /// The same with a profile for each of the first devices. Devices without one stay as they are.
    ///
    /// # Errors
    /// As [`configure`](TemporaryConfig::configure).
    pub fn configure_all(&mut self, profiles: &[DeviceProfile]) -> Result<(), ConfigError> {
        let mut plan = Plan::new(self.model.clone());
        for (profile, before) in profiles.iter().zip(&self.before) {
            let (fitted, _) = fit(&named(profile, &before.dev), before);
            let kernel = self.model.options().personality;
            check(&fitted.dev, std::slice::from_ref(&fitted), kernel)?;
            plan.disable_device(&before.dev, true)?;
            load(&mut plan, &fitted, true)?;
        }
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
                // It is reported that the writing failed, not the reading.
                let _ = self.look();
                Err(error)
            }
        }
    }

    /// Takes the model from what the machine says that it is now.
    fn look(&mut self) -> Result<(), ConfigError> {
        let profile = survey(&self.tree)?;
        let kernel = self.kernel;
        self.model = model(&profile, Assumed { kernel }).0;
        Ok(())
    }

    /// Puts back what was there before the first change.
    ///
    /// # Errors
    /// The machine refuses it; `dray config --undo` tries again.
    pub fn put_back(&mut self) -> Result<(), ConfigError> {
        if !self.changed {
            return Ok(());
        }
        // Another program may have changed it meanwhile. If it cannot be read, what was last known counts.
        let _ = self.look();
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
        // No caller is left for the error; the journal still has it then.
        let _ = self.put_back();
    }
}

/// Programs that use a device; 0 where the kernel does not say.
fn clients(tree: &Directory, device: &DeviceProfile) -> u64 {
    let bytes = tree.read(&attribute(&device.dev, "clients")).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.map_or(0, |text| text.trim().parse().unwrap_or(0))
}

/// The devices of the tree at `root` that no program uses; none where there is no driver.
pub fn free_devices(root: &Path) -> Vec<DeviceProfile> {
    let Ok(tree) = Directory::open(root) else {
        return Vec::new();
    };
    let devices = survey(&tree).map(|profile| profile.device_profiles().to_vec());
    let mut devices = devices.unwrap_or_default();
    devices.retain(|device| clients(&tree, device) == 0);
    devices
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
