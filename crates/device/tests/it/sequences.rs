//! Submissions, takes and ends in any order, on any configuration, against what may be promised.

mod witness;

use crate::common::cases;
use crate::common::profile::{capabilities, queue};
use dray_device::{Capabilities, DeviceConfig, GroupConfig, WorkQueueConfig, WorkQueueMode};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use witness::{Kind, Witness};

fn work_queue() -> impl Strategy<Value = WorkQueueConfig> {
    (any::<bool>(), 1..6_u16, 0..7_u16, 1..=15_u8, 0..3_u16).prop_map(
        |(shared, size, threshold, priority, group)| {
            let mode = match shared {
                true => WorkQueueMode::Shared,
                false => WorkQueueMode::Dedicated,
            };
            WorkQueueConfig {
                threshold,
                priority,
                group,
                ..queue(0, mode, size)
            }
        },
    )
}

/// Up to three groups, four engines, eight queues; every group has an engine.
fn config() -> impl Strategy<Value = DeviceConfig> {
    (vec(work_queue(), 1..8), 1..=3_u16, vec(0..3_u16, 4)).prop_map(|(queues, groups, homes)| {
        let work_queues = (0..).zip(queues).map(|(id, queue)| WorkQueueConfig {
            id,
            group: queue.group % groups,
            ..queue
        });
        let engines = |group| {
            let home = |engine: u16| match engine < groups {
                true => engine,
                false => homes[usize::from(engine)] % groups,
            };
            (0..4).filter(|engine| home(*engine) == group).collect()
        };
        let work_queues: Vec<WorkQueueConfig> = work_queues.collect();
        // A group without queues cannot be enabled with engines (spec 5.1).
        let used = |group: &u16| work_queues.iter().any(|queue| queue.group == *group);
        let used: Vec<u16> = (0..groups).filter(used).collect();
        DeviceConfig {
            capabilities: Capabilities {
                gen_cap: capabilities().gen_cap | 1 << 9,
                ..capabilities()
            },
            work_queues,
            groups: used
                .into_iter()
                .map(|id| GroupConfig {
                    id,
                    engines: engines(id),
                    ..GroupConfig::default()
                })
                .collect(),
            ..DeviceConfig::default()
        }
    })
}

#[derive(Debug, Clone)]
enum Act {
    Submit {
        wq: Index,
        limited: bool,
        posted: bool,
        kind: Kind,
        pasid: u32,
    },
    Take {
        engine: u16,
    },
    /// The list of a batch arrives.
    Fetch {
        which: Index,
    },
    /// Another member of a batch starts.
    Start {
        which: Index,
    },
    /// Something that an engine works on ends.
    End {
        which: Index,
        fails: bool,
    },
}

fn kind() -> impl Strategy<Value = Kind> {
    let member = prop_oneof![
        6 => Just(witness::Member { fenced: false, refused: false }),
        2 => Just(witness::Member { fenced: true, refused: false }),
        1 => Just(witness::Member { fenced: false, refused: true }),
    ];
    prop_oneof![
        4 => Just(Kind::Noop),
        2 => Just(Kind::Drain),
        1 => Just(Kind::ReadBack),
        1 => Just(Kind::Refused),
        2 => vec(member, 2..6).prop_map(Kind::Batch),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let submit = (
        any::<Index>(),
        any::<bool>(),
        any::<bool>(),
        kind(),
        0..3_u32,
    );
    prop_oneof![
        5 => submit.prop_map(|(wq, limited, posted, kind, pasid)| Act::Submit { wq, limited, posted, kind, pasid }),
        3 => (0..4_u16).prop_map(|engine| Act::Take { engine }),
        2 => any::<Index>().prop_map(|which| Act::Fetch { which }),
        3 => any::<Index>().prop_map(|which| Act::Start { which }),
        3 => (any::<Index>(), prop::bool::weighted(0.15))
            .prop_map(|(which, fails)| Act::End { which, fails }),
    ]
}

fn perform(witness: &mut Witness, act: &Act) {
    match act {
        Act::Submit {
            wq,
            limited,
            posted,
            kind,
            pasid,
        } => {
            let wq = wq.index(witness.queues()) as u16;
            witness.submit(wq, *limited, *posted, kind, *pasid);
        }
        Act::Take { engine } => witness.take(*engine),
        Act::Fetch { which } => witness.fetch(|n| which.index(n)),
        Act::Start { which } => witness.start(|n| which.index(n)),
        Act::End { which, fails } => witness.end(|n| which.index(n), *fails),
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn everything_accepted_ends_once_and_in_its_turn(config in config(), acts in vec(act(), 0..200)) {
        let mut witness = Witness::new(config);
        for act in &acts {
            perform(&mut witness, act);
        }
        witness.finish();
    }
}
