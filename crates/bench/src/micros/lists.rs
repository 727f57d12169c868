//! The lists that options take: CPUs with their queues, operands.

use dray_workload::cpu_list;

/// CPUs that use a work queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuQueue {
    /// The CPUs.
    pub cpus: Vec<u16>,
    /// Name of the device, such as dsa0.
    pub device: String,
    /// Work queue of the device.
    pub queue: u16,
}

/// Reads `[0-3]@dsa0,0`; several follow each other after commas, and a single CPU needs no
/// brackets.
///
/// # Errors
/// What is wrong, in words.
pub fn cpu_queues(text: &str) -> Result<Vec<CpuQueue>, String> {
    const FORM: &str = "CPUs, @, a device, a comma and its work queue, as in [0-3]@dsa0,0";
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (cpus, after) = rest.split_once('@').ok_or(FORM)?;
        let cpus = cpus.trim_start_matches('[').trim_end_matches(']');
        let (device, after) = after.split_once(',').ok_or(FORM)?;
        let (queue, after) = after.split_once(',').unwrap_or((after, ""));
        let named = device.strip_prefix("dsa").unwrap_or_default();
        if named.is_empty() || !named.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!("{device:?} is no device such as dsa0"));
        }
        found.push(CpuQueue {
            cpus: cpu_list(cpus)?,
            device: device.to_owned(),
            queue: queue
                .parse()
                .map_err(|_| format!("{queue:?} is no work queue number"))?,
        });
        rest = after;
    }
    match found.is_empty() {
        true => Err(FORM.to_owned()),
        false => Ok(found),
    }
}

/// Reads one value for each operand, at most three.
///
/// # Errors
/// What is wrong, in words.
pub fn operand_list<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let values: Option<Vec<T>> = text.split(',').map(|part| read(part.trim())).collect();
    match values {
        Some(values) if values.len() <= 3 => Ok(values),
        Some(_) => Err("an operation has at most 3 operands".to_owned()),
        None => Err(format!("{text:?} has a part that is not known")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_documented_lists_are_parsed() {
        let two = cpu_queues("[0-3]@dsa0,0,7@dsa2,1").unwrap();
        assert_eq!(two[0].cpus, [0, 1, 2, 3]);
        assert_eq!((two[1].device.as_str(), two[1].queue), ("dsa2", 1));
        assert_eq!(
            operand_list("-1,1", |t| t.parse::<i32>().ok()),
            Ok(vec![-1, 1])
        );
    }

    #[test]
    fn malformed_lists_are_refused() {
        for bad in ["", "0", "0@", "0@dsa0", "0@iax1,0", "0@dsa0,x", "[0@dsax,0"] {
            assert!(cpu_queues(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn random_text_is_parsed_or_refused(text in "[0-9a-z@,\\[\\]-]{0,24}") {
            let _ = cpu_queues(&text);
        }
    }
}
