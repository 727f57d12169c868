//! What a descriptor does, read from the specification byte by byte; slow and simple.

use dray_device::Access;
use dray_ops::CrcOptions;
use dray_spec::{Descriptor, Flags, Opcode};

use dray_conformance::rules::Pages;

/// How a descriptor ends, of what the specification fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Done {
        predicate: bool,
        result: u8,
        bytes: u32,
        crc: Option<u32>,
    },
    Fault {
        bytes: u32,
        /// Without bits 11:0, which hardware may report as 0.
        page: u64,
        write: bool,
        backward: bool,
        /// Undefined where no byte was completed.
        crc: Option<u32>,
    },
}

fn done() -> End {
    End::Done {
        predicate: true,
        result: 0,
        bytes: 0,
        crc: None,
    }
}

fn fault(bytes: u32, address: u64, write: bool) -> End {
    End::Fault {
        bytes,
        page: address & !0xfff,
        write,
        backward: false,
        crc: None,
    }
}

struct Operand {
    base: u64,
    access: Access,
}

/// The address of byte `n`, unless it cannot be accessed. Nothing wraps.
fn reach(memory: &Pages, operand: &Operand, n: u32) -> Result<u64, u64> {
    let address = operand.base.wrapping_add(u64::from(n));
    let inside = operand.base.checked_add(u64::from(n)).is_some();
    match inside && memory.allows(address, operand.access) {
        true => Ok(address),
        false => Err(address),
    }
}

/// Byte `n` of every operand, or the fault that stops the descriptor after `bytes`.
fn step(memory: &Pages, operands: &[Operand], n: u32, bytes: u32) -> Result<Vec<u64>, End> {
    let one = |operand: &Operand| {
        reach(memory, operand, n)
            .map_err(|address| fault(bytes, address, operand.access == Access::Write))
    };
    operands.iter().map(one).collect()
}

fn byte(memory: &Pages, address: u64) -> u8 {
    memory.peek(address, 1)[0]
}

/// Carries out a descriptor that breaks no rule.
pub(crate) fn expected_end(d: &Descriptor, memory: &mut Pages) -> End {
    let ended = match d.opcode() {
        Ok(Opcode::Memmove) => memmove(d, memory),
        Ok(Opcode::Fill) => fill(d, memory),
        Ok(Opcode::Compare) => compare(d, memory),
        Ok(Opcode::ComparePattern) => compare_pattern(d, memory),
        Ok(Opcode::Dualcast) => dualcast(d, memory),
        Ok(Opcode::CrcGenerate | Opcode::CopyCrc) => crc(d, memory),
        _ => Ok(done()),
    };
    ended.unwrap_or_else(|fault| fault)
}

fn read(base: u64) -> Operand {
    Operand {
        base,
        access: Access::Read,
    }
}

fn write(base: u64) -> Operand {
    Operand {
        base,
        access: Access::Write,
    }
}

/// "As if the entire source buffer is copied to temporary space" (8.3.4): from the end, if the
/// destination starts inside the source.
fn memmove(d: &Descriptor, memory: &mut Pages) -> Result<End, End> {
    let operands = [read(d.address1), write(d.address2)];
    let original = memory.clone();
    let backward = (1..d.size).any(|n| d.address1.checked_add(n.into()) == Some(d.address2));
    for count in 0..d.size {
        let n = match backward {
            true => d.size - 1 - count,
            false => count,
        };
        let at = step(memory, &operands, n, count).map_err(|mut fault| {
            if let End::Fault {
                backward: found, ..
            } = &mut fault
            {
                *found = backward;
            }
            fault
        })?;
        memory.poke(at[1], &[byte(&original, at[0])]);
    }
    Ok(done())
}

fn fill(d: &Descriptor, memory: &mut Pages) -> Result<End, End> {
    let mut pattern = d.address1.to_le_bytes().to_vec();
    if d.flags().contains(Flags::FILL_PATTERN_16) {
        pattern.extend(d.pattern_high().to_le_bytes());
    }
    for n in 0..d.size {
        let at = step(memory, &[write(d.address2)], n, n)?;
        memory.poke(at[0], &[pattern[n as usize % pattern.len()]]);
    }
    Ok(done())
}

fn compared(d: &Descriptor, difference: Option<u32>) -> End {
    let result = u8::from(difference.is_some());
    let checked = d.flags().contains(Flags::CHECK_RESULT);
    End::Done {
        predicate: !checked || result == d.operation[0] & 1,
        result,
        bytes: difference.unwrap_or(0),
        crc: None,
    }
}

fn compare(d: &Descriptor, memory: &Pages) -> Result<End, End> {
    for n in 0..d.size {
        let at = step(memory, &[read(d.address1), read(d.address2)], n, n)?;
        if byte(memory, at[0]) != byte(memory, at[1]) {
            return Ok(compared(d, Some(n)));
        }
    }
    Ok(compared(d, None))
}

fn compare_pattern(d: &Descriptor, memory: &Pages) -> Result<End, End> {
    for n in 0..d.size {
        let at = step(memory, &[read(d.address1)], n, n)?;
        if byte(memory, at[0]) != d.address2.to_le_bytes()[n as usize % 8] {
            return Ok(compared(d, Some(n)));
        }
    }
    Ok(compared(d, None))
}

fn dualcast(d: &Descriptor, memory: &mut Pages) -> Result<End, End> {
    let operands = [read(d.address1), write(d.address2), write(d.destination2())];
    for n in 0..d.size {
        let at = step(memory, &operands, n, n)?;
        let copied = byte(memory, at[0]);
        memory.poke(at[1], &[copied]);
        memory.poke(at[2], &[copied]);
    }
    Ok(done())
}

fn crc(d: &Descriptor, memory: &mut Pages) -> Result<End, End> {
    let flags = d.flags();
    let mut seed = d.crc_seed();
    if flags.contains(Flags::CRC_READ_SEED) {
        let mut bytes = [0; 4];
        for (n, into) in (0..).zip(&mut bytes) {
            let at = step(memory, &[read(d.crc_seed_address())], n, 0)?;
            *into = byte(memory, at[0]);
        }
        seed = u32::from_le_bytes(bytes);
    }
    let mut operands = vec![read(d.address1)];
    if d.opcode() == Ok(Opcode::CopyCrc) {
        operands.push(write(d.address2));
    }
    let options = CrcOptions {
        bypass_inversion_reflection: flags.contains(Flags::CRC_BYPASS_INVERSION),
        bypass_data_reflection: flags.contains(Flags::CRC_BYPASS_DATA_REFLECTION),
    };
    let mut data = Vec::new();
    for n in 0..d.size {
        let at = step(memory, &operands, n, n).map_err(|mut fault| {
            if let End::Fault { crc, .. } = &mut fault {
                *crc = (n > 0).then(|| dray_ops::oracle::crc32c(seed, &data, options));
            }
            fault
        })?;
        data.push(byte(memory, at[0]));
        if let Some(&to) = at.get(1) {
            memory.poke(to, &data[data.len() - 1..]);
        }
    }
    Ok(End::Done {
        predicate: true,
        result: 0,
        bytes: 0,
        crc: Some(dray_ops::oracle::crc32c(seed, &data, options)),
    })
}
