//! Buffers of a modelled measurement: where they are, what they hold, and whether they are right.

use dray::model::World;
use dray_platform::{Cache, NodeId, PAGE_BYTES, Place, PlatformFile};

use super::machine::User;
use super::options::{Access, Micros};
use crate::BenchError;
use crate::buffers::{Buffers, PATTERN, Ring};
use crate::case::Op;

/// Buffers of one CPU.
pub(super) fn operands(
    world: &mut World,
    micros: &Micros,
    platform: &PlatformFile,
    user: &User,
    index: usize,
    backed: bool,
) -> Result<Buffers, BenchError> {
    let size = u64::from(micros.size);
    let stride = micros.stride.unwrap_or(match micros.op {
        // Both destinations must be alike in address bits 11:0 (spec 8.3.8).
        Op::Dualcast => size.next_multiple_of(PAGE_BYTES),
        _ => size.next_multiple_of(64),
    });
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
        let place = Place {
            node: NodeId(node),
            cache,
        };
        let offset = micros.offsets.get(operand).copied().unwrap_or(0) * PAGE_BYTES;
        let len = offset + (count - 1) * stride + size.max(64);
        let region = world.memory.allocate(len, place, backed);
        let base = world.memory.region(region).base + offset;
        if backed {
            fill(world, base, len - offset, wanted, micros.op);
        }
        Ok(Ring {
            base,
            stride,
            count,
        })
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

/// Sources hold the pattern; so does what is compared with them.
fn fill(world: &mut World, base: u64, len: u64, operand: usize, op: Op) {
    if operand == 0 || op == Op::Compare {
        let bytes: Vec<u8> = PATTERN.to_le_bytes().repeat(len.div_ceil(8) as usize);
        world.memory.write(base, &bytes[..len as usize]);
    }
}

/// Whether destinations hold what they should.
pub(super) fn check(
    world: &World,
    micros: &Micros,
    buffers: &Buffers,
    count: u64,
) -> Result<(), BenchError> {
    let written: &[Ring] = match micros.op {
        Op::Move | Op::Copy | Op::Fill | Op::CopyCrc => &[buffers.dst],
        Op::Dualcast => &[buffers.dst, buffers.dst2],
        _ => &[],
    };
    let mut found = vec![0; micros.size as usize];
    for ring in written {
        for index in 0..count {
            // What was copied is the source as it is now: with a short stride sources overlap.
            let mut expected = vec![0; found.len()];
            match micros.op {
                Op::Fill => {
                    let pattern = PATTERN.to_le_bytes();
                    expected
                        .iter_mut()
                        .enumerate()
                        .for_each(|(at, byte)| *byte = pattern[at % 8]);
                }
                _ => world.memory.read(buffers.src.at(index), &mut expected),
            }
            world.memory.read(ring.at(index), &mut found);
            let overlapping = ring.stride < u64::from(micros.size);
            if found != expected && !overlapping {
                return Err(BenchError::WrongBytes { buffer: index });
            }
        }
    }
    Ok(())
}
