//! From a tree to a profile of all that there is, used or not.

use dray_idxd::{DeviceProfile, EngineProfile, GroupProfile, Profile, WorkQueueProfile};
use dray_spec::OpCap;

use crate::ConfigError;
use crate::tree::{Tree, TreeError, attribute};

/// More devices than any machine has, and more of a kind than the registers count.
const MAX_DEVICES: usize = 64;
const MAX_OF_A_KIND: usize = 256;

/// Reads every DSA of a tree: all groups, engines and work queues, in the order of their numbers.
///
/// # Errors
/// There is no driver, or an attribute that each kernel has cannot be read or holds garbage.
pub fn survey(tree: &dyn Tree) -> Result<Profile, ConfigError> {
    let names = match tree.names("bus/dsa/devices") {
        Ok(names) => names,
        Err(error) if error.is_missing() => {
            return Err(ConfigError::NoDriver { path: error.path });
        }
        Err(error) => return Err(error.into()),
    };
    let mut ids: Vec<u32> = names
        .iter()
        .filter_map(|name| name.strip_prefix("dsa")?.parse().ok())
        .collect();
    ids.sort_unstable();
    ids.truncate(MAX_DEVICES);
    let devices = ids.into_iter().map(|id| device(tree, &names, id));
    Ok(Profile::of(devices.collect::<Result<Vec<_>, _>>()?))
}

/// The attributes of one object.
struct Object<'a> {
    tree: &'a dyn Tree,
    name: String,
}

impl Object<'_> {
    /// The text of an attribute without its newline; none where the kernel has none, or where
    /// reading it is an error (`cdev_minor` of a queue without a node).
    fn text(&self, name: &str) -> Result<Option<String>, ConfigError> {
        let path = attribute(&self.name, name);
        let bytes = match self.tree.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let text = String::from_utf8_lossy(error.as_bytes());
                return Err(garbage(&path, &text, "text"));
            }
        };
        Ok(Some(text.trim_end_matches('\n').to_owned()))
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, ConfigError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let value = text.parse();
        value
            .map(Some)
            .map_err(|_| garbage(&attribute(&self.name, name), &text, "a decimal number"))
    }

    fn register(&self, name: &str) -> Result<Option<u64>, ConfigError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        let value = u64::from_str_radix(digits, 16);
        value
            .map(Some)
            .map_err(|_| garbage(&attribute(&self.name, name), &text, "a hexadecimal number"))
    }

    fn bitmap(&self, name: &str) -> Result<Option<OpCap>, ConfigError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let value = text.parse();
        value.map(Some).map_err(|_| {
            let expected = "words of 8 hexadecimal digits, separated by commas";
            garbage(&attribute(&self.name, name), &text, expected)
        })
    }

    /// An attribute that was renamed in 5.17.
    fn renamed(&self, name: &str, older: &str) -> Result<Option<i64>, ConfigError> {
        match self.integer(name)? {
            Some(value) => Ok(Some(value)),
            None => self.integer(older),
        }
    }
}

fn is_absent(error: &TreeError) -> bool {
    let raw = error.source.raw_os_error();
    error.is_missing() || matches!(raw, Some(6 | 95))
}

fn garbage(path: &str, text: &str, expected: &'static str) -> ConfigError {
    ConfigError::Garbage {
        path: path.to_owned(),
        value: text.chars().take(40).collect(),
        expected,
    }
}

fn device(tree: &dyn Tree, names: &[String], id: u32) -> Result<DeviceProfile, ConfigError> {
    let name = format!("dsa{id}");
    let object = Object {
        tree,
        name: name.clone(),
    };
    let indexes = |prefix: &str| {
        let prefix = format!("{prefix}{id}.");
        let mut indexes: Vec<u16> = names
            .iter()
            .filter_map(|name| name.strip_prefix(&prefix)?.parse().ok())
            .collect();
        indexes.sort_unstable();
        indexes.truncate(MAX_OF_A_KIND);
        indexes
    };
    let mut profile = DeviceProfile {
        dev: name,
        read_buffer_limit: object.renamed("read_buffer_limit", "token_limit")?,
        event_log_size: object.integer("event_log_size")?,
        max_groups: object.integer("max_groups")?,
        max_work_queues: object.integer("max_work_queues")?,
        max_engines: object.integer("max_engines")?,
        work_queue_size: object.integer("max_work_queues_size")?,
        numa_node: object.integer("numa_node")?,
        errors: object.text("errors")?.filter(|errors| {
            let is_zero = |letter: char| letter == '0' || letter == ',';
            !errors.chars().all(is_zero)
        }),
        op_cap: object.bitmap("op_cap")?,
        iaa_cap: None,
        gen_cap: object.register("gen_cap")?,
        version: object.register("version")?,
        state: object.text("state")?,
        max_read_buffers: object.renamed("max_read_buffers", "max_tokens")?,
        max_batch_size: object.integer("max_batch_size")?,
        ims_size: object.integer("ims_size")?,
        max_transfer_size: object.integer("max_transfer_size")?,
        configurable: object.integer("configurable")?,
        pasid_enabled: object.integer("pasid_enabled")?,
        cdev_major: object.integer("cdev_major")?,
        clients: object.integer("clients")?,
        ..DeviceProfile::default()
    };
    for index in indexes("group") {
        profile
            .groups
            .push(group(tree, format!("group{id}.{index}"))?);
    }
    let home = |group: Option<i64>| {
        let group = group.filter(|group| *group >= 0)?;
        Some(format!("group{id}.{group}"))
    };
    for index in indexes("wq") {
        let queue = work_queue(tree, format!("wq{id}.{index}"))?;
        let group = home(queue.group_id);
        let group = profile
            .groups
            .iter_mut()
            .find(|g| Some(&g.dev) == group.as_ref());
        match group {
            Some(group) => group.grouped_workqueues.push(queue),
            None => profile.ungrouped_workqueues.push(queue),
        }
    }
    for index in indexes("engine") {
        let dev = format!("engine{id}.{index}");
        let object = Object { tree, name: dev };
        let group_id = object.integer("group_id")?.filter(|group| *group >= 0);
        let engine = EngineProfile {
            dev: object.name,
            group_id,
        };
        let group = home(group_id);
        let group = profile
            .groups
            .iter_mut()
            .find(|g| Some(&g.dev) == group.as_ref());
        match group {
            Some(group) => group.grouped_engines.push(engine),
            None => profile.ungrouped_engines.push(engine),
        }
    }
    Ok(profile)
}

fn group(tree: &dyn Tree, dev: String) -> Result<GroupProfile, ConfigError> {
    let object = Object { tree, name: dev };
    let class = |name| Ok::<_, ConfigError>(object.integer(name)?.filter(|class| *class >= 0));
    Ok(GroupProfile {
        read_buffers_reserved: object.renamed("read_buffers_reserved", "tokens_reserved")?,
        use_read_buffer_limit: object.renamed("use_read_buffer_limit", "use_token_limit")?,
        read_buffers_allowed: object.renamed("read_buffers_allowed", "tokens_allowed")?,
        traffic_class_a: class("traffic_class_a")?,
        traffic_class_b: class("traffic_class_b")?,
        desc_progress_limit: object.integer("desc_progress_limit")?,
        batch_progress_limit: object.integer("batch_progress_limit")?,
        dev: object.name,
        ..GroupProfile::default()
    })
}

fn work_queue(tree: &dyn Tree, dev: String) -> Result<WorkQueueProfile, ConfigError> {
    let object = Object { tree, name: dev };
    Ok(WorkQueueProfile {
        mode: object.text("mode")?,
        size: object.integer("size")?,
        group_id: object.integer("group_id")?.filter(|group| *group >= 0),
        priority: object.integer("priority")?,
        block_on_fault: object.integer("block_on_fault")?,
        max_batch_size: object.integer("max_batch_size")?,
        max_transfer_size: object.integer("max_transfer_size")?,
        cdev_minor: object.integer("cdev_minor")?,
        kind: object.text("type")?,
        name: object.text("name")?,
        driver_name: object.text("driver_name")?,
        threshold: object.integer("threshold")?,
        prs_disable: object.integer("prs_disable")?,
        ats_disable: object.integer("ats_disable")?,
        op_config: object.bitmap("op_config")?,
        state: object.text("state")?,
        clients: object.integer("clients")?,
        dev: object.name,
    })
}
