//! The inter-domain permissions table as software writes it (spec 9.2.29).

use dray_spec::registers::{IdptAccess, IdptControl};

use super::bits::Bits;
use crate::IdptEntry;

/// The qword at an offset in an entry.
pub(crate) fn read(entry: &IdptEntry, at: u64) -> u64 {
    match at {
        0 => u64::from(entry.control.into_bits()) | u64::from(entry.access.into_bits()) << 32,
        8 => entry.window_base,
        16 => entry.window_size,
        24 => entry.bitmap,
        _ => 0,
    }
}

/// Writes what can be written now: most fields only while no descriptor can use or change the entry (spec
/// Table 9-10). What the write itself allows or forbids holds from then on.
pub(crate) fn write(entry: &mut IdptEntry, at: u64, bits: Bits) {
    let usable = entry.control.usable();
    let locked = usable || entry.control.allow_update();
    let unless = |condition: bool, mask: u64| if condition { 0 } else { mask };
    match at {
        0 => {
            let mut word = read(entry, 0);
            let writable = 3
                | unless(locked, 0xc)
                | unless(usable, 0xffff_f000)
                | unless(locked, 0xffff_f01f << 32);
            bits.store(&mut word, writable);
            entry.control = IdptControl::from_bits(word as u32);
            entry.access = IdptAccess::from_bits((word >> 32) as u32);
        }
        8 => bits.store(&mut entry.window_base, unless(locked, u64::MAX)),
        16 => bits.store(&mut entry.window_size, unless(locked, u64::MAX)),
        24 => bits.store(&mut entry.bitmap, unless(usable, !0xfff)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_ones(entry: &mut IdptEntry, at: u64) -> u64 {
        let bits = Bits {
            value: u64::MAX,
            mask: u64::MAX,
        };
        write(entry, at, bits);
        read(entry, at)
    }

    fn with(control: u32) -> IdptEntry {
        IdptEntry {
            control: IdptControl::from_bits(control),
            ..IdptEntry::default()
        }
    }

    #[test]
    fn fields_are_locked_as_the_table_says() {
        // Neither usable nor open to updates; usable; open to updates.
        let cases = [
            (0, [0xffff_f01f_ffff_f00f, u64::MAX, u64::MAX, !0xfff]),
            (1, [0x0000_0000_0000_0003, 0, 0, 0]),
            (2, [0x0000_0000_ffff_f003, 0, 0, !0xfff]),
        ];
        for (control, expected) in cases {
            for (at, value) in [0, 8, 16, 24].into_iter().zip(expected) {
                assert_eq!(all_ones(&mut with(control), at), value, "{control} at {at}");
            }
        }
        assert_eq!(all_ones(&mut with(0), 32), 0);
    }
}
