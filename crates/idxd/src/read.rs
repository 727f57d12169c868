//! From JSON text to the parts of a profile.

use crate::object::{Key, Object, key, renamed, value_error};
use crate::parts::{
    DeviceProfile, EngineProfile, GroupProfile, WorkQueueProfile, device_number, numbers,
};
use crate::tree::Node;
use crate::{MAX_PROFILE_BYTES, ProfileError};

/// No machine has more; the bound keeps a hostile file from costing more than its reading.
const MAX_DEVICES: usize = 64;
/// The registers count each kind in 8 bits (spec 9.2.3 to 9.2.5).
const MAX_OF_A_KIND: usize = 256;

const DEVICE_KEYS: &[Key] = &[
    key("dev"),
    renamed("read_buffer_limit", "token_limit"),
    key("event_log_size"),
    key("max_groups"),
    key("max_work_queues"),
    key("max_engines"),
    key("work_queue_size"),
    key("numa_node"),
    key("errors"),
    key("op_cap"),
    key("iaa_cap"),
    key("gen_cap"),
    key("version"),
    key("state"),
    renamed("max_read_buffers", "max_tokens"),
    key("max_batch_size"),
    key("ims_size"),
    key("max_transfer_size"),
    key("configurable"),
    key("pasid_enabled"),
    key("cdev_major"),
    key("clients"),
    key("groups"),
    renamed("ungrouped_workqueues", "ungrouped workqueues"),
    key("ungrouped_engines"),
];

const GROUP_KEYS: &[Key] = &[
    key("dev"),
    renamed("read_buffers_reserved", "tokens_reserved"),
    renamed("use_read_buffer_limit", "use_token_limit"),
    renamed("read_buffers_allowed", "tokens_allowed"),
    key("traffic_class_a"),
    key("traffic_class_b"),
    key("desc_progress_limit"),
    key("batch_progress_limit"),
    key("grouped_workqueues"),
    key("grouped_engines"),
];

const WORK_QUEUE_KEYS: &[Key] = &[
    key("dev"),
    key("mode"),
    key("size"),
    key("group_id"),
    key("priority"),
    key("block_on_fault"),
    key("max_batch_size"),
    key("max_transfer_size"),
    key("cdev_minor"),
    key("type"),
    key("name"),
    key("driver_name"),
    key("threshold"),
    key("prs_disable"),
    key("ats_disable"),
    key("op_config"),
    key("state"),
    key("clients"),
];

const ENGINE_KEYS: &[Key] = &[key("dev"), key("group_id")];

/// Reads the DSAs that a text describes, and the names of the IAAs, which are left alone.
pub(crate) fn devices(
    text: &str,
    origin: &str,
) -> Result<(Vec<DeviceProfile>, Vec<String>), ProfileError> {
    if text.len() as u64 > MAX_PROFILE_BYTES {
        return Err(ProfileError::TooLong {
            origin: origin.to_owned(),
            limit_bytes: MAX_PROFILE_BYTES,
        });
    }
    let tree: Node = serde_json::from_str(&without_trailing_commas(text))
        .map_err(|error| syntax(origin, &error))?;
    let Node::List(items) = &tree else {
        return Err(value_error(
            origin,
            "top level",
            "value",
            &tree,
            "a list of devices: [ { \"dev\":\"dsa0\", ... } ]",
        ));
    };
    at_most(origin, "top level", "devices", items.len(), 1..=MAX_DEVICES)?;
    let (mut devices, mut iaa) = (Vec::new(), Vec::new());
    for (index, node) in items.iter().enumerate() {
        match iaa_name(node) {
            Some(name) => iaa.push(name.to_owned()),
            None => devices.push(device(origin, index, node)?),
        }
    }
    match devices.is_empty() {
        true => Err(ProfileError::OnlyIaa {
            origin: origin.to_owned(),
            iaa,
        }),
        false => Ok((devices, iaa)),
    }
}

/// The name of an object that is an IAA.
fn iaa_name(node: &Node) -> Option<&str> {
    let Node::Object(fields) = node else {
        return None;
    };
    match fields.first()? {
        (key, Node::Text(dev)) if key == "dev" => {
            let number = dev.strip_prefix("iax").or(dev.strip_prefix("iaa"))?;
            number.parse::<u32>().ok()?;
            Some(dev)
        }
        _ => None,
    }
}

/// json-c takes a comma after the last element, and Debian's net_profile.conf has one. A blank in its
/// place keeps lines and columns.
fn without_trailing_commas(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut comma = None;
    let (mut quoted, mut escaped) = (false, false);
    for at in 0..bytes.len() {
        match bytes[at] {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => {
                quoted = !quoted;
                comma = None;
            }
            _ if quoted => {}
            // A comma with nothing before it is still wrong.
            b',' if comma.is_none() => comma = Some(at),
            b']' | b'}' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
    }
    // One ASCII byte was put in the place of another.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn syntax(origin: &str, error: &serde_json::Error) -> ProfileError {
    let message = error.to_string();
    // serde_json appends the place, which the error says already.
    let end = message.rfind(" at line ").unwrap_or(message.len());
    ProfileError::Syntax {
        origin: origin.to_owned(),
        line: error.line(),
        column: error.column(),
        message: message[..end].to_owned(),
    }
}

fn at_most(
    origin: &str,
    path: &str,
    what: &'static str,
    count: usize,
    range: std::ops::RangeInclusive<usize>,
) -> Result<(), ProfileError> {
    if count < *range.start() {
        return Err(value_error(
            origin,
            path,
            "value",
            &Node::List(Vec::new()),
            "at least one device",
        ));
    }
    if count > *range.end() {
        return Err(ProfileError::TooMany {
            origin: origin.to_owned(),
            path: path.to_owned(),
            what,
            count,
            limit: *range.end(),
        });
    }
    Ok(())
}

fn device(origin: &str, index: usize, node: &Node) -> Result<DeviceProfile, ProfileError> {
    let path = format!("[{index}]");
    let object = Object::new(origin, path.clone(), node, DEVICE_KEYS)?;
    if device_number(object.dev).is_none() {
        let dev = Node::Text(object.dev.to_owned());
        return Err(value_error(
            origin,
            &path,
            "dev",
            &dev,
            "dsa and a number, such as \"dsa0\"",
        ));
    }
    let place = object.dev;
    let groups = object.list("groups", place)?;
    at_most(origin, place, "groups", groups.len(), 0..=MAX_OF_A_KIND)?;
    let groups = groups
        .into_iter()
        .map(|(path, node)| group(origin, path, node))
        .collect::<Result<Vec<_>, _>>()?;
    let profile = DeviceProfile {
        dev: place.to_owned(),
        read_buffer_limit: object.integer("read_buffer_limit")?,
        event_log_size: object.integer("event_log_size")?,
        max_groups: object.integer("max_groups")?,
        max_work_queues: object.integer("max_work_queues")?,
        max_engines: object.integer("max_engines")?,
        work_queue_size: object.integer("work_queue_size")?,
        numa_node: object.integer("numa_node")?,
        errors: object.text("errors")?,
        op_cap: object.operations("op_cap")?,
        iaa_cap: object.register("iaa_cap")?,
        gen_cap: object.register("gen_cap")?,
        version: object.register("version")?,
        state: object.text("state")?,
        max_read_buffers: object.integer("max_read_buffers")?,
        max_batch_size: object.integer("max_batch_size")?,
        ims_size: object.integer("ims_size")?,
        max_transfer_size: object.integer("max_transfer_size")?,
        configurable: object.integer("configurable")?,
        pasid_enabled: object.integer("pasid_enabled")?,
        cdev_major: object.integer("cdev_major")?,
        clients: object.integer("clients")?,
        ungrouped_workqueues: work_queues(origin, object.list("ungrouped_workqueues", place)?)?,
        ungrouped_engines: engines(origin, object.list("ungrouped_engines", place)?)?,
        groups,
    };
    bound_counts(origin, &profile)?;
    Ok(profile)
}

fn bound_counts(origin: &str, device: &DeviceProfile) -> Result<(), ProfileError> {
    let grouped = device.groups.iter();
    let queues = grouped
        .clone()
        .map(|group| group.grouped_workqueues.len())
        .sum::<usize>()
        + device.ungrouped_workqueues.len();
    let engines = grouped
        .map(|group| group.grouped_engines.len())
        .sum::<usize>()
        + device.ungrouped_engines.len();
    at_most(
        origin,
        &device.dev,
        "work queues",
        queues,
        0..=MAX_OF_A_KIND,
    )?;
    at_most(origin, &device.dev, "engines", engines, 0..=MAX_OF_A_KIND)
}

/// Checks a name such as `wq0.1`.
fn named(origin: &str, object: &Object<'_>, path: &str, prefix: &str) -> Result<(), ProfileError> {
    if numbers(object.dev, prefix).is_some() {
        return Ok(());
    }
    let dev = Node::Text(object.dev.to_owned());
    let expected = format!("{prefix}, device number, dot, index, such as \"{prefix}0.0\"");
    Err(value_error(origin, path, "dev", &dev, &expected))
}

fn group(origin: &str, path: String, node: &Node) -> Result<GroupProfile, ProfileError> {
    let object = Object::new(origin, path.clone(), node, GROUP_KEYS)?;
    named(origin, &object, &path, "group")?;
    Ok(GroupProfile {
        dev: object.dev.to_owned(),
        read_buffers_reserved: object.integer("read_buffers_reserved")?,
        use_read_buffer_limit: object.integer("use_read_buffer_limit")?,
        read_buffers_allowed: object.integer("read_buffers_allowed")?,
        traffic_class_a: object.integer("traffic_class_a")?,
        traffic_class_b: object.integer("traffic_class_b")?,
        desc_progress_limit: object.integer("desc_progress_limit")?,
        batch_progress_limit: object.integer("batch_progress_limit")?,
        grouped_workqueues: work_queues(origin, object.list("grouped_workqueues", &path)?)?,
        grouped_engines: engines(origin, object.list("grouped_engines", &path)?)?,
    })
}

fn work_queues(
    origin: &str,
    nodes: Vec<(String, &Node)>,
) -> Result<Vec<WorkQueueProfile>, ProfileError> {
    nodes
        .into_iter()
        .map(|(path, node)| work_queue(origin, path, node))
        .collect()
}

fn work_queue(origin: &str, path: String, node: &Node) -> Result<WorkQueueProfile, ProfileError> {
    let object = Object::new(origin, path.clone(), node, WORK_QUEUE_KEYS)?;
    named(origin, &object, &path, "wq")?;
    Ok(WorkQueueProfile {
        dev: object.dev.to_owned(),
        mode: object.text("mode")?,
        size: object.integer("size")?,
        group_id: object.integer("group_id")?,
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
        op_config: object.operations("op_config")?,
        state: object.text("state")?,
        clients: object.integer("clients")?,
    })
}

fn engines(origin: &str, nodes: Vec<(String, &Node)>) -> Result<Vec<EngineProfile>, ProfileError> {
    nodes
        .into_iter()
        .map(|(path, node)| {
            let object = Object::new(origin, path.clone(), node, ENGINE_KEYS)?;
            named(origin, &object, &path, "engine")?;
            Ok(EngineProfile {
                dev: object.dev.to_owned(),
                group_id: object.integer("group_id")?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::without_trailing_commas;

    #[test]
    fn commas_after_the_last_element() {
        let taken = [
            ("[1,]", "[1 ]"),
            ("{\"a\":1,\n}", "{\"a\":1 \n}"),
            ("[[1,],]", "[[1 ] ]"),
        ];
        for (from, to) in taken {
            assert_eq!(without_trailing_commas(from), to);
        }
        for same in ["[1,2]", "[\",]\"]", "[\"\\\",]\",1]", "[1,,2]", "\u{e9}"] {
            assert_eq!(without_trailing_commas(same), same);
        }
        let twice = without_trailing_commas("[1,,]");
        assert!(
            serde_json::from_str::<serde_json::Value>(&twice).is_err(),
            "{twice}"
        );
    }
}
