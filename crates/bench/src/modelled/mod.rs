//! Cases on the modelled device, and on the modelled core beside it.

mod memory;
pub(crate) mod queues;

use std::collections::HashMap;
use std::sync::Arc;

use dray_clock::{Duration, Time};
use dray_device::{Capabilities, DeviceConfig, Payload};
use dray_idxd::Profile;
use dray_model::{ChannelOptions, World, WorldOptions};
use dray_platform::{NodeId, PlatformFile, WaitMode};
use dray_workload::{ClosedLoop, Location, Op, Operations, Plan, common_window};

use crate::BenchError;
use crate::case::{Api, Case, Path, Timer};
use crate::timing::Timing;
use memory::buffers;

/// Operations that are simulated of a case at most, warm-up apart, unless iterations are asked
/// for by number: the model repeats itself long before.
const OPERATIONS: u64 = 16384;
/// Least and most iterations of a thread.
const ITERATIONS: [u64; 2] = [16, 1 << 30];

/// How long a case runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MinTime {
    /// Seconds of its own time.
    Seconds(f64),
    /// Iterations of each thread.
    Iterations(u64),
}

/// The machine that cases run on in modelled time.
#[derive(Debug)]
pub struct Modelled {
    platform: Arc<PlatformFile>,
    devices: Vec<DeviceConfig>,
    /// Devices on another node are left alone.
    node: Option<u16>,
    wait: WaitMode,
    min_time: MinTime,
    /// The same question has the same answer: interfaces cost nothing in modelled time.
    known: HashMap<Case, Timing>,
}

impl Modelled {
    /// A machine with the devices of a profile. `widest`: work queues take what the device takes,
    /// as in DML's own configurations, whatever the profile's limit of a transfer.
    ///
    /// # Errors
    /// A profile that the driver would refuse.
    pub fn new(
        platform: PlatformFile,
        profile: &Profile,
        widest: bool,
    ) -> Result<Modelled, BenchError> {
        let mut devices = profile.devices()?;
        if widest {
            for device in &mut devices {
                for queue in &mut device.work_queues {
                    queue.max_transfer_size = device.capabilities.max_transfer_size;
                }
            }
        }
        Ok(Modelled {
            platform: Arc::new(platform),
            devices,
            node: None,
            wait: WaitMode::Poll,
            min_time: MinTime::Seconds(0.5),
            known: HashMap::new(),
        })
    }

    /// Only the devices of this memory node.
    pub fn on_node(mut self, node: Option<u16>) -> Modelled {
        self.node = node;
        self
    }

    /// How cores wait.
    pub fn waiting(mut self, wait: WaitMode) -> Modelled {
        self.wait = wait;
        self
    }

    /// How long a case runs.
    pub fn lasting(mut self, min_time: MinTime) -> Modelled {
        self.min_time = min_time;
        self
    }

    /// The machine.
    pub fn platform(&self) -> &PlatformFile {
        &self.platform
    }

    /// What the first device can do.
    pub fn capabilities(&self) -> Option<&Capabilities> {
        self.devices.first().map(|device| &device.capabilities)
    }

    /// Runs a case. The same case gives the same numbers on every machine.
    ///
    /// # Errors
    /// More than the configuration allows, with its limit; operations that fail.
    pub fn run(&mut self, case: &Case) -> Result<Timing, BenchError> {
        let key = Case {
            api: Api::Rust,
            op: match case.op {
                Op::Copy => Op::Move,
                op => op,
            },
            ..*case
        };
        if let Some(timing) = self.known.get(&key) {
            return Ok(*timing);
        }
        let round = u64::from(key.queue_per_thread()) * u64::from(key.bsize.max(1));
        let most = (OPERATIONS / round / u64::from(key.threads)).max(ITERATIONS[0]);
        let timing = match self.min_time {
            MinTime::Iterations(rounds) => self.simulate(&key, rounds.clamp(1, ITERATIONS[1]))?,
            MinTime::Seconds(seconds) => {
                let first = self.simulate(&key, ITERATIONS[0])?;
                let per_thread = first.real_ns * f64::from(key.threads);
                let wanted = (seconds * 1e9 / per_thread.max(1.0)).ceil();
                // Float to integer saturates; what is absurd is cut by the limit.
                match (wanted as u64).min(most) {
                    rounds if rounds > ITERATIONS[0] => self.simulate(&key, rounds)?,
                    _ => first,
                }
            }
        };
        self.known.insert(key, timing);
        Ok(timing)
    }

    fn simulate(&self, case: &Case, rounds: u64) -> Result<Timing, BenchError> {
        let software = case.path == Path::Cpu;
        let queues = self.queues();
        if !software {
            self.check(case, &queues)?;
        }
        let mut world = World::new(
            self.platform.clone(),
            self.devices.clone(),
            WorldOptions {
                payload: Payload::Skipped,
                ..WorldOptions::default()
            },
        )?;
        let queue = case.queue_per_thread();
        let batch = case.bsize.max(1);
        let mut threads = Vec::new();
        let mut channels = Vec::new();
        for thread in 0..case.threads {
            let target = match software {
                true => None,
                false => Some(
                    *queues
                        .get(thread as usize % queues.len().max(1))
                        .ok_or(BenchError::NoWorkQueue { node: self.node })?,
                ),
            };
            let socket = match target {
                Some((device, _)) => self.platform.topology.socket_of_device(device),
                None => self.node.unwrap_or(0),
            };
            let channel = world.open(ChannelOptions {
                socket,
                queue: target,
                batch,
                depth: queue,
                wait: self.wait,
                portal_rotates: true,
                prepared: case.timer == Timer::Proc,
                hot: matches!(case.in_mem, Location::L1 | Location::L2),
                ..ChannelOptions::default()
            });
            channels.push(channel.ok_or(BenchError::NoWorkQueue { node: self.node })?);
            let buffers = buffers(&mut world, case, NodeId(socket), u64::from(queue * batch));
            // A thread that has just filled the queue sees the effect of its own burst; the first
            // fillings do not count.
            let warm_up = match queue {
                1 => 2,
                _ => 8,
            };
            let round = u64::from(queue) * u64::from(batch);
            threads.push(ClosedLoop::new(Plan {
                operations: Operations {
                    cache_control: case.out_mem.cache_control,
                    ..Operations::new(case.shape(), buffers)
                },
                exec: case.exec,
                round,
                queue,
                batch,
                warm_up: warm_up * round,
                count: rounds * round,
                bounded: true,
            }));
        }
        world.run(&mut threads)?;
        for thread in &threads {
            let measured = thread.measured();
            if measured.failed > 0 {
                return Err(BenchError::Failed {
                    operations: measured.failed,
                    status: measured.first_failure.0,
                });
            }
        }
        let (mut busy, mut lived) = (Duration::ZERO, Duration::ZERO);
        for id in channels {
            busy += world.channel(id).busy();
            lived += world.channel(id).now().since(Time::ZERO);
        }
        let (ended, span) = common_window(&threads);
        let real_ns = span.as_ns() / ended.max(1) as f64;
        let share = busy.0 as f64 / (lived.0 as f64).max(1.0);
        Ok(Timing {
            iterations: rounds * u64::from(case.threads),
            real_ns,
            cpu_ns: real_ns * f64::from(case.threads) * share,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exec;
    use crate::case::tests::SEED;

    const CASE: Case = Case {
        exec: Exec::Sync,
        size: 4096,
        threads: 1,
        ..SEED
    };

    fn machine(profile: &str) -> Modelled {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        Modelled::new(platform, &Profile::named(profile).unwrap(), true).unwrap()
    }

    #[test]
    fn keeping_the_queue_full_is_faster_than_waiting_for_all_of_it() {
        let mut machine = machine("1e1w-s");
        let sync = machine.run(&CASE).unwrap();
        let asynchronous = machine
            .run(&Case {
                exec: Exec::Async,
                ..CASE
            })
            .unwrap();
        assert!(asynchronous.real_ns < sync.real_ns);
        assert_eq!(sync.iterations, OPERATIONS / 16);
    }

    #[test]
    fn threads_share_one_queue_and_its_device() {
        let mut machine = machine("1e1w-s");
        let rate = |machine: &mut Modelled, threads| {
            let case = Case {
                exec: Exec::Async,
                size: 1 << 20,
                threads,
                ..CASE
            };
            let timing = machine.run(&case).unwrap();
            timing.counters(&case)[2].value
        };
        let (one, four) = (rate(&mut machine, 1), rate(&mut machine, 4));
        assert!((four / one - 1.0).abs() < 0.05, "{one} {four}");
    }

    #[test]
    fn interfaces_cost_nothing_in_modelled_time() {
        let mut machine = machine("1e1w-d");
        let c = machine.run(&CASE).unwrap();
        let rust = machine
            .run(&Case {
                api: Api::Rust,
                ..CASE
            })
            .unwrap();
        assert_eq!(c, rust);
    }

    #[test]
    fn a_given_number_of_iterations_is_run() {
        let mut machine = machine("1e1w-d").lasting(MinTime::Iterations(3));
        assert_eq!(machine.run(&CASE).unwrap().iterations, 3);
    }

    #[test]
    fn limits_of_the_queue_are_named() {
        let mut machine = machine("1e1w-d-wqsz8");
        let error = machine.run(&CASE).unwrap_err().to_string();
        assert!(
            error.contains("qsize 16") && error.contains("size of 8"),
            "{error}"
        );
    }

    #[test]
    fn every_operation_runs_on_device_and_core() {
        let mut machine = machine("1e1w-s-v2");
        for &(op, name) in crate::case::OPS {
            let case = Case { op, ..CASE };
            assert!(machine.run(&case).unwrap().real_ns > 0.0, "{name}");
            let software = Case {
                op,
                path: Path::Cpu,
                ..CASE
            };
            assert!(machine.run(&software).unwrap().real_ns > 0.0, "{name}");
        }
    }
}
