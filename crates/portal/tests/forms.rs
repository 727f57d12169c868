//! Every addressing form of MOVDIR64B and ENQCMD: trapped first, patched then, with nothing changed
//! that the instruction leaves alone.

mod common;

use common::{Log, alone, code, place, run};
use dray_portal::Registers;

const RSP: usize = 4;
const RBP: usize = 5;
const R12: usize = 12;
const R13: usize = 13;

/// A source operand, for an encoder of the test's own.
#[derive(Debug, Clone, Copy)]
struct Form {
    enqcmd: bool,
    destination: usize,
    base: Option<usize>,
    index: Option<(usize, u32)>,
    displacement: i32,
    narrow: bool,
    segment: Option<u8>,
    rip: bool,
}

impl Form {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.segment);
        if self.narrow {
            bytes.push(0x67);
        }
        bytes.push(if self.enqcmd { 0xf2 } else { 0x66 });
        let high = |register: Option<usize>| register.is_some_and(|r| r >= 8) as u8;
        let rex = high(Some(self.destination)) << 2
            | high(self.index.map(|(index, _)| index)) << 1
            | high(self.base);
        if rex != 0 {
            bytes.push(0x40 | rex);
        }
        bytes.extend([0x0f, 0x38, 0xf8]);
        let reg = (self.destination as u8 & 7) << 3;
        let displacement = self.displacement.to_le_bytes();
        if self.rip {
            bytes.push(reg | 5);
            bytes.extend(displacement);
            return bytes;
        }
        let (mode, width) = match (self.base, self.displacement) {
            (None, _) => (0, 4),
            (Some(base), 0) if base & 7 != RBP => (0, 0),
            (Some(_), -128..128) => (1 << 6, 1),
            (Some(_), _) => (2 << 6, 4),
        };
        match (self.base, self.index) {
            (Some(base), None) if base & 7 != RSP => bytes.push(mode | reg | base as u8 & 7),
            (base, index) => {
                bytes.push(mode | reg | 4);
                let base = base.map_or(5, |base| base as u8 & 7);
                let index = index.map_or(4 << 3, |(index, shift)| {
                    (index as u8 & 7) << 3 | (shift as u8) << 6
                });
                bytes.push(index | base);
            }
        }
        bytes.extend(&displacement[..width]);
        bytes
    }
}

/// Memory below 4 GiB, for addresses of 32 bits; much room on both sides of what is used.
fn low_memory(bytes: usize) -> usize {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
    // SAFETY: new pages.
    let pages = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    assert_ne!(pages, libc::MAP_FAILED);
    pages.addr()
}

struct Bench {
    log: &'static Log,
    portal: usize,
    memory: usize,
    code: usize,
    serial: u64,
}

impl Bench {
    fn new() -> Bench {
        static LOG: Log = Log::new();
        let flags = libc::MAP_SHARED | libc::MAP_32BIT;
        let portal = dray_portal::Portal::leak(&LOG);
        Bench {
            log: &LOG,
            portal: dray_portal::mapping::map(0, 4096, libc::PROT_WRITE, flags, None, portal)
                .expect("a page below 2 GiB"),
            memory: low_memory(1 << 20),
            code: code(1 << 20),
            serial: 0,
        }
    }

    /// Executes a form twice: it traps and is patched, then it takes the jump.
    fn check(&mut self, form: Form) {
        let source = self.memory + (1 << 19) + 24;
        let at = self.code;
        let bytes = form.encode();
        let mut displacement = form.displacement;
        let mut encoded = bytes.clone();
        let mut source = source;
        if form.rip {
            // The source lies behind the code.
            source = at + 96;
            displacement = (source - at - bytes.len()) as i32;
            let behind = encoded.len() - 4;
            encoded[behind..].copy_from_slice(&displacement.to_le_bytes());
        } else if form.base.is_none() {
            displacement = match form.index {
                None => source as i32,
                Some(_) => displacement,
            };
            let behind = encoded.len() - 4;
            encoded[behind..].copy_from_slice(&displacement.to_le_bytes());
        }
        self.code += 96 + 64 + 16;
        place(at, &encoded);
        for turn in 0..3 {
            let full = turn == 2;
            self.log
                .full
                .store(full, std::sync::atomic::Ordering::SeqCst);
            self.serial += 1;
            let mut words: [u64; 8] = std::array::from_fn(|i| self.serial << 32 | (i as u64) << 60);
            words[7] = !self.serial;
            // SAFETY: memory of the test.
            unsafe { (source as *mut [u64; 8]).write_unaligned(words) };
            let mut registers = Registers::default();
            for (number, value) in registers.general.iter_mut().enumerate() {
                *value = 0x0101_0101_0101_0101 * number as u64;
            }
            registers.general[RSP] = (self.memory + (1 << 18)) as u64;
            let index = form.index.map_or(0, |(index, shift)| {
                registers.general[index] = 0x1234;
                0x1234u64 << shift
            });
            let rest = (source as u64)
                .wrapping_sub(index)
                .wrapping_sub(displacement as i64 as u64);
            match (form.base, form.index) {
                (Some(base), _) => registers.general[base] = rest,
                (None, Some((index, shift))) => {
                    let wanted = (source as u64).wrapping_sub(displacement as i64 as u64);
                    assert_eq!(wanted % (1 << shift), 0);
                    registers.general[index] = wanted >> shift;
                }
                (None, None) => (),
            }
            if form.narrow {
                // What is above 32 bits must not count.
                for register in [form.base, form.index.map(|(index, _)| index)]
                    .into_iter()
                    .flatten()
                {
                    if register != RSP {
                        registers.general[register] =
                            registers.general[register] & 0xffff_ffff | 0xabcd << 32;
                    }
                }
            }
            let offset = (self.serial % 64) * 64;
            registers.general[form.destination] = self.portal as u64 + offset;
            if form.narrow {
                registers.general[form.destination] |= 0x77 << 32;
            }
            // Carry, parity, adjust, sign, overflow and direction; zero the wrong way round.
            let arithmetic = 0x895 | if full { 0 } else { 0x40 };
            registers.flags = 0x202 | arithmetic | 0x400;
            let mut expected = registers.clone();
            if form.enqcmd {
                expected.flags = 0x202 | 0x400 | if full { 0x40 } else { 0 };
            }
            let before = self.log.counts();
            run(&mut registers, at);
            let what = format!("{form:?} {encoded:02x?} turn {turn}");
            assert_eq!(registers, expected, "{what}");
            let (posted, enqueued) = self.log.counts();
            match form.enqcmd {
                false => assert_eq!((posted, enqueued), (before.0 + 1, before.1), "{what}"),
                true => {
                    let new = usize::from(!full);
                    assert_eq!((posted, enqueued), (before.0, before.1 + new), "{what}");
                }
            }
            if !(full && form.enqcmd) {
                assert_eq!(self.log.last(), words, "{what}");
            }
        }
        // SAFETY: the code that was executed.
        let first = unsafe { (at as *const u8).read_volatile() };
        let patched = form.destination != RSP && self.serial <= 3 * 500;
        assert_eq!(first == 0xe9, patched, "{form:?}");
    }
}

#[test]
fn every_operand_form_submits_the_addressed_line() {
    let _alone = alone();
    let mut bench = Bench::new();
    let plain = Form {
        enqcmd: false,
        destination: 0,
        base: Some(2),
        index: None,
        displacement: 0,
        narrow: false,
        segment: None,
        rip: false,
    };
    let mut forms = Vec::new();
    for base in 0..16 {
        let destination = if base == 0 { 2 } else { 0 };
        for displacement in [0, 64, -1000] {
            let base = Some(base);
            forms.push(Form {
                base,
                destination,
                displacement,
                ..plain
            });
        }
        // A base with a scaled index of every kind.
        for (turn, index) in (0..16)
            .filter(|index| *index != RSP && *index != base)
            .enumerate()
        {
            let destination = (0..16)
                .find(|r| *r != base && *r != index && *r != RSP)
                .expect("another");
            let displacement = [0, 8, 100_000][turn % 3];
            let index = Some((index, turn as u32 % 4));
            let base = Some(base);
            forms.push(Form {
                base,
                index,
                destination,
                displacement,
                ..plain
            });
        }
    }
    for destination in (0..16).filter(|r| *r != 3 && *r != RSP) {
        forms.push(Form {
            base: Some(3),
            destination,
            ..plain
        });
        // Narrow ones take 32 bits of each register.
        let narrow = Form {
            base: Some(3),
            destination,
            narrow: true,
            ..plain
        };
        forms.push(narrow);
        if destination != R12 {
            let index = Some((R12, 3));
            forms.push(Form {
                index,
                displacement: -4,
                ..narrow
            });
        }
    }
    // No base: an index alone, an address alone, and relative to the instruction.
    for index in [0, 1, RBP, R12, R13] {
        forms.push(Form {
            base: None,
            index: Some((index, 3)),
            displacement: 0x1000,
            destination: 7,
            ..plain
        });
    }
    forms.push(Form {
        base: None,
        ..plain
    });
    forms.push(Form {
        base: None,
        narrow: true,
        ..plain
    });
    forms.push(Form {
        rip: true,
        base: None,
        ..plain
    });
    // Flat segments by prefix change nothing.
    for segment in [0x2e, 0x36, 0x3e, 0x26] {
        forms.push(Form {
            segment: Some(segment),
            ..plain
        });
    }
    let all = forms.len();
    for (number, form) in forms.into_iter().enumerate() {
        bench.check(Form {
            enqcmd: number % 2 == 0,
            ..form
        });
        if number % 3 == 0 {
            bench.check(Form {
                enqcmd: number % 2 != 0,
                ..form
            });
        }
    }
    assert!(all > 300);
    let (posted, enqueued) = bench.log.counts();
    assert!(posted > 500 && enqueued > 300, "{posted} {enqueued}");
}

#[test]
fn segment_bases_apply_only_to_the_source() {
    let _alone = alone();
    let bench = Bench::new();
    let at = bench.code;
    // movdir64b rax, fs:[rdx]
    place(at, &[0x64, 0x66, 0x0f, 0x38, 0xf8, 0x02]);
    let mut base = 0usize;
    const ARCH_GET_FS: i32 = 0x1003;
    // SAFETY: the call writes one word.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_FS, &raw mut base) };
    let words = [11u64, 12, 13, 14, 15, 16, 17, 18];
    for turn in 1..=2 {
        let mut registers = Registers::default();
        registers.general[0] = bench.portal as u64;
        registers.general[2] = ((&raw const words).addr() as u64).wrapping_sub(base as u64);
        registers.general[RSP] = (bench.memory + (1 << 18)) as u64;
        registers.flags = 0x202;
        let (before, _) = bench.log.counts();
        run(&mut registers, at);
        assert_eq!(bench.log.counts().0, before + 1);
        assert_eq!(bench.log.last(), words, "turn {turn}");
    }
}
