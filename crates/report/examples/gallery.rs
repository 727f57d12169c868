//! Draws every form of chart that the report knows, with made-up numbers of a likely size.
//!
//! `cargo run -p dray-report --example gallery -- DIR` writes the page and the SVG files to `DIR`.

use std::error::Error;
use std::path::PathBuf;

use dray_report::{
    Axis, Cell, Chart, ChartSize, Column, Provenance, Report, RowClass, Section, Series,
    SeriesKind, Table,
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

fn figure_2() -> Section {
    let operations = [
        ("memmove", "Memory copy", 31.4, 11.0),
        ("fill", "Memory fill", 31.9, 18.0),
        ("compare", "Compare", 15.9, 14.0),
        ("compval", "Compare with pattern", 31.7, 20.0),
        ("dualcast", "Dualcast", 21.0, 7.0),
        ("crc", "CRC", 31.0, 6.5),
        ("copy-crc", "Copy with CRC", 30.8, 4.2),
        ("delta", "Create delta record", 15.2, 5.1),
        ("flush", "Cache flush", 28.0, 12.0),
    ];
    let charts = operations
        .into_iter()
        .map(|(id, title, ceiling, software)| {
            let software = throughput(14.0, software);
            let mut chart = base(&format!("fig2-{id}"), title);
            chart.size = ChartSize::Half;
            chart.y_label = "Improvement over software".into();
            chart.log_y = true;
            chart.reference_line = Some((1.0, "1: as fast as one core".into()));
            chart.series = vec![
                bars("sync", ratio(&throughput(620.0, ceiling), &software)).family(0),
                bars("async", ratio(&throughput(60.0, ceiling), &software)).family(1),
            ];
            if id == "memmove" {
                let mut measured = ratio(&throughput(14.0, 9.0), &software);
                measured[6] = None;
                chart.series.push(Series::new(
                    "software",
                    Provenance::Measured,
                    SeriesKind::Bars,
                    measured,
                ));
            }
            if id == "flush" {
                chart.series = chart.series.into_iter().map(Series::guessed).collect();
            }
            chart
        })
        .collect();
    Section {
        id: "fig2".into(),
        title: "Figure 2: each operation against its software counterpart".into(),
        intro: vec!["Throughput of the device divided by the throughput of one core that does the same with the software of its libraries. Above the line the device is faster.".into()],
        charts,
        guess: Some("the rate of a cache flush: no source gives it.".into()),
        ..Section::default()
    }
}

fn figure_3() -> Section {
    let mut chart = base("fig3", "Copy throughput by transfer size and batch size");
    for (mode, family, fixed) in [("sync", 0, 600.0), ("async", 1, 75.0)] {
        for batch in [1.0, 4.0, 16.0, 64.0] {
            let values = throughput(fixed / f64::from(batch as u8).max(1.0) + 30.0, 31.4);
            chart
                .series
                .push(bars(&format!("{mode}, batch {batch}"), values).family(family));
        }
    }
    let published = vec![None, None, Some(4.4), None, None, None, Some(30.1)];
    chart.series.push(Series::new(
        "sync, batch 1",
        Provenance::Published,
        SeriesKind::Points,
        published,
    ));
    let published = vec![None, None, Some(28.3), None, None, None, Some(31.4)];
    chart.series.push(Series::new(
        "async, batch 1",
        Provenance::Published,
        SeriesKind::Points,
        published,
    ));
    let mut measured = base(
        "fig3-cpu",
        "The same with a software copy measured on this machine",
    );
    measured.series = chart.series[..2].to_vec();
    measured
        .series
        .push(bars("one core", throughput(14.0, 11.0)));
    measured.series.push(Series::new(
        "one core",
        Provenance::Measured,
        SeriesKind::Bars,
        throughput(25.0, 8.0),
    ));
    measured.notes = vec!["The core that was measured is not the core that is modelled; compare modelled bars with modelled bars.".into()];
    Section {
        id: "fig3".into(),
        title: "Figure 3: batches".into(),
        intro: vec!["Sync means one operation, or one batch, outstanding; async means the queue kept full. Markers stand over the bar that they belong to.".into()],
        charts: vec![chart, measured],
        tables: vec![sizes_table()],
        notes: vec!["The plotted values of the paper are not available as numbers; the markers are the nearest published table.".into()],
        ..Section::default()
    }
}

fn figure_4() -> Section {
    let mut chart = base("fig4", "Asynchronous copy throughput by work queue size");
    for size in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0f64] {
        let values = throughput(640.0 / size + 45.0, 31.4);
        chart
            .series
            .push(bars(&format!("{size} entries"), values).family(2));
    }
    Section {
        id: "fig4".into(),
        title: "Figure 4: work queue size".into(),
        charts: vec![chart],
        ..Section::default()
    }
}

fn figure_5() -> Section {
    let mut chart = base("fig5", "Where the time of one offload goes");
    chart.y_label = "Time (µs)".into();
    chart.x_label = "Transfer size (bytes), mode".into();
    let mut categories = Vec::new();
    let mut groups = Vec::new();
    for (size, _) in &SIZES[..5] {
        for mode in ["sync", "async"] {
            categories.push(mode.to_owned());
            groups.push((*size).to_owned());
        }
    }
    chart.categories = categories;
    chart.group_labels = Some(groups);
    let row = |f: fn(usize) -> f64| (0..10).map(|i| Some(f(i))).collect();
    for (name, values) in [
        ("prepare", row(|_| 0.06)),
        ("submit", row(|i| if i % 2 == 0 { 0.055 } else { 0.11 })),
        (
            "wait",
            row(|i| {
                if i % 2 == 0 {
                    0.55 + 0.05 * (i * i) as f64 / 2.0
                } else {
                    0.12 + 0.04 * (i * i) as f64 / 2.0
                }
            }),
        ),
    ] {
        chart.series.push(Series::new(
            name,
            Provenance::Modelled,
            SeriesKind::Stacked,
            values,
        ));
    }
    let mut half = base("fig5-measured", "The same for software, measured here");
    half.size = ChartSize::Half;
    half.y_label = "Time (µs)".into();
    half.categories.truncate(4);
    for (name, values) in [
        ("allocate", [0.1, 0.1, 0.2, 0.3]),
        ("copy", [0.02, 0.08, 0.31, 1.2]),
    ] {
        half.series.push(Series::new(
            name,
            Provenance::Measured,
            SeriesKind::Stacked,
            values.map(Some).to_vec(),
        ));
    }
    let mut other = base(
        "fig5-guess",
        "CXL: the same with every parameter of the link guessed from its successor",
    );
    other.size = ChartSize::Half;
    other.series = vec![
        bars("DRAM to CXL", throughput(900.0, 20.0)).guessed(),
        bars("DRAM to DRAM", throughput(600.0, 31.4)),
    ];
    Section {
        id: "fig5".into(),
        title: "Figure 5: where the time goes".into(),
        charts: vec![chart, half, other],
        ..Section::default()
    }
}

fn figure_6a() -> Section {
    let mut chart = base(
        "fig6a",
        "Copies between sockets: throughput, and latency of one copy",
    );
    chart.y2_label = Some("Latency (µs)".into());
    for (family, mode, fixed) in [(0, "sync", 600.0), (1, "async", 70.0)] {
        for (index, places) in [
            "local to local",
            "local to remote",
            "remote to local",
            "remote to remote",
        ]
        .iter()
        .enumerate()
        {
            let values = throughput(fixed + 45.0 * index as f64, 31.4 - 0.6 * index as f64);
            chart
                .series
                .push(bars(&format!("{mode}, {places}"), values).family(family));
        }
    }
    for (name, fixed) in [
        ("latency, local to local", 0.6),
        ("latency, remote to remote", 0.79),
    ] {
        let values = SIZES
            .iter()
            .map(|(_, bytes)| Some(fixed + bytes / 31_400.0))
            .collect();
        chart
            .series
            .push(Series::new(name, Provenance::Modelled, SeriesKind::Line, values).right());
    }
    Section {
        id: "fig6a".into(),
        title: "Figure 6a: memory on both sockets".into(),
        charts: vec![chart],
        ..Section::default()
    }
}

fn figure_7() -> Section {
    let mut chart = base("fig7", "Copy throughput by number of engines");
    chart.x_label = "Engines".into();
    chart.categories = ["1", "2", "3", "4"].map(str::to_owned).to_vec();
    for (family, size, bytes) in [(0, "256 B", 256.0), (3, "1 KiB", 1024.0)] {
        for batch in [1.0, 4.0, 16.0, 64.0f64] {
            let values = [1.0, 2.0, 3.0, 4.0f64]
                .iter()
                .map(|engines| Some((bytes / (38.0 + 60.0 / batch) * engines).min(31.4)))
                .collect();
            chart
                .series
                .push(bars(&format!("{size}, batch {batch}"), values).family(family));
        }
    }
    chart.reference_line = Some((31.4, "31.4 GB/s: ceiling of one device".into()));
    let mut small = chart.clone();
    small.id = "fig7-small".into();
    small.size = ChartSize::Half;
    let mut many = base("fig7-many", "More series than fit beside the plot");
    for index in 0..26u8 {
        let values = throughput(600.0 / f64::from(index + 1), 31.4);
        many.series.push(
            Series::new(
                format!("queue {index}"),
                Provenance::Modelled,
                SeriesKind::Line,
                values,
            )
            .family(index / 9),
        );
    }
    let mut one = base("fig7-one", "One bar for each size");
    one.size = ChartSize::Half;
    one.series = vec![bars("memmove", throughput(100.0, 31.4))];
    Section {
        id: "fig7".into(),
        title: "Figure 7: engines".into(),
        charts: vec![chart, small, one, many],
        notes: vec!["That more engines lowered the throughput in one publication is not explained by the model.".into()],
        ..Section::default()
    }
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
