//! CPUs, caches and memory nodes of this machine, as the kernel lists them.

use std::fs;

use dray_experiment::parse_bytes;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Most CPUs that a list may name.
const MOST: usize = 4096;

/// Reads `0-3,5`.
///
/// # Errors
/// What is wrong, in words.
pub fn cpu_list(text: &str) -> Result<Vec<u16>, String> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |digits: &str| {
            digits
                .parse::<u16>()
                .map_err(|_| format!("{part:?} is no CPU and no range such as 0-3"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(format!("{part:?} ends before it begins"));
        }
        cpus.extend(first..=last);
        if cpus.len() > MOST {
            return Err(format!("more than {MOST} CPUs"));
        }
    }
    let mut sorted = cpus.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(format!("CPU {} is named twice", twice[0])),
        None => Ok(cpus),
    }
}

/// CPUs that this process may use, in order.
pub fn available_cpus() -> Vec<u16> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .map(|cpu| cpu as u16)
            .collect(),
        Err(_) => vec![0],
    }
}

/// Memory nodes of this machine, as a list such as `0-1`.
pub fn memory_nodes() -> String {
    text("/sys/devices/system/node/online").unwrap_or("0".to_owned())
}

/// Keeps the calling thread on one CPU; false if it could not be done.
pub fn pin(cpu: u16) -> bool {
    let mut set = CpuSet::new();
    if usize::from(cpu) >= CpuSet::MAX_CPU {
        return false;
    }
    set.set(cpu.into());
    sched_setaffinity(None, &set).is_ok()
}

/// A cache of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheLevel {
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// 1 is the nearest.
    pub level: u8,
    /// Bytes.
    pub size: u64,
    /// CPUs that share it.
    pub shared_by: usize,
}

/// The caches of a CPU.
pub fn caches(cpu: u16) -> Vec<CacheLevel> {
    (0..8)
        .filter_map(|index| {
            let root = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            let list = text(&format!("{root}/shared_cpu_list"))?;
            Some(CacheLevel {
                kind: text(&format!("{root}/type"))?,
                level: text(&format!("{root}/level"))?.parse().ok()?,
                size: parse_bytes(&text(&format!("{root}/size"))?).ok()?,
                shared_by: cpu_list(&list).map_or(1, |cpus| cpus.len()),
            })
        })
        .collect()
}

/// Size of a data cache of a CPU in bytes, by level.
pub fn cache_bytes(cpu: u16, level: u8) -> Option<u64> {
    caches(cpu)
        .into_iter()
        .find(|c| c.level == level && c.kind != "Instruction")
        .map(|c| c.size)
}

/// A file's text without blanks around it; `None` if it cannot be read.
pub fn text(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

/// The first value of a key of /proc/cpuinfo.
pub fn cpuinfo(key: &str) -> Option<String> {
    let all = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = all
        .lines()
        .find(|line| line.split(':').next().map(str::trim) == Some(key))?;
    line.split_once(':')
        .map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cpu_lists_are_parsed_and_malformed_ones_refused() {
        assert_eq!(cpu_list("0-2,5"), Ok(vec![0, 1, 2, 5]));
        for bad in ["", "3-1", "a", "1,1", "0-99999", "1,", "0-65535"] {
            assert!(cpu_list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_thread_can_be_pinned_to_an_available_cpu() {
        let first = available_cpus()[0];
        let on = std::thread::spawn(move || pin(first).then(rustix::thread::sched_getcpu));
        assert_eq!(on.join().unwrap(), Some(first.into()));
        assert!(!pin(u16::MAX));
    }

    proptest! {
        #[test]
        fn random_text_is_parsed_or_refused(text in "[0-9a-z@,\\[\\]-]{0,24}") {
            let _ = cpu_list(&text);
        }
    }
}
