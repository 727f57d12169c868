//! From a wanted configuration to the writes that make it.

use dray_idxd::driver::{Errno, When};
use dray_idxd::{DeviceProfile, GroupProfile, WorkQueueProfile};

use crate::ConfigError;
use crate::error::Refused;
use crate::plan::Plan;

/// Settings of one object, as the command line gives them: names of attributes and their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// `dsa0`, `group0.0`, `engine0.0` or `wq0.0`.
    pub object: String,
    /// Attributes and values, in any order.
    pub values: Vec<(&'static str, String)>,
}

/// The order in which a queue's attributes must be written: a new type clears the name, dedicated
/// clears the threshold, which is at most the size; page requests decide about block on fault.
const ORDER: &[&str] = &[
    "group_id",
    "mode",
    "size",
    "threshold",
    "type",
    "name",
    "driver_name",
    "priority",
    "prs_disable",
    "block_on_fault",
    "max_batch_size",
    "max_transfer_size",
    "ats_disable",
    "op_config",
];

/// Plans a change of one object.
///
/// # Errors
/// What the driver would refuse.
pub fn change(plan: &mut Plan, change: &Change) -> Result<(), ConfigError> {
    let mut values = change.values.clone();
    let place = |name: &str| ORDER.iter().position(|other| *other == name);
    values.sort_by_key(|(name, _)| place(name));
    for (name, value) in values {
        let result = plan.set(&change.object, name, value);
        result.map_err(ConfigError::Refused)?;
    }
    Ok(())
}

/// Plans the configuration of a profile for a device, which is disabled. Queues and engines that the profile
/// does not name get no group and no entries.
///
/// # Errors
/// What the driver would refuse.
pub fn load(plan: &mut Plan, device: &DeviceProfile, enable: bool) -> Result<(), ConfigError> {
    configure(plan, device, true).map_err(ConfigError::Refused)?;
    if enable {
        let result = plan.bind("idxd", &device.dev);
        result.map_err(ConfigError::Refused)?;
        for queue in grouped(device) {
            let result = bind_queue(plan, queue);
            result.map_err(ConfigError::Refused)?;
        }
    }
    Ok(())
}

/// Brings a device to what a profile says, state included; for what has been so already.
pub(crate) fn restore(plan: &mut Plan, device: &DeviceProfile) -> Vec<Refused> {
    let mut refused = Vec::new();
    // Buffers before engines: the driver looks at the number of engines when buffers are set, and takes more engines
    // later.
    let restored = configure_device(plan, device)
        .and_then(|()| configure_groups(plan, &device.groups))
        .and_then(|()| configure_members(plan, device, false));
    refused.extend(restored.err());
    let is_enabled = |state: &Option<String>| state.as_deref() == Some("enabled");
    if is_enabled(&device.state) && refused.is_empty() {
        refused.extend(plan.bind("idxd", &device.dev).err());
        for queue in grouped(device).filter(|queue| is_enabled(&queue.state)) {
            refused.extend(bind_queue(plan, queue).err());
        }
    }
    refused
}

fn grouped(device: &DeviceProfile) -> impl Iterator<Item = &WorkQueueProfile> {
    let groups = device.groups.iter();
    groups.flat_map(|group| &group.grouped_workqueues)
}

fn bind_queue(plan: &mut Plan, queue: &WorkQueueProfile) -> Result<(), Refused> {
    match queue.driver(plan.model().options().personality) {
        Some(driver) => plan.bind(driver, &queue.dev),
        None => Err(Refused {
            path: crate::tree::attribute(&queue.dev, "type"),
            value: queue.kind.clone().unwrap_or_default(),
            errno: Errno::ENODEV,
            when: None,
            status: None,
        }),
    }
}

fn by_type(kind: Option<&str>) -> Option<&'static str> {
    match kind {
        Some("user") => Some("user"),
        Some("kernel") => Some("dmaengine"),
        _ => None,
    }
}

/// `infer` gives queues without `driver_name` the one of their type, where the kernel requires one.
fn configure(plan: &mut Plan, device: &DeviceProfile, infer: bool) -> Result<(), Refused> {
    configure_device(plan, device)?;
    configure_members(plan, device, infer)?;
    configure_groups(plan, &device.groups)
}

fn configure_device(plan: &mut Plan, device: &DeviceProfile) -> Result<(), Refused> {
    let dev = &device.dev;
    if let Some(limit) = device.read_buffer_limit {
        plan.set(dev, "read_buffer_limit", limit)?;
    }
    if let Some(entries) = device.event_log_size {
        optional(plan, dev, "event_log_size", entries, 0)?;
    }
    Ok(())
}

/// Queues and engines. `infer` is that of [`configure`].
fn configure_members(plan: &mut Plan, device: &DeviceProfile, infer: bool) -> Result<(), Refused> {
    let dev = &device.dev;
    let number = dev.trim_start_matches("dsa");
    let queues = || grouped(device).chain(&device.ungrouped_workqueues);
    // Entries are given back before they are given out.
    for index in 0..plan.number(dev, "max_work_queues").unwrap_or(0) {
        let name = format!("wq{number}.{index}");
        let queue = queues().find(|queue| queue.dev == name);
        let size = queue.and_then(|queue| queue.size).unwrap_or(0);
        if plan.number(&name, "size").is_some_and(|now| now > size) {
            plan.set(&name, "size", size)?;
        }
        if queue.is_none() {
            plan.set(&name, "group_id", -1)?;
        }
    }
    let homes = device.groups.iter().flat_map(|group| {
        let home = group.dev.rsplit_once('.').map_or("-1", |(_, index)| index);
        let engines = group.grouped_engines.iter();
        engines.map(move |engine| (engine.dev.as_str(), home))
    });
    let homes: Vec<(&str, &str)> = homes.collect();
    for index in 0..plan.number(dev, "max_engines").unwrap_or(0) {
        let name = format!("engine{number}.{index}");
        let home = homes.iter().find(|(engine, _)| *engine == name);
        plan.set(&name, "group_id", home.map_or("-1", |(_, home)| home))?;
    }
    for group in &device.groups {
        let home = group.dev.rsplit_once('.').map_or("-1", |(_, index)| index);
        for queue in &group.grouped_workqueues {
            configure_queue(plan, queue, home, infer)?;
        }
    }
    for queue in &device.ungrouped_workqueues {
        configure_queue(plan, queue, "-1", infer)?;
    }
    Ok(())
}

fn configure_queue(
    plan: &mut Plan,
    queue: &WorkQueueProfile,
    home: &str,
    infer: bool,
) -> Result<(), Refused> {
    let dev = &queue.dev;
    plan.set(dev, "group_id", home)?;
    if let Some(mode) = &queue.mode {
        plan.set(dev, "mode", mode)?;
    }
    if let Some(size) = queue.size {
        plan.set(dev, "size", size)?;
    }
    if infer && home != "-1" && queue.size.unwrap_or(0) == 0 {
        plan.note(format!(
            "{dev}: without a size the driver gives it 16 entries"
        ));
    }
    let shared = plan.value(dev, "mode").as_deref() == Some("shared");
    match queue.threshold.filter(|threshold| *threshold != 0) {
        Some(threshold) if shared => plan.set(dev, "threshold", threshold)?,
        Some(threshold) => plan.note(format!(
            "{dev}: threshold {threshold} is left out, a dedicated work queue has none"
        )),
        None => {}
    }
    if let Some(kind) = &queue.kind {
        plan.set(dev, "type", kind)?;
    }
    if let Some(name) = queue.name.as_ref().filter(|name| !name.is_empty()) {
        plan.set(dev, "name", name)?;
    }
    let given = queue.driver_name.as_deref().filter(|name| !name.is_empty());
    let typed = by_type(queue.kind.as_deref());
    if let (true, Some(given), Some(typed)) = (infer, given, typed)
        && given != typed
    {
        let kernel = plan.model().options().personality;
        let takes = queue.driver(kernel).unwrap_or_default();
        let type_is = queue.kind.as_deref().unwrap_or_default();
        plan.note(format!(
            "{dev}: its type is {type_is} and its driver_name {given}: the driver {takes} takes it"
        ));
    }
    let now = plan.value(dev, "driver_name");
    if now.is_some()
        && let Some(name) = given.or(typed.filter(|_| infer))
    {
        plan.set(dev, "driver_name", name)?;
    } else if !infer
        && queue.driver_name.as_deref() == Some("")
        && now.is_some_and(|now| !now.is_empty())
    {
        // A write of no bytes is none; the kernel trims a line that is empty.
        plan.set(dev, "driver_name", "\n")?;
    }
    if let Some(priority) = queue.priority {
        plan.set(dev, "priority", priority)?;
    }
    if let Some(value) = queue.prs_disable.filter(|value| *value >= 0) {
        optional(plan, dev, "prs_disable", value, 0)?;
    }
    if let Some(value) = queue.block_on_fault {
        plan.set(dev, "block_on_fault", value)?;
    }
    if let Some(value) = queue.max_batch_size {
        set_rounded(plan, dev, "max_batch_size", value)?;
    }
    if let Some(value) = queue.max_transfer_size {
        set_rounded(plan, dev, "max_transfer_size", value)?;
    }
    if let Some(value) = queue.ats_disable.filter(|value| *value >= 0) {
        optional(plan, dev, "ats_disable", value, 0)?;
    }
    if let Some(operations) = queue.op_config {
        match plan.value(dev, "op_config") {
            Some(_) => plan.set(dev, "op_config", operations)?,
            None => plan.note(format!("{dev}: op_config is left out, the kernel has none")),
        }
    }
    Ok(())
}

/// The driver rounds up to a power of two; what it has already is not written again.
fn set_rounded(plan: &mut Plan, dev: &str, name: &str, value: i64) -> Result<(), Refused> {
    let rounded = u64::try_from(value)
        .ok()
        .and_then(u64::checked_next_power_of_two);
    let now = plan
        .number(dev, name)
        .and_then(|now| u64::try_from(now).ok());
    match rounded.is_some() && rounded == now {
        true => Ok(()),
        false => plan.set(dev, name, value),
    }
}

/// Writes an attribute that not every kernel has; a value that changes nothing is no loss.
fn optional(
    plan: &mut Plan,
    dev: &str,
    name: &str,
    value: i64,
    without: i64,
) -> Result<(), Refused> {
    if plan.value(dev, name).is_some() {
        return plan.set(dev, name, value);
    }
    if value != without {
        plan.note(format!(
            "{dev}: {name} {value} is left out, there is no such attribute here"
        ));
    }
    Ok(())
}

fn configure_groups(plan: &mut Plan, groups: &[GroupProfile]) -> Result<(), Refused> {
    // As with entries: what is reserved less comes first.
    let reserved = |group: &GroupProfile| group.read_buffers_reserved;
    for shrink in [true, false] {
        for group in groups {
            let Some(value) = reserved(group) else {
                continue;
            };
            let now = plan.number(&group.dev, "read_buffers_reserved");
            if now.is_some_and(|now| now > value) == shrink {
                plan.set(&group.dev, "read_buffers_reserved", value)?;
            }
        }
    }
    for group in groups {
        let dev = &group.dev;
        // 0 is what kernels before 6.2 show for all; none takes it for a group with engines.
        let allowed = group.read_buffers_allowed.filter(|allowed| *allowed != 0);
        if let Some(allowed) = allowed {
            plan.set(dev, "read_buffers_allowed", allowed)?;
        }
        if let Some(value) = group.use_read_buffer_limit {
            plan.set(dev, "use_read_buffer_limit", value)?;
        }
        for (name, class) in [
            ("traffic_class_a", group.traffic_class_a),
            ("traffic_class_b", group.traffic_class_b),
        ] {
            let Some(class) = class else {
                continue;
            };
            match plan.set(dev, name, class) {
                Err(refused) if refused.when == Some(When::FixedTrafficClasses) => {
                    let now = plan.value(dev, name).unwrap_or_default();
                    plan.note(format!(
                        "{dev}: {name} stays {now}, not {class}: {}",
                        When::FixedTrafficClasses.describe()
                    ));
                }
                result => result?,
            }
        }
        for (name, limit) in [
            ("desc_progress_limit", group.desc_progress_limit),
            ("batch_progress_limit", group.batch_progress_limit),
        ] {
            if let Some(limit) = limit {
                optional(plan, dev, name, limit, 0)?;
            }
        }
    }
    Ok(())
}

impl Plan {
    /// Disables a device and all its queues, if it is enabled.
    ///
    /// # Errors
    /// It is not there, or someone uses it and `force` is not set.
    pub fn disable_device(&mut self, dev: &str, force: bool) -> Result<(), ConfigError> {
        let clients = self.value(dev, "clients").unwrap_or_default();
        if clients != "0" && !force {
            return Err(ConfigError::InUse {
                name: dev.to_owned(),
                clients,
            });
        }
        match self.is_bound(dev, "idxd") {
            true => self.unbind("idxd", dev).map_err(ConfigError::Refused),
            false => Ok(()),
        }
    }

    /// Enables a device.
    ///
    /// # Errors
    /// What the driver would refuse.
    pub fn enable_device(&mut self, dev: &str) -> Result<(), ConfigError> {
        self.bind("idxd", dev).map_err(ConfigError::Refused)
    }

    /// Enables a work queue, by the driver of its name or its type. A queue without a driver name gets one first
    /// where the kernel requires it.
    ///
    /// # Errors
    /// What the driver would refuse.
    pub fn enable_queue(&mut self, wq: &str) -> Result<(), ConfigError> {
        let kind = self.value(wq, "type");
        let driver = match (self.value(wq, "driver_name"), by_type(kind.as_deref())) {
            (Some(name), _) if !name.is_empty() => name,
            (Some(_), Some(driver)) => {
                let result = self.set(wq, "driver_name", driver);
                result.map_err(ConfigError::Refused)?;
                driver.to_owned()
            }
            (_, driver) => driver.unwrap_or("user").to_owned(),
        };
        let known = ["user", "dmaengine"].contains(&driver.as_str());
        if !known {
            return Err(ConfigError::Refused(Refused {
                path: crate::tree::attribute(wq, "driver_name"),
                value: driver,
                errno: Errno::ENODEV,
                when: None,
                status: None,
            }));
        }
        self.bind(&driver, wq).map_err(ConfigError::Refused)
    }

    /// Disables a work queue, if it is enabled.
    ///
    /// # Errors
    /// Someone uses it, and `force` is not set.
    pub fn disable_queue(&mut self, wq: &str, force: bool) -> Result<(), ConfigError> {
        let clients = self.value(wq, "clients").unwrap_or_default();
        if clients != "0" && !force {
            return Err(ConfigError::InUse {
                name: wq.to_owned(),
                clients,
            });
        }
        for driver in ["user", "dmaengine"] {
            if self.is_bound(wq, driver) {
                self.unbind(driver, wq).map_err(ConfigError::Refused)?;
            }
        }
        Ok(())
    }

    /// Brings devices to what they were: each is disabled, configured as the profile says, and
    /// enabled if it was.
    ///
    /// # Errors
    /// The first thing that the driver would refuse.
    pub fn put_back(&mut self, before: &[DeviceProfile]) -> Result<(), ConfigError> {
        for device in before {
            self.disable_device(&device.dev, true)?;
            if let Some(refused) = restore(self, device).into_iter().next() {
                return Err(ConfigError::Refused(refused));
            }
        }
        Ok(())
    }
}
