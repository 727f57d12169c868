//! Two sides that take turns, so that what disturbs the machine disturbs both.

use std::time::Instant;

const ROUNDS: usize = 301;

/// Median and quartiles.
pub(crate) fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

/// Runs two sides in turns: nanoseconds of each, and of the second what it has more.
pub(crate) fn paired(
    name: &str,
    operations: f64,
    mut plain: impl FnMut(),
    mut library: impl FnMut(),
) {
    let timed = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos() as f64 / operations
    };
    let mut sides: [Vec<f64>; 3] = Default::default();
    for round in 0..ROUNDS {
        let (first, second) = match round % 2 {
            0 => {
                let first = timed(&mut plain);
                (first, timed(&mut library))
            }
            _ => {
                let second = timed(&mut library);
                (timed(&mut plain), second)
            }
        };
        sides[0].push(first);
        sides[1].push(second);
        sides[2].push(second - first);
    }
    let [plain, library, more] = sides.each_mut().map(|side| quartiles(side));
    println!(
        "{name:44} {:8.1} ns plain  {:8.1} ns library  {:7.1} ns more ({:.1} to {:.1})",
        plain[1], library[1], more[1], more[0], more[2]
    );
}
