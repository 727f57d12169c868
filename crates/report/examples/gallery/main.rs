//! Draws every form of chart that the report knows, with made-up numbers of a likely size.
//!
//! `cargo run -p dray-report --example gallery -- DIR` writes the page and the SVG files to `DIR`.

mod figures;

use std::error::Error;
use std::path::PathBuf;

use figures::{figure_2, figure_3, figure_4, figure_5, figure_6a, figure_7};

use dray_report::{
    Axis, Cell, Chart, Column, Provenance, Report, RowClass, Section, Series, SeriesKind, Table,
};

const SIZES: [(&str, f64); 7] = [
    ("256", 256.0),
    ("1K", 1024.0),
    ("4K", 4096.0),
    ("16K", 16_384.0),
    ("64K", 65_536.0),
    ("256K", 262_144.0),
    ("1M", 1_048_576.0),
];
const FOOTER: &str = "spr-2s · profile 1e1w-d · dray 0.1.0";

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "gallery".into()));
    std::fs::create_dir_all(&dir)?;
    let report = report();
    for chart in report.sections.iter().flat_map(|s| &s.charts) {
        std::fs::write(dir.join(format!("{}.svg", chart.id)), chart.to_svg()?)?;
    }
    std::fs::write(dir.join("index.html"), report.to_html()?)?;
    println!("{}", dir.join("index.html").display());
    Ok(())
}

fn report() -> Report {
    Report {
        title: "What this data mover does".into(),
        subtitle: "Every figure of the published DSA characterisation, on a modelled device".into(),
        facts: [
            ("Platform", "spr-2s: two sockets, four DSA 1.0 devices each (platforms/spr-2s.toml)"),
            ("Profile", "1e1w-d: one engine, one dedicated work queue of 128 entries"),
            ("Protocol", "sync: one operation outstanding; async: the queue kept full"),
            ("Program", "dray 0.1.0"),
            ("Date", "2026-11-21"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        summary: vec![
            "A gallery with made-up numbers: it shows how each form of chart looks, nothing else.".into(),
            "One engine reaches 31.4 GB/s from 4 KiB when its queue is kept full, and from 256 KiB with one operation outstanding.".into(),
        ],
        sections: vec![figure_2(), figure_3(), figure_4(), figure_5(), figure_6a(), figure_7(), curves(), accuracy()],
        footer: "Written by dray 0.1.0.".into(),
        alone: false,
    }
}

fn base(id: &str, title: &str) -> Chart {
    Chart {
        id: id.into(),
        title: title.into(),
        x_label: "Transfer size (bytes)".into(),
        y_label: "Throughput (GB/s)".into(),
        categories: SIZES.map(|(name, _)| name.to_owned()).to_vec(),
        footer: FOOTER.into(),
        ..Chart::default()
    }
}

/// Throughput in GB/s of copies that take `fixed` ns each, up to a ceiling.
fn throughput(fixed: f64, ceiling: f64) -> Vec<Option<f64>> {
    SIZES
        .iter()
        .map(|(_, bytes)| Some(bytes / (fixed + bytes / ceiling)))
        .collect()
}

fn bars(name: &str, values: Vec<Option<f64>>) -> Series {
    Series::new(name, Provenance::Modelled, SeriesKind::Bars, values)
}

fn ratio(of: &[Option<f64>], over: &[Option<f64>]) -> Vec<Option<f64>> {
    of.iter()
        .zip(over)
        .map(|(a, b)| Some((*a)? / (*b)?))
        .collect()
}

fn curves() -> Section {
    let sizes: Vec<f64> = (0..15).map(|i| 64.0 * f64::from(1 << i)).collect();
    let mut chart = base("latency", "Synchronous latency by operation");
    chart.y_label = "Latency (µs)".into();
    chart.log_y = true;
    chart.categories = sizes
        .iter()
        .map(|s| {
            if *s < 1024.0 {
                format!("{s}")
            } else if *s < 1_048_576.0 {
                format!("{}K", s / 1024.0)
            } else {
                "1M".into()
            }
        })
        .collect();
    for (name, fixed, rate) in [
        ("memmove", 0.62, 31_400.0),
        ("compare", 0.6, 15_870.0),
        ("fill", 0.5, 31_900.0),
    ] {
        let values: Vec<Option<f64>> = sizes.iter().map(|s| Some(fixed + s / rate)).collect();
        let points = values
            .iter()
            .enumerate()
            .map(|(i, v)| v.map(|v| v * if i % 2 == 0 { 1.04 } else { 0.97 }))
            .collect();
        chart.series.push(Series::new(
            name,
            Provenance::Modelled,
            SeriesKind::Line,
            values,
        ));
        chart.series.push(Series::new(
            name,
            Provenance::Published,
            SeriesKind::Points,
            points,
        ));
    }
    let mut measured: Vec<Option<f64>> = sizes.iter().map(|s| Some(0.02 + s / 9_000.0)).collect();
    measured[6] = None;
    chart.series.push(Series::new(
        "software copy",
        Provenance::Measured,
        SeriesKind::Line,
        measured,
    ));
    chart.notes = vec!["Published: LightDSA artifact logs, one operation outstanding. The missing measurement at 4K was interrupted.".into()];

    let mut long = base(
        "names",
        "Labels that are long, <escaped> & turned where they do not fit their slots",
    );
    long.x_label = "Client".into();
    long.categories = [
        "vhost-user back end, packed ring",
        "page migration",
        "kernel crypto & compression",
        "a<b>c&d",
        "SPDK accel framework",
        "DPDK dmadev test application",
        "page zeroing",
        "live migration of virtual machines",
        "network receive copy",
        "storage checksums",
        "garbage collector",
        "message passing",
    ]
    .map(str::to_owned)
    .to_vec();
    long.series = vec![bars(
        "offloaded",
        (0..12)
            .map(|i| Some(12_000.0 + 3_100.0 * f64::from(i)))
            .collect(),
    )];
    long.y_label = "Operations (thousands per second)".into();
    long.series.push(
        Series::new(
            "a rather long name of a series that has to be broken into lines",
            Provenance::Modelled,
            SeriesKind::Line,
            (0..12).map(|i| Some(-0.4 + 0.1 * f64::from(i))).collect(),
        )
        .right()
        .guessed(),
    );
    long.series[1].axis = Axis::Right;
    long.y2_label = Some("Change (share)".into());
    Section {
        id: "curves".into(),
        title: "Curves, and long labels".into(),
        charts: vec![chart, long],
        ..Section::default()
    }
}

fn sizes_table() -> Table {
    let mut columns = vec![Column::text("Series"), Column::text("Data")];
    columns.extend(SIZES.map(|(name, _)| Column::number(name, "GB/s")));
    let mut table = Table::new("The numbers of the figure", columns);
    for (name, fixed) in [("sync, batch 1", 620.0), ("async, batch 1", 75.0)] {
        let mut cells = vec![Cell::text(name), Cell::text("modelled")];
        cells.extend(
            throughput(fixed, 31.4)
                .into_iter()
                .map(|v| v.map_or(Cell::Empty, |v| Cell::number(v, 2))),
        );
        table.push(cells, None);
    }
    table
}

fn accuracy() -> Section {
    let mut table = Table::new(
        "Model against published tables",
        vec![
            Column::text("Table"),
            Column::text("Source"),
            Column::number("Points", ""),
            Column::number("Median error", "%"),
            Column::number("Worst error", "%"),
            Column::number("Target", "%"),
            Column::number("Left out", "%"),
        ],
    );
    for index in 0..60u32 {
        let worst = 2.0 + f64::from(index * 7 % 23);
        let class = match worst {
            w if w < 10.0 => RowClass::Good,
            w if w < 15.0 => RowClass::Warn,
            _ => RowClass::Bad,
        };
        table.push(
            vec![
                Cell::text(format!("sync-latency-{index}")),
                Cell::text("LightDSA, EuroSys'26 artifact, run logs"),
                Cell::number(15.0, 0),
                Cell::number(worst / 2.7, 1),
                Cell::number(worst, 1),
                Cell::number(10.0, 0),
                if index % 3 == 0 {
                    Cell::Empty
                } else {
                    Cell::number(worst * 1.3, 1)
                },
            ],
            Some(class),
        );
    }
    table.notes = vec!["✓ within the target, ! up to half above it, ✗ beyond.".into()];
    Section {
        id: "accuracy".into(),
        title: "Model error".into(),
        intro: vec!["Every published table that the model was compared with.".into()],
        tables: vec![table],
        ..Section::default()
    }
}
