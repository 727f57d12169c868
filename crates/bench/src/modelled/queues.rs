//! Which queues the threads of a case use, and what those take.

use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};
use dray_spec::OpCap;
use dray_workload::Op;

use super::Modelled;
use crate::BenchError;
use crate::case::{Case, OPS, op_name};

/// Whether a work queue takes an operation.
pub(crate) fn supported(
    device: &DeviceConfig,
    queue: &WorkQueueConfig,
    op: Op,
) -> Result<(), BenchError> {
    let opcode = u8::from(op.opcode());
    let both = [device.capabilities.op_cap, queue.op_config];
    match both.iter().all(|bits| OpCap(*bits).supports(opcode)) {
        true => Ok(()),
        false => Err(BenchError::Unsupported {
            op: op_name(op),
            opcode,
        }),
    }
}

impl Modelled {
    /// Operations that none of the devices has.
    pub fn lacks(&self) -> Vec<Op> {
        let has = |op: Op| {
            let opcode = u8::from(op.opcode());
            let mut devices = self.devices.iter();
            devices.any(|device| OpCap(device.capabilities.op_cap).supports(opcode))
        };
        let all = OPS.iter().map(|(op, _)| *op);
        all.filter(|op| !has(*op)).collect()
    }

    /// Work queues that threads take in turn: device by device, so that two threads use two.
    pub(super) fn queues(&self) -> Vec<(u16, u16)> {
        let topology = &self.platform.topology;
        let mut queues = Vec::new();
        let most = self.devices.iter().map(|d| d.work_queues.len()).max();
        for index in 0..most.unwrap_or(0) {
            for (number, device) in self.devices.iter().enumerate() {
                let number = number as u16;
                let wanted = self
                    .node
                    .is_none_or(|node| node == topology.socket_of_device(number));
                if let (true, Some(queue)) = (wanted, device.work_queues.get(index)) {
                    queues.push((number, queue.id));
                }
            }
        }
        queues
    }

    fn queue(&self, (device, id): (u16, u16)) -> Option<&WorkQueueConfig> {
        let device = self.devices.get(usize::from(device))?;
        device.work_queues.iter().find(|queue| queue.id == id)
    }

    pub(super) fn check(&self, case: &Case, queues: &[(u16, u16)]) -> Result<(), BenchError> {
        let cores = self.platform.topology.cores_per_socket;
        if case.threads > u32::from(cores) {
            return Err(BenchError::Cores {
                threads: case.threads,
                cores,
                platform: self.platform.name.clone(),
            });
        }
        for (index, at) in queues.iter().enumerate() {
            let users = (case.threads as usize)
                .saturating_sub(index)
                .div_ceil(queues.len());
            if let (Some(queue), true) = (self.queue(*at), users > 0) {
                let bytes = u64::from(case.shape().transfer());
                BenchError::check_limit(
                    "size",
                    bytes,
                    queue.max_transfer_size,
                    "max_transfer_size",
                )?;
                self.devices
                    .get(usize::from(at.0))
                    .map_or(Ok(()), |device| supported(device, queue, case.op))?;
                let batch = u64::from(case.bsize);
                BenchError::check_limit(
                    "bsize",
                    batch,
                    queue.max_batch_size.into(),
                    "max_batch_size",
                )?;
                // What a full dedicated queue drops is lost (spec 3.2.1); a shared one says retry.
                if queue.mode == WorkQueueMode::Dedicated {
                    let asked = u64::from(case.queue_per_thread()) * users as u64;
                    BenchError::check_limit("qsize", asked, queue.size.into(), "size")?;
                }
            }
        }
        Ok(())
    }
}
