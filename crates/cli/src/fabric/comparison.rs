//! The report's part on estimators and schedulers.

use dray_experiment::csv_table;
use dray_fabric::{Des, latency, network, route};
use dray_flow::{Ecr, Estimator, Flow, Flows, Ingress, MaxMin};
use dray_pcie::bench::ReportPart;
use dray_pcie::sim::SimulationOptions;
use dray_pcie::{QueueOrganisation, Topology};
use dray_report::{Cell, Chart, ChartSize, Column, Provenance, Section, Series, SeriesKind, Table};
use serde_json::json;

use crate::print;

use super::{collective, compare_estimators, schedule};

/// Random instances for each arbiter and queue organisation: the report is to be ready in seconds.
const INSTANCES: usize = 30;
/// Bytes that each GPU holds in the patterns.
const PATTERN_BYTES: u64 = 2 << 20;
/// Flows for which edge constraints relaxing is a third too low: ends and standalone bandwidth, GiB/s. The first
/// shares the host adapter with the second, which the third and fourth hold up at D.
pub(super) const EXAMPLE: [(&str, &str, f64); 4] = [
    ("host", "A", 8.5),
    ("host", "D", 8.5),
    ("B", "D", 7.19),
    ("C", "D", 7.19),
];

/// Names of the sections.
pub(super) const NAMES: [&str; 2] = ["estimators", "schedulers"];

/// The section of a name, with the files beside the page.
pub(super) fn part(name: &str, seed: u64) -> anyhow::Result<ReportPart> {
    if name == NAMES[0] {
        estimators(seed)
    } else {
        schedulers()
    }
}

fn estimators(seed: u64) -> anyhow::Result<ReportPart> {
    let topology = Topology::resolve("validation")?;
    let network = network(&topology)?;
    let mut flows = Flows::new(&network);
    for (from, to, demand) in EXAMPLE {
        let path = route(&topology, &network, from, to)?;
        flows.push(&Flow {
            outstanding_bytes: 16384.0,
            latency: latency(&topology, &path),
            ..Flow::new(path, demand)
        })?;
    }
    let des = |queues| {
        let options = SimulationOptions {
            queues: Some(queues),
            ..SimulationOptions::default()
        };
        Des::new(&topology, options, 200_000)
    };
    let (per_output, fifo) = (
        des(QueueOrganisation::PerOutput),
        des(QueueOrganisation::Fifo),
    );
    let list: [(&str, &dyn Estimator); 5] = [
        ("ecr", &Ecr),
        ("maxmin", &MaxMin),
        ("ingress", &Ingress),
        ("simulator, a queue per output", &per_output),
        ("simulator, one FIFO", &fifo),
    ];
    let names = EXAMPLE.map(|(from, to, _)| format!("{from} to {to}"));
    let mut chart = Chart {
        id: "estimators-example".into(),
        title: "Where edge constraints relaxing leaves bandwidth: host to A could have 8.5".into(),
        x_label: "flow".into(),
        y_label: "bandwidth (GiB/s)".into(),
        categories: names.to_vec(),
        notes: vec![
            "Each flow alone reaches 8.5, 8.5, 7.19 and 7.19 GiB/s. At D three flows meet, so that host to D has little; what it leaves \
             at the host adapter goes to host to A, but not in the one pass of ecr."
                .into(),
        ],
        footer: format!("topology {}", topology.name),
        size: ChartSize::Full,
        ..Chart::default()
    };
    let mut columns = vec![Column::text("estimator")];
    columns.extend(names.iter().map(|name| Column::number(name, "GiB/s")));
    let mut table = Table::new("The same as numbers", columns);
    let mut cells_of_rates = Vec::new();
    let mut rows = Vec::new();
    for (family, (name, estimator)) in list.into_iter().enumerate() {
        let estimate = estimator.estimate(&flows)?;
        let rates = estimate.rates();
        let values = rates.iter().copied().map(Some).collect();
        chart.series.push(
            Series::new(name, Provenance::Modelled, SeriesKind::Bars, values).family(family as u8),
        );
        let mut cells = vec![Cell::text(name)];
        cells.extend(rates.iter().map(|rate| Cell::number(*rate, 3)));
        table.push(cells, None);
        for (flow, rate) in names.iter().zip(rates) {
            cells_of_rates.push(vec![name.to_owned(), flow.clone(), rate.to_string()]);
        }
        rows.push(json!({ "estimator": name, "gib_s": rates }));
    }
    let section = Section {
        id: "estimators".into(),
        title: "Estimators beside the simulator".into(),
        intro: vec![
            "Four estimators say what each flow gets when all run: ecr (edge constraints relaxing, the algorithm of the paper), \
             maxmin (exact), ingress (max-min between the ingresses of each port, by outstanding bytes inside one), and the simulator \
             itself. `dray fabric predict` prints them for flows of your own."
                .into(),
        ],
        charts: vec![chart],
        tables: vec![
            table,
            compare_estimators::report_table(INSTANCES, seed)?,
        ],
        ..Section::default()
    };
    let document = json!({ "topology": topology.name, "flows": names, "rows": rows });
    let files = vec![
        (
            "estimators.csv".into(),
            csv_table(&["estimator", "flow", "gib_s"], cells_of_rates),
        ),
        ("estimators.json".into(), print::document(&document)?),
    ];
    Ok(ReportPart { section, files })
}

fn schedulers() -> anyhow::Result<ReportPart> {
    let topology = Topology::resolve("gpu8")?;
    let network = network(&topology)?;
    let jobs = collective::staggered(&topology, &network, PATTERN_BYTES, 2.0)?;
    let title = format!(
        "{} jobs: an all-to-all of 8 GPUs, 256 KiB each, one every 2 µs",
        jobs.len()
    );
    let section = Section {
        id: "schedulers".into(),
        title: "Schedulers, and patterns of machine learning".into(),
        intro: vec![
            "A scheduler decides online which job starts when and at which pace. start-all starts every job as it arrives; first-come keeps \
             the order, one job at a time on each edge; guided asks the estimator what a job would get and promises it when it ends. \
             `dray fabric schedule` and `dray fabric collective` do this for jobs and fabrics of your own."
                .into(),
        ],
        tables: vec![
            schedule::report_table(&topology, &network, &jobs, &title)?,
            collective::report_table(&topology, &network, PATTERN_BYTES)?,
        ],
        ..Section::default()
    };
    Ok(ReportPart {
        section,
        files: Vec::new(),
    })
}
