//! The published estimates of shared bandwidth, and where they are too low.

use super::{Check, CheckRow, PAPER, parameters};
use crate::PcieError;
use crate::sim::{Simulation, SimulationOptions, Source};
use crate::{QueueOrganisation, Topology, built_in};

/// C>D stays in its chassis, which frees capacity for H>A, if queues let it be used.
pub(super) fn counter_example() -> Result<Check, PcieError> {
    let text = built_in("validation").unwrap_or_default();
    let run = |queues: QueueOrganisation, text: &str| -> Result<Vec<f64>, PcieError> {
        let topology = Topology::from_toml(text, "validation")?;
        let mut sources = Vec::new();
        for (from, to, rate) in [
            ("H", "A", 8.5),
            ("H", "D", 8.5),
            ("B", "D", 7.19),
            ("C", "D", 7.19),
        ] {
            sources.push(Source {
                rate_gib_s: Some(rate),
                ..Source::new(
                    &format!("{from}>{to}"),
                    topology.find(from)?,
                    topology.find(to)?,
                )
            });
        }
        let options = SimulationOptions {
            queues: Some(queues),
            warmup_ns: 50_000,
            ..SimulationOptions::default()
        };
        let mut simulation = Simulation::new(&topology, &[], &sources, &options)?;
        simulation.run_until(550_000)?;
        Ok(simulation
            .sources()
            .iter()
            .map(|source| source.gib_s)
            .collect())
    };
    let free = run(QueueOrganisation::PerOutput, text)?;
    // Buffers of 8 KiB per class.
    let held = run(
        QueueOrganisation::Fifo,
        &text.replace("_data = 1024", "_data = 512"),
    )?;
    let rows = vec![
        CheckRow::new("H>A, a queue per output", "GiB/s", 8.5, free[0], 3.0),
        CheckRow::new(
            "H>A, one FIFO with small buffers",
            "GiB/s",
            2.2,
            held[0],
            3.0,
        ),
    ];
    Ok(Check {
        number: 14,
        title: "capacity freed elsewhere: H>A 8.5, H>D 8.5, B>D 7.19, C>D 7.19".to_owned(),
        source: "section 0.3 of the project's facts: max-min gives 8.50, edge constraints 5.775"
            .to_owned(),
        parameters: format!(
            "{}; packets of 256 B; FIFO: 8 KiB of data credits",
            parameters(&Topology::resolve("validation")?)
        ),
        rows,
    })
}

/// Both ends of a flow of table 2 on the topology `validation`, its standalone rate and its published estimate, GiB/s.
pub type PublishedFlow = (&'static str, &'static str, f64, f64);

/// Table 2 of the paper, b to d.
pub const TABLE_2: [(&str, [PublishedFlow; 5]); 3] = [
    (
        "b",
        [
            ("H", "C", 8.51, 5.78),
            ("H", "A", 7.21, 5.78),
            ("C", "B", 1.76, 1.76),
            ("B", "D", 7.19, 7.19),
            ("A", "H", 2.54, 2.54),
        ],
    ),
    (
        "c",
        [
            ("H", "C", 8.56, 8.37),
            ("H", "A", 0.53, 0.53),
            ("C", "B", 1.76, 1.76),
            ("B", "D", 7.19, 7.19),
            ("A", "H", 2.54, 2.54),
        ],
    ),
    (
        "d",
        [
            ("H", "C", 0.55, 0.55),
            ("H", "D", 8.58, 4.37),
            ("C", "B", 1.76, 1.76),
            ("B", "D", 7.19, 4.37),
            ("A", "H", 2.54, 2.54),
        ],
    ),
];

/// The measured flows of table 2 as paced sources: what the fabric gives each.
pub(super) fn table_2() -> Result<Check, PcieError> {
    let topology = Topology::resolve("validation")?;
    let mut rows = Vec::new();
    for (name, flows) in TABLE_2 {
        let mut sources = Vec::new();
        for (from, to, rate, _) in flows {
            sources.push(Source {
                rate_gib_s: Some(rate),
                ..Source::new(from, topology.find(from)?, topology.find(to)?)
            });
        }
        let options = SimulationOptions {
            warmup_ns: 50_000,
            ..SimulationOptions::default()
        };
        let mut simulation = Simulation::new(&topology, &[], &sources, &options)?;
        simulation.run_until(550_000)?;
        for ((from, to, _, target), result) in flows.into_iter().zip(simulation.sources()) {
            rows.push(CheckRow::new(
                format!("2-{name}, {from}>{to}"),
                "GiB/s",
                target,
                result.gib_s,
                11.32,
            ));
        }
    }
    Ok(Check {
        number: 23,
        title: "the flows of table 2 in the simulator, beside the published estimates, which are themselves up to 11.32% off what was measured".to_owned(),
        source: format!("{PAPER}, table 2"),
        parameters: format!(
            "{}; sources paced at the standalone rates",
            parameters(&topology)
        ),
        rows,
    })
}
