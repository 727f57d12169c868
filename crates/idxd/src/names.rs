//! Profiles by name.

use dray_device::Capabilities;

use crate::finding::{Finding, Findings};
use crate::parts::{DeviceProfile, EngineProfile, GroupProfile, WorkQueueProfile};
use crate::{Profile, ProfileError};

/// How a name is built: E engines, W work queues, dedicated or shared; then, in any order,
/// entries of each work queue, largest batch, threshold, priority, largest transfer in bytes (a power
/// of two, `k`, `M` and `G` allowed), and `-v2` for a version 2 device. `dsa<N>-` before it, as the
/// setup script writes it, names the device.
pub const GRAMMAR: &str = "[dsa<N>-]<E>e<W>w-<d|s>[-wqsz<N>][-bs<N>][-thr<N>][-prio<N>][-xfer<SIZE>][-v2], \
     such as 4e1w-s-wqsz16";

/// Priority of every work queue, as the setup script writes it.
pub(crate) const PRIORITY: i64 = 10;
/// Largest transfer of every work queue: the driver's default of 2 MiB.
pub(crate) const MAX_TRANSFER_BYTES: i64 = 2 << 20;

/// What a name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) device: u32,
    pub(crate) engines: u32,
    pub(crate) work_queues: u32,
    pub(crate) shared: bool,
    pub(crate) size: Option<u32>,
    pub(crate) batch: Option<u32>,
    pub(crate) threshold: Option<u32>,
    pub(crate) priority: Option<u32>,
    pub(crate) transfer: Option<u64>,
    pub(crate) version_2: bool,
}

pub(crate) fn build(text: &str) -> Result<Profile, ProfileError> {
    let name = parse(text).map_err(|reason| ProfileError::UnknownName {
        name: text.chars().take(80).collect(),
        reason,
        near: near(text),
    })?;
    let profile = profile(&name).map_err(|findings| ProfileError::Invalid {
        title: text.to_owned(),
        findings,
    })?;
    profile.devices()?;
    Ok(profile)
}

fn parse(text: &str) -> Result<Name, String> {
    let mut parts = text.split('-').peekable();
    let mut device = 0;
    if let Some(number) = parts.peek().and_then(|part| part.strip_prefix("dsa")) {
        device = parse_number(number, "the number after dsa")?;
        parts.next();
    }
    let shape = parts.next().unwrap_or_default();
    let (engines, rest) = shape
        .split_once('e')
        .ok_or_else(|| format!("{shape:?} is not <E>e<W>w, such as 1e1w"))?;
    let work_queues = rest
        .strip_suffix('w')
        .ok_or_else(|| format!("{shape:?} does not end in w, as in 1e1w"))?;
    let mut name = Name {
        device,
        engines: parse_number(engines, "the number of engines")?,
        work_queues: parse_number(work_queues, "the number of work queues")?,
        shared: match parts.next() {
            Some("d") => false,
            Some("s") => true,
            Some(other) => {
                return Err(format!("{other:?} is neither d (dedicated) nor s (shared)"));
            }
            None => return Err("-d (dedicated) or -s (shared) is missing".to_owned()),
        },
        size: None,
        batch: None,
        threshold: None,
        priority: None,
        transfer: None,
        version_2: false,
    };
    for part in parts {
        option(&mut name, part)?;
    }
    Ok(name)
}

fn option(name: &mut Name, part: &str) -> Result<(), String> {
    if part == "v2" {
        name.version_2 = true;
        return Ok(());
    }
    if let Some(size) = part.strip_prefix("xfer") {
        return match name.transfer.replace(parse_transfer(size)?) {
            None => Ok(()),
            Some(_) => Err("xfer is given twice".to_owned()),
        };
    }
    for (key, place) in [
        ("wqsz", &mut name.size),
        ("bs", &mut name.batch),
        ("thr", &mut name.threshold),
        ("prio", &mut name.priority),
    ] {
        let Some(digits) = part.strip_prefix(key) else {
            continue;
        };
        let value = parse_number(digits, &format!("the number after {key}"))?;
        return match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(format!("{key} is given twice")),
        };
    }
    Err(format!(
        "{part:?} is none of wqsz<N>, bs<N>, thr<N>, prio<N>, xfer<SIZE>, v2"
    ))
}

/// Bytes: a power of two, for the driver rounds everything else up (`wq_max_transfer_size_store`).
fn parse_transfer(text: &str) -> Result<u64, String> {
    let what = "the size after xfer";
    let (digits, shift) = [("kK", 10), ("mM", 20), ("gG", 30)]
        .into_iter()
        .find_map(|(letters, shift)| {
            let digits = text.strip_suffix(|letter| letters.contains(letter))?;
            Some((digits, shift))
        })
        .unwrap_or((text, 0));
    let bytes = u64::from(parse_number(digits, what)?) << shift;
    match bytes.is_power_of_two() {
        true => Ok(bytes),
        false => Err(format!("{what} is {text:?}, no power of two")),
    }
}

fn parse_number(digits: &str, what: &str) -> Result<u32, String> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{what} is {digits:?}"));
    }
    digits.parse().map_err(|_| format!("{what} is too large"))
}

/// The profile as `accel-config list` would print it after the setup script.
pub(crate) fn profile(name: &Name) -> Result<Profile, Vec<Finding>> {
    let base = match name.version_2 {
        true => Capabilities::version_2(),
        false => Capabilities::sapphire_rapids(),
    };
    let mut findings = Vec::new();
    for (field, letter, value, most) in [
        ("engines", 'e', name.engines, base.max_engines),
        ("work queues", 'w', name.work_queues, base.max_work_queues),
    ] {
        if !(1..=u32::from(most)).contains(&value) {
            findings.push(Finding {
                path: "name".to_owned(),
                field: field.to_owned(),
                value: value.to_string(),
                limit: format!("the device has 1 to {most}"),
                fix: format!("a number from 1 to {most} before {letter}, as in 1e1w-d"),
            });
        }
    }
    let mut by_name = Findings::at("name", &mut findings);
    if let Some(threshold) = name.threshold.filter(|_| !name.shared) {
        let fix = "s in the place of d, as in 1e1w-s-thr8";
        by_name.add(
            "threshold",
            threshold,
            "a dedicated work queue has none",
            fix,
        );
    }
    if name.size == Some(0) {
        by_name.add("size", 0, "a work queue has 1 entry at least", "wqsz16");
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let equal_share = u32::from(base.work_queue_size) / name.work_queues;
    let size = name.size.unwrap_or(equal_share);
    let threshold = match name.shared {
        true => name.threshold.unwrap_or(size),
        false => 0,
    };
    let number = name.device;
    let transfer = name
        .transfer
        .and_then(|bytes| i64::try_from(bytes).ok())
        .unwrap_or(MAX_TRANSFER_BYTES);
    let queue = |index| WorkQueueProfile {
        dev: format!("wq{number}.{index}"),
        mode: Some(if name.shared { "shared" } else { "dedicated" }.to_owned()),
        size: Some(size.into()),
        group_id: Some(0),
        priority: Some(name.priority.map_or(PRIORITY, i64::from)),
        block_on_fault: Some(0),
        max_batch_size: Some(name.batch.unwrap_or(base.max_batch_size).into()),
        max_transfer_size: Some(transfer),
        kind: Some("user".to_owned()),
        name: Some(format!("app{index}")),
        threshold: Some(threshold.into()),
        ..WorkQueueProfile::default()
    };
    let engine = |index, group_id| EngineProfile {
        dev: format!("engine{number}.{index}"),
        group_id,
    };
    let mut groups: Vec<GroupProfile> = (0..base.max_groups)
        .map(|index| GroupProfile {
            dev: format!("group{number}.{index}"),
            read_buffers_reserved: Some(0),
            use_read_buffer_limit: Some(0),
            read_buffers_allowed: Some(base.max_read_buffers.into()),
            ..GroupProfile::default()
        })
        .collect();
    groups[0].grouped_workqueues = (0..name.work_queues).map(queue).collect();
    groups[0].grouped_engines = (0..name.engines)
        .map(|index| engine(index, Some(0)))
        .collect();
    let rest = name.engines..base.max_engines.into();
    let device = DeviceProfile {
        dev: format!("dsa{number}"),
        read_buffer_limit: Some(0),
        max_groups: Some(base.max_groups.into()),
        max_work_queues: Some(base.max_work_queues.into()),
        max_engines: Some(base.max_engines.into()),
        work_queue_size: Some(base.work_queue_size.into()),
        numa_node: Some(0),
        op_cap: Some(dray_spec::OpCap(base.op_cap)),
        gen_cap: Some(base.gen_cap),
        version: Some(base.version.into()),
        state: Some("enabled".to_owned()),
        max_read_buffers: Some(base.max_read_buffers.into()),
        max_batch_size: Some(base.max_batch_size.into()),
        max_transfer_size: i64::try_from(base.max_transfer_size).ok(),
        configurable: Some(1),
        pasid_enabled: Some(1),
        clients: Some(0),
        groups,
        ungrouped_engines: rest.map(|index| engine(index, None)).collect(),
        ..DeviceProfile::default()
    };
    Ok(Profile::of(vec![device]))
}

/// Plain names that are spelled like the text, nearest first.
fn near(text: &str) -> Vec<String> {
    let counts = (1..=4).flat_map(|engines| (1..=8).map(move |queues| (engines, queues)));
    let names = counts
        .flat_map(|(engines, queues)| ["d", "s"].map(|mode| format!("{engines}e{queues}w-{mode}")));
    dray_suggest::near(text, names, 3, 3)
}
