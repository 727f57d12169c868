//! What of a profile a workload uses.

use dray_device::WorkQueueMode;
use dray_idxd::Profile;

use crate::FiguresError;

/// The first work queue of a profile's first device, and the engines behind it. All else that a
/// profile configures stays idle, unless an experiment says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// Number of the work queue.
    pub wq: u16,
    /// Whether it takes ENQCMD.
    pub shared: bool,
    /// Its entries.
    pub entries: u16,
    /// Engines of its group.
    pub engines: usize,
    /// Work queues of the device that stay idle.
    pub idle: usize,
}

impl Used {
    /// Of a profile.
    ///
    /// # Errors
    /// A profile that is not well-formed or has no work queue.
    pub fn of(profile: &Profile) -> Result<Used, FiguresError> {
        let devices = profile.devices()?;
        let device = devices.first().ok_or(FiguresError::NoWorkQueue)?;
        let queue = device
            .work_queues
            .first()
            .ok_or(FiguresError::NoWorkQueue)?;
        let group = device.groups.iter().find(|group| group.id == queue.group);
        Ok(Used {
            wq: queue.id,
            shared: queue.mode == WorkQueueMode::Shared,
            entries: queue.size,
            engines: group.map_or(0, |group| group.engines.len()),
            idle: device.work_queues.len() - 1,
        })
    }

    /// In words: `work queue 0 (dedicated, 32 entries, 1 engine; 3 more stay idle)`.
    pub fn describe(&self) -> String {
        let mode = match self.shared {
            true => "shared",
            false => "dedicated",
        };
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let idle = match self.idle {
            0 => String::new(),
            n => format!("; {n} more work queue{} idle", plural(n)),
        };
        format!(
            "work queue {} ({mode}, {} entries, {} engine{}{idle})",
            self.wq,
            self.entries,
            self.engines,
            plural(self.engines)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_queue_and_its_own_engines_are_used() {
        let of = |name| Used::of(&Profile::named(name).unwrap()).unwrap().describe();
        assert_eq!(
            of("1e1w-d"),
            "work queue 0 (dedicated, 128 entries, 1 engine)"
        );
        assert_eq!(
            of("4e4w-s"),
            "work queue 0 (shared, 32 entries, 4 engines; 3 more work queues idle)"
        );
    }
}
