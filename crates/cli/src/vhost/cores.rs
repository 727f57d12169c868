//! `--cores`.

use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::complain::Usage;

/// Threads at most: each has buffers and a look at every port.
const MOST: usize = 64;

/// Cores as they were typed: numbers and ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cores(Vec<usize>);

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Cores, String> {
        parse(text, MOST).map(Cores)
    }
}

/// The cores of a list, at most so many.
fn parse(text: &str, most: usize) -> Result<Vec<usize>, String> {
    let mut cores: Vec<usize> = Vec::new();
    for part in text.split(',') {
        let error = || format!("{part:?} is no core, and no range such as 2-3");
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| error())?;
        let last: usize = last.trim().parse().map_err(|_| error())?;
        if last < first {
            return Err(format!("{part:?} ends before it begins"));
        }
        for core in first..=last {
            if cores.contains(&core) {
                return Err(format!(
                    "core {core} is named twice: a thread needs one of its own"
                ));
            }
            if cores.len() == most {
                return Err(format!("more than {most} cores"));
            }
            cores.push(core);
        }
    }
    Ok(cores)
}

impl Cores {
    /// The cores, if this process may use all of them.
    pub(super) fn usable(&self) -> anyhow::Result<&[usize]> {
        let allowed = sched_getaffinity(None).map_err(std::io::Error::from)?;
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|c| allowed.is_set(*c))
            .collect();
        let Some(core) = self.0.iter().find(|core| !allowed.contains(core)) else {
            return Ok(&self.0);
        };
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let online = parse(online.trim(), CpuSet::MAX_CPU);
        let exists = online.is_ok_and(|online| online.contains(core));
        let why = match exists {
            true => format!("this process may not use core {core}"),
            false => format!("there is no core {core}"),
        };
        Err(Usage::error(
            format!("--cores: {why}"),
            format!(
                "cores that it may use: {}; taskset and cgroups (cpuset) decide",
                ranges(&allowed)
            ),
        ))
    }
}

/// Numbers in ascending order as ranges.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let text = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    text.collect::<Vec<String>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_lists_have_numbers_and_ranges_each_once() {
        let cores = |text: &str| text.parse::<Cores>().map(|cores| cores.0);
        assert_eq!(cores("3"), Ok(vec![3]));
        assert_eq!(cores("4,0-2, 7"), Ok(vec![4, 0, 1, 2, 7]));
        for text in [
            "",
            "a",
            "1,",
            "-1",
            "3-1",
            "1-",
            "1,1",
            "0-2,2",
            "0-64",
            "0-99999999999",
        ] {
            assert!(cores(text).is_err(), "{text}");
        }
        assert!(
            cores("0-2,1")
                .unwrap_err()
                .contains("core 1 is named twice")
        );
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn a_machine_may_have_more_cores_than_a_switch_threads() {
        assert_eq!(parse("0-95", CpuSet::MAX_CPU).map(|c| c.len()), Ok(96));
    }

    #[test]
    fn a_core_that_there_is_not_is_an_error() {
        let cores: Cores = "1023".parse().unwrap();
        let error = cores.usable().unwrap_err().to_string();
        assert!(error.contains("core 1023"), "{error}");
    }
}
