//! Buffers of a modelled measurement: where they are, what they hold, and whether they are right.

use dray_model::World;
use dray_platform::{Cache, MemoryLocation, NodeId, PAGE_BYTES, PlatformFile};
use dray_workload::{Buffers, Ring};

use super::machine::User;
use super::options::{Access, Micros};
use crate::BenchError;

/// Buffers of one CPU.
pub(super) fn operands(
    world: &mut World,
    micros: &Micros,
    platform: &PlatformFile,
    user: &User,
    index: usize,
    backed: bool,
) -> Result<Buffers, BenchError> {
    let count = u64::from(micros.descriptors() * micros.batch);
    let nodes = micros.nodes.get(index).or(micros.nodes.last());
    // An operation with one operand has its places from the first of each list.
    let listed = micros.op.operands() as usize;
    let mut ring = |wanted: usize| -> Result<Ring, BenchError> {
        let operand = wanted.min(listed - 1);
        let node = match nodes.and_then(|nodes| nodes.get(operand)) {
            None | Some(-1) => user.socket,
            Some(node) => node_of(*node, platform)?,
        };
        let cache = match micros.access.get(operand) {
            Some(Access::Touched | Access::Demoted) => Cache::Llc,
            _ => Cache::Memory,
        };
        let place = MemoryLocation {
            node: NodeId(node),
            cache,
        };
        let offset = micros.offsets.get(operand).copied().unwrap_or(0) * PAGE_BYTES;
        let len = offset + micros.span(wanted, count);
        let region = world.memory.allocate(len, place, backed);
        let ring = Ring {
            base: world.memory.region(region).base + offset,
            stride: micros.stride(wanted),
            count,
        };
        if let Some(bytes) = micros.shape().before(wanted).filter(|_| backed) {
            (0..count).for_each(|index| world.memory.write(ring.at(index), &bytes));
        }
        Ok(ring)
    };
    Ok(Buffers {
        src: ring(0)?,
        dst: ring(1)?,
        dst2: ring(2)?,
    })
}

fn node_of(node: i32, platform: &PlatformFile) -> Result<u16, BenchError> {
    let nodes = platform.topology.nodes();
    match u16::try_from(node) {
        Ok(node) if node < nodes => Ok(node),
        _ => Err(BenchError::Value {
            flag: format!("-S {node}"),
            reason: format!("the platform has memory nodes 0 to {}", nodes - 1),
            hint: "-S -1 is the CPU's own node".to_owned(),
        }),
    }
}

/// Whether destinations hold what they should.
pub(super) fn check(
    world: &World,
    micros: &Micros,
    buffers: &Buffers,
    count: u64,
) -> Result<(), BenchError> {
    let rings = [buffers.src, buffers.dst, buffers.dst2];
    for (operand, ring) in rings.iter().enumerate() {
        let Some(expected) = micros.shape().after(operand) else {
            continue;
        };
        // Buffers that overlap hold what came last.
        if ring.stride < expected.len() as u64 {
            continue;
        }
        let mut found = vec![0; expected.len()];
        for index in 0..count {
            world.memory.read(ring.at(index), &mut found);
            if found != expected {
                return Err(BenchError::WrongBytes { buffer: index });
            }
        }
    }
    Ok(())
}
