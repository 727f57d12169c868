//! Each fast operation beside the best that this machine has for it, in one run.
//!
//! `cargo bench -p dray-ops --bench peers [-- FILTER --multiply none|narrow|half|wide --vectors 16|32|64]`. The peers are the C library's and, where it is
//! installed (Debian's libisal2), ISA-L's. Both sides take turns on the same buffers; a ratio above 1
//! says that ours is faster. Hot: the same buffers again and again. Cold: others each time, from
//! far more memory than the last-level cache holds. `--multiply`: CRCs and guards as on processors that multiply without
//! carries not at all, 16, 32 or 64 bytes at once; below `wide` ISA-L's are those for processors without VPCLMULQDQ, as it
//! chooses itself where AVX-512 is not (2.30 exports its functions of each kind). `--vectors`: bytes of vectors for all else.

mod cases;
mod isal;
mod memory;
mod rounds;

use cases::{CASES, Case, Peer};
use dray_ops::Multiplication;
use isal::Isal;
use memory::Arena;
use rounds::{ROUNDS, Spread, measure};

const SIZES: [(usize, &str); 3] = [(4 << 10, "4 KiB"), (64 << 10, "64 KiB"), (1 << 20, "1 MiB")];

/// What the value behind an option says, if it is there. Others are no values.
fn value<T: Copy>(arguments: &[String], option: &str, values: &[(&str, T)]) -> Option<T> {
    let at = arguments.iter().position(|argument| argument == option)?;
    let value = arguments.get(at + 1).map_or("", String::as_str);
    let found = values.iter().find(|(name, _)| *name == value);
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    let (_, found) = found.unwrap_or_else(|| panic!("{option} {value}: one of {names:?}"));
    Some(*found)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Without this flag it is a test run that only wants to see it built.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    const NAMES: [&str; 4] = ["none", "narrow", "half", "wide"];
    let kinds: Vec<_> = NAMES.into_iter().zip(Multiplication::ALL).collect();
    let multiply = value(&arguments, "--multiply", &kinds).unwrap_or(Multiplication::Wide);
    dray_ops::multiply_at_most(multiply);
    let sizes = [("16", 16), ("32", 32), ("64", 64)];
    if let Some(bytes) = value(&arguments, "--vectors", &sizes) {
        dray_ops::vectors_at_most(bytes);
    }
    // The first, so that values of options are none.
    let filter = arguments.first().filter(|a| !a.starts_with("--"));
    let without = multiply < Multiplication::Wide;
    let isal = Isal::open(without);
    if let Err(reason) = &isal {
        println!("without ISA-L (apt-get install libisal2): {reason}");
    }
    println!("ratio = time of the peer / time of ours; median [quartiles] of {ROUNDS} rounds\n");
    println!(
        "{:<22} {:<26} {:>7} {:>5} {:>9} {:>9}  ratio",
        "operation", "peer", "size", "", "ours GB/s", "peer GB/s"
    );
    for case in CASES {
        if filter.is_some_and(|filter| !case.name.contains(filter.as_str())) {
            continue;
        }
        let peer: Box<dyn Fn(&mut memory::Slot<'_>) -> u64> = match (case.peer, &isal) {
            (Peer::Library(peer), _) => Box::new(peer),
            (Peer::Isal(peer), Ok(isal)) => Box::new(move |slot| peer(isal, slot)),
            (Peer::Isal(_), Err(_)) => continue,
        };
        for (bytes, size) in SIZES {
            for (slots, kind) in [(1, "hot"), (memory::COLD_BYTES / bytes, "cold")] {
                let mut arena = Arena::new(bytes, slots, case.content);
                row(case, &*peer, &mut arena, size, kind);
            }
        }
    }
}

fn row(
    case: &Case,
    peer: &dyn Fn(&mut memory::Slot<'_>) -> u64,
    arena: &mut Arena,
    size: &str,
    kind: &str,
) {
    let (ours, theirs) = ((case.ours)(&mut arena.slot(0)), peer(&mut arena.slot(0)));
    assert_eq!(ours, theirs, "{}: they do different things", case.name);
    let measured = measure(arena, &case.ours, peer);
    let Spread { low, median, high } = measured.ratio;
    println!(
        "{:<22} {:<26} {size:>7} {kind:>5} {:>9.2} {:>9.2}  {median:.2} [{low:.2} {high:.2}]",
        case.name, case.peer_name, measured.ours_gbps, measured.peer_gbps
    );
}
