//! Carrying a plan out: all of it, or nothing.

use dray_idxd::DeviceProfile;
use dray_idxd::driver::{CommandStatus, Driver};

use crate::directory::Directory;
use crate::plan::{AttributeWrite, Plan};
use crate::render::refresh;
use crate::tree::{Tree, attribute};
use crate::{ConfigError, TreeError};

/// Makes the writes of a plan. `before` is the model that the plan began with, `devices` what a
/// survey found; when the machine refuses what the model took, these are put back.
///
/// A plain directory gets the files as they are in the end.
///
/// # Errors
/// A write failed; the message says whether all was put back.
pub fn apply(
    tree: &mut Directory,
    plan: &Plan,
    before: &Driver,
    devices: &[DeviceProfile],
) -> Result<(), ConfigError> {
    if !tree.is_live() {
        return refresh(tree, before, plan.model()).map_err(ConfigError::from);
    }
    write_all(tree, plan.steps(), before, devices)
}

/// The same on anything that answers writes.
pub(crate) fn write_all(
    tree: &mut dyn Tree,
    steps: &[AttributeWrite],
    before: &Driver,
    devices: &[DeviceProfile],
) -> Result<(), ConfigError> {
    let mut done = before.clone();
    for step in steps {
        let result = tree.write(&step.path, step.value.as_bytes());
        let Err(error) = result else {
            // The plan has tried it on the same model.
            let _ = done.write(&step.path, step.value.as_bytes());
            continue;
        };
        if done_nothing(steps, step) {
            return Err(error.into());
        }
        let failure = explain(tree, &error, step);
        let mut back = Plan::new(done);
        let planned = back.put_back(devices);
        let second = planned.err().map(|error| error.to_string()).or_else(|| {
            let mut steps = back.steps().iter();
            let failed = steps.find_map(|step| tree.write(&step.path, step.value.as_bytes()).err());
            failed.map(|error| error.to_string())
        });
        return Err(match second {
            None => ConfigError::RolledBack { failure },
            Some(second) => ConfigError::HalfWay { failure, second },
        });
    }
    Ok(())
}

fn done_nothing(steps: &[AttributeWrite], step: &AttributeWrite) -> bool {
    steps.first().is_some_and(|first| std::ptr::eq(first, step))
}

/// The error of a write; after a bind with what `cmd_status` says.
fn explain(tree: &dyn Tree, error: &TreeError, step: &AttributeWrite) -> String {
    let value = &step.value;
    let text = format!("{value:?} cannot be written to {error}");
    if !step.path.ends_with("bind") {
        return text;
    }
    let number = value.trim_start_matches(|c: char| !c.is_ascii_digit());
    let device = format!("dsa{}", number.split('.').next().unwrap_or_default());
    let status = tree.read(&attribute(&device, "cmd_status")).ok();
    let status = status.and_then(|bytes| String::from_utf8(bytes).ok());
    let status = status.and_then(|text| {
        let digits = text.trim().trim_start_matches("0x").to_owned();
        u32::from_str_radix(&digits, 16).ok()
    });
    match status {
        Some(code) if code != 0 => format!("{text}: {}", CommandStatus(code)),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Assumed, model, survey, wanted};
    use dray_device::Hardware;
    use dray_idxd::driver::{Options, Part, Personality};
    use dray_idxd::{Profile, known_capabilities};

    /// A machine that refuses one file, once.
    struct Faulty {
        driver: Driver,
        refuse: String,
    }

    impl Tree for Faulty {
        fn read(&self, path: &str) -> Result<Vec<u8>, TreeError> {
            Tree::read(&self.driver, path)
        }

        fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), TreeError> {
            if path.ends_with(&self.refuse) && !self.refuse.is_empty() {
                self.refuse.clear();
                let source = std::io::Error::from_raw_os_error(5);
                return Err(TreeError::new(path, source));
            }
            Tree::write(&mut self.driver, path, bytes)
        }

        fn names(&self, path: &str) -> Result<Vec<String>, TreeError> {
            Tree::names(&self.driver, path)
        }
    }

    #[test]
    fn a_failed_write_restores_the_configuration() {
        for personality in Personality::ALL {
            let capabilities = known_capabilities(0x100).unwrap();
            let part = Part::new(0, Hardware::new(capabilities));
            let fresh = Driver::new(Options::new(personality), vec![part]);
            let profile = Profile::named("2e2w-s").unwrap();
            let mut plan = Plan::new(fresh);
            wanted::load(&mut plan, &profile.device_profiles()[0], true).unwrap();
            let machine = plan.into_model();
            // From two shared queues to one dedicated one.
            let before = survey(&machine).unwrap();
            let (start, refused) = model(
                &before,
                Assumed {
                    kernel: Some(personality),
                },
            );
            assert_eq!(refused, []);
            let mut plan = Plan::new(start.clone());
            plan.disable_device("dsa0", false).unwrap();
            let profile = Profile::named("1e1w-d").unwrap();
            wanted::load(&mut plan, &profile.device_profiles()[0], true).unwrap();
            for step in plan.steps() {
                let mut tree = Faulty {
                    driver: machine.clone(),
                    refuse: step.path.clone(),
                };
                let devices = before.device_profiles();
                let error = write_all(&mut tree, plan.steps(), &start, devices).unwrap_err();
                let first = done_nothing(plan.steps(), step);
                match (&error, first) {
                    (ConfigError::Tree(_), true) | (ConfigError::RolledBack { .. }, false) => {}
                    _ => panic!("{}: {error}", step.path),
                }
                assert_eq!(survey(&tree.driver).unwrap(), before, "{}", step.path);
            }
            let mut tree = Faulty {
                driver: machine.clone(),
                refuse: String::new(),
            };
            write_all(&mut tree, plan.steps(), &start, before.device_profiles()).unwrap();
            assert_eq!(survey(&tree.driver).unwrap(), survey(plan.model()).unwrap());
        }
    }

    /// The kernel trims what it is given, so that an empty line takes a driver's name away.
    #[test]
    fn restoring_a_queue_without_driver_name_clears_the_name() {
        let capabilities = known_capabilities(0x100).unwrap();
        let part = Part::new(0, Hardware::new(capabilities));
        let personality = Personality::ALL.into_iter();
        for personality in personality.filter(|kernel| kernel.has_driver_name()) {
            let mut machine = Driver::new(Options::new(personality), vec![part.clone()]);
            let before = survey(&machine).unwrap();
            let (start, _) = model(
                &before,
                Assumed {
                    kernel: Some(personality),
                },
            );
            let mut plan = Plan::new(start);
            let profile = Profile::named("1e1w-d").unwrap();
            wanted::load(&mut plan, &profile.device_profiles()[0], true).unwrap();
            plan.put_back(before.device_profiles()).unwrap();
            for step in plan.steps() {
                Tree::write(&mut machine, &step.path, step.value.as_bytes()).unwrap();
            }
            assert_eq!(plan.value("wq0.0", "driver_name").as_deref(), Some(""));
            assert_eq!(survey(&machine).unwrap(), before);
        }
    }
}
