//! Which pairs go to another thread.

use std::time::Duration;

/// Part of the time by which a move must make the busiest thread less busy, at least: moves cost something, and
/// loads vary.
const WORTH: u32 = 20;

/// A pair, who receives from it, and how long its packets took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) port: usize,
    pub(super) pair: usize,
    pub(super) thread: usize,
    pub(super) time: Duration,
}

/// Moves of pairs, each with the thread that it goes to: from the busiest thread to the least busy one, as long
/// as that makes the busier of both less busy by a twentieth of `period`. `loads` has them carried out.
pub(super) fn plan(
    loads: &mut [Load],
    threads: usize,
    period: Duration,
) -> Vec<(usize, usize, usize)> {
    let mut moves = Vec::new();
    // Each move makes the busiest thread less busy: a pair moves once at most.
    for _ in 0..loads.len() {
        let mut busy = vec![Duration::ZERO; threads];
        loads.iter().for_each(|load| busy[load.thread] += load.time);
        let by_load = |thread: &usize| busy[*thread];
        let (Some(from), Some(to)) = (
            (0..threads).max_by_key(by_load),
            (0..threads).min_by_key(by_load),
        ) else {
            break;
        };
        let gap = busy[from] - busy[to];
        let gain = |load: &Load| load.time.min(gap.saturating_sub(load.time));
        let here = loads.iter_mut().filter(|load| load.thread == from);
        let Some(best) = here.max_by_key(|load| gain(load)) else {
            break;
        };
        if gain(best) < period / WORTH {
            break;
        }
        best.thread = to;
        moves.push((best.port, best.pair, to));
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(1000);

    fn loads(list: &[(usize, u64)]) -> Vec<Load> {
        let load = |(pair, (thread, ms)): (usize, &(usize, u64))| Load {
            port: 0,
            pair,
            thread: *thread,
            time: Duration::from_millis(*ms),
        };
        list.iter().enumerate().map(load).collect()
    }

    #[test]
    fn pairs_go_from_the_busiest_thread_to_the_least_busy() {
        let mut two = loads(&[(0, 400), (0, 300), (0, 200), (1, 0)]);
        assert_eq!(plan(&mut two, 2, PERIOD), [(0, 0, 1)]);
        assert_eq!(plan(&mut two, 2, PERIOD), [], "it stays");
        let mut three = loads(&[(0, 300), (0, 300), (0, 300)]);
        let moves = plan(&mut three, 3, PERIOD);
        assert_eq!(moves.len(), 2);
        let mut threads: Vec<usize> = three.iter().map(|load| load.thread).collect();
        threads.sort_unstable();
        assert_eq!(threads, [0, 1, 2]);
    }

    #[test]
    fn nothing_moves_that_gains_little() {
        assert_eq!(
            plan(&mut loads(&[(0, 900)]), 2, PERIOD),
            [],
            "one pair alone"
        );
        assert_eq!(plan(&mut loads(&[(0, 500), (1, 480)]), 2, PERIOD), []);
        assert_eq!(plan(&mut loads(&[(0, 40), (0, 40)]), 2, PERIOD), [], "idle");
        assert_eq!(plan(&mut [], 2, PERIOD), []);
        assert_eq!(plan(&mut loads(&[(0, 500), (0, 500)]), 1, PERIOD), []);
    }

    proptest::proptest! {
        #[test]
        fn a_plan_makes_the_busiest_thread_less_busy(
            list in proptest::collection::vec((0usize..4, 0u64..1000), 0..40),
        ) {
            let mut after = loads(&list);
            let most = |loads: &[Load]| {
                let mut busy = [Duration::ZERO; 4];
                loads.iter().for_each(|load| busy[load.thread] += load.time);
                busy.into_iter().max()
            };
            let before = most(&after);
            let moves = plan(&mut after, 4, PERIOD);
            proptest::prop_assert!(most(&after) <= before);
            proptest::prop_assert!(moves.len() <= list.len());
            proptest::prop_assert_eq!(plan(&mut after, 4, PERIOD), []);
        }
    }
}
