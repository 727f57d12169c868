//! Charts in the form of the paper's figures.

use dray_report::{ChartSize, Provenance, Section, Series, SeriesKind};

use super::{SIZES, bars, base, ratio, sizes_table, throughput};

pub(super) fn figure_2() -> Section {
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

pub(super) fn figure_3() -> Section {
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

pub(super) fn figure_4() -> Section {
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

pub(super) fn figure_5() -> Section {
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

pub(super) fn figure_6a() -> Section {
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

pub(super) fn figure_7() -> Section {
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
