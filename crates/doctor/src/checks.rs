//! The links of the chain, in the order in which they are fixed.

mod cmd_status;
mod command_line;
mod configuration;
mod container;
mod cpu;
mod device;
mod dmar;
mod driver;
mod faults;
mod hugepages;
mod iommu;
mod kernel;
mod library;
mod messages;
mod module;
mod nodes;
mod numa;
mod options;
mod pci;
mod perfmon;
mod power;
mod queues;
mod raw_io;
mod sources;
mod sva;

use crate::check::Check;
use crate::finding::Evidence;
use crate::survey::Survey;

/// Every check, each after those that it needs.
pub static CHECKS: &[Check] = &[
    pci::CHECK,
    cpu::CHECK,
    kernel::CHECK,
    options::CHECK,
    dmar::CHECK,
    command_line::CHECK,
    iommu::CHECK,
    module::CHECK,
    driver::CHECK,
    sva::CHECK,
    configuration::CHECK,
    cmd_status::CHECK,
    faults::CHECK,
    device::CHECK,
    queues::CHECK,
    container::CHECK,
    nodes::CHECK,
    raw_io::CHECK,
    library::CHECK,
    messages::CHECK,
    numa::CHECK,
    hugepages::CHECK,
    perfmon::CHECK,
    power::CHECK,
];

/// What shows that the warning of a check came true.
pub(crate) fn confirmed(survey: &Survey) -> Vec<(&'static str, Evidence)> {
    let mut confirmed = messages::confirmed(survey);
    confirmed.extend(cmd_status::confirmed(survey));
    confirmed
}

#[cfg(test)]
mod tests {
    use super::CHECKS;

    #[test]
    fn every_check_comes_after_its_needs_and_cites_sources() {
        for (place, check) in CHECKS.iter().enumerate() {
            let before = |id: &&str| CHECKS[..place].iter().any(|known| known.id == *id);
            assert!(check.needs.iter().all(before), "{}", check.id);
            assert!(!check.sources.is_empty(), "{}", check.id);
            assert!(check.why.len() > 80, "{}", check.id);
            let twice = CHECKS[..place].iter().any(|known| known.id == check.id);
            assert!(!twice, "{}", check.id);
        }
    }
}
