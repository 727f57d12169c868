//! The threads of a point, and what each of them submits where.

use dray::WaitPolicy;
use dray_platform::WaitMode;
use dray_workload::{Buffers, DeviceLoop, Exec};

use crate::concurrent::copies;
use crate::tenants::{Sharing, Tenants};
use crate::workload::Workload;

/// A thread that submits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stream {
    /// Devices of its channels.
    pub(super) devices: Vec<usize>,
    /// It is the other tenant.
    pub(super) is_neighbour: bool,
    /// What it submits.
    pub(super) work: Workload,
    /// Descriptors outstanding on each channel.
    pub(super) depth: u32,
}

/// Threads of a point.
pub(super) fn count(tenants: &Tenants) -> u16 {
    tenants.cores().max(1) + u16::from(tenants.neighbour.is_some())
}

/// The threads of a point, the workload's first; `entries`: those of its queue, and of the neighbour's.
/// Channels go to the devices in turn; a thread has several where there are fewer cores than devices.
pub(super) fn streams(w: &Workload, entries: [u16; 2]) -> Vec<Stream> {
    let (cores, devices) = (w.tenants.cores().max(1), w.tenants.devices.max(1));
    let channels = cores.max(devices);
    let of_core = |core: u16| Stream {
        devices: (core..channels)
            .step_by(cores.into())
            .map(|channel| usize::from(channel % devices))
            .collect(),
        is_neighbour: false,
        work: *w,
        depth: w.depth.unwrap_or(entries[0].into()).max(1),
    };
    let mut streams: Vec<Stream> = (0..cores).map(of_core).collect();
    if let Some(neighbour) = w.tenants.neighbour {
        let tenants = match neighbour.sharing {
            Sharing::Queue => 2,
            _ => 1,
        };
        streams.push(Stream {
            devices: vec![0],
            is_neighbour: true,
            work: copies(w, neighbour),
            depth: (u32::from(entries[1]) / tenants).max(1),
        });
    }
    streams
}

/// Whether the threads copy a list together: each begins the next when the last has ended.
pub(super) fn is_in_step(w: &Workload, streams: &[Stream]) -> bool {
    w.list.is_some() && streams.len() > 1 && streams.iter().all(|s| s.depth == 1)
}

impl Stream {
    /// Operations of one sample. Of the neighbour each is one, so that it ends soon when it is to end.
    pub(super) fn round(&self) -> u64 {
        match self.is_neighbour {
            true => 1,
            false => self.outstanding(),
        }
    }

    /// Operations outstanding on all its channels.
    pub(super) fn outstanding(&self) -> u64 {
        let batch = self.work.batch.max(1);
        u64::from(self.depth) * u64::from(batch) * self.devices.len() as u64
    }

    /// The loop that the thread runs.
    pub(super) fn closed_loop(&self, buffers: Buffers) -> DeviceLoop {
        DeviceLoop {
            operations: self.work.operations(buffers),
            exec: match self.depth {
                // Channels of one core wait for each other where they copy one list.
                1 if !self.is_neighbour
                    && (self.devices.len() == 1 || self.work.list.is_some()) =>
                {
                    Exec::Sync
                }
                _ => Exec::Async,
            },
            round: self.round(),
            queue: self.depth * self.devices.len() as u32,
            batch: self.work.batch.max(1),
            wait: match self.work.wait {
                WaitMode::Poll => WaitPolicy::Spin,
                WaitMode::Pause => WaitPolicy::Pause,
                WaitMode::Umwait => WaitPolicy::Umwait,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;

    fn of(point: Point) -> (Workload, Vec<Stream>) {
        let w = Workload::from_point(&point).unwrap();
        (w, streams(&w, [128, 64]))
    }

    #[test]
    fn channels_are_assigned_to_devices_round_robin() {
        let point = Point::default().with("mode", "async");
        let devices = |cores: Option<u64>, devices: u64| {
            let point = point.with("devices", devices);
            let point = match cores {
                Some(cores) => point.with("cores", cores),
                None => point,
            };
            let (_, streams) = of(point);
            let of_each = streams.iter().map(|s| s.devices.clone());
            of_each.collect::<Vec<_>>()
        };
        assert_eq!(devices(None, 2), [[0], [1]]);
        assert_eq!(devices(Some(1), 3), [[0, 1, 2]]);
        assert_eq!(devices(Some(2), 3), [vec![0, 2], vec![1]]);
        assert_eq!(devices(Some(3), 2), [[0], [1], [0]]);
    }

    #[test]
    fn a_neighbour_has_a_thread_and_keeps_its_queue_full() {
        let beside = Point::default().with("neighbour_size", 65536);
        for (sharing, depth) in [("queue", 32), ("engine", 64), ("device", 64)] {
            let (w, streams) = of(beside.with("sharing", sharing));
            let [own, neighbour] = &streams[..] else {
                panic!("{streams:?}");
            };
            assert_eq!((own.depth, own.round(), own.work.size), (1, 1, 4096));
            assert!(neighbour.is_neighbour);
            assert_eq!((neighbour.depth, neighbour.work.size), (depth, 65536));
            assert_eq!(count(&w.tenants), 2);
            assert!(!is_in_step(&w, &streams));
        }
    }

    #[test]
    fn parts_of_a_list_on_two_devices_start_in_step() {
        let list = Point::default().with("pages", 64).with("devices", 2);
        let (w, streams) = of(list.clone());
        assert!(is_in_step(&w, &streams));
        assert_eq!(streams[0].work.size, 32 * 4096);
        // One core copies all parts of it.
        let (w, streams) = of(list.with("cores", 1));
        assert!(!is_in_step(&w, &streams));
        assert_eq!(streams[0].round(), 2);
    }
}
