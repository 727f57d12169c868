//! What every SVG keeps to: it is well-formed, the same every time, and safe to put beside others
//! in one page; and a chart that cannot be drawn is refused by name.

use std::collections::BTreeSet;

use dray_report::{Axis, Chart, ChartSize, Provenance, ReportError, Series, SeriesKind};
use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;

fn chart(series: Vec<Series>) -> Chart {
    Chart {
        id: "fig3".into(),
        title: "Copy throughput".into(),
        x_label: "Transfer size (bytes)".into(),
        y_label: "Throughput (GB/s)".into(),
        categories: ["256", "4K", "1M"].map(str::to_owned).to_vec(),
        series,
        footer: "spr-2s · 1e1w-d · dray 0.1.0".into(),
        ..Chart::default()
    }
}

fn series(provenance: Provenance, kind: SeriesKind) -> Series {
    let values = vec![Some(1.5), Some(20.25), Some(31.4)];
    Series::new("memmove", provenance, kind, values)
}

/// Every element with its attributes; panics when the text is not well-formed.
fn elements(svg: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut reader = Reader::from_str(svg);
    let mut found = Vec::new();
    let mut depth = 0;
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(start) => {
                depth += 1;
                found.push(element(&start));
            }
            Event::Empty(start) => found.push(element(&start)),
            Event::End(_) => depth -= 1,
            Event::Eof => break,
            Event::Text(text) => {
                assert!(!text.contains(&b'&'), "an entity is an event of its own");
            }
            _ => {}
        }
    }
    assert_eq!(depth, 0, "every element is closed");
    found
}

fn element(start: &quick_xml::events::BytesStart<'_>) -> (String, Vec<(String, String)>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let attributes = start
        .attributes()
        .map(|a| a.expect("well-formed"))
        .map(|a| {
            let value = a.unescape_value().expect("well-formed").into_owned();
            (text(a.key.as_ref()), value)
        })
        .collect();
    (text(start.name().as_ref()), attributes)
}

fn count(svg: &str, name: &str) -> usize {
    elements(svg).iter().filter(|(n, _)| n == name).count()
}

#[test]
fn the_same_chart_gives_the_same_bytes() {
    let mut chart = chart(vec![
        series(Provenance::Modelled, SeriesKind::Bars),
        series(Provenance::Measured, SeriesKind::Line),
    ]);
    chart.log_y = true;
    assert_eq!(chart.to_svg().unwrap(), chart.clone().to_svg().unwrap());
}

#[test]
fn modelled_is_solid_and_measured_is_hatched() {
    let solid = chart(vec![series(Provenance::Modelled, SeriesKind::Bars)]);
    let svg = solid.to_svg().unwrap();
    assert!(!svg.contains("<pattern") && !svg.contains("stroke-dasharray"));
    let hatched = chart(vec![series(Provenance::Measured, SeriesKind::Bars)]);
    let svg = hatched.to_svg().unwrap();
    assert!(svg.contains("fill=\"url(#fig3--hatch-0)\""));
    let dashed = chart(vec![series(Provenance::Measured, SeriesKind::Line)]);
    assert!(dashed.to_svg().unwrap().contains("stroke-dasharray"));
}

#[test]
fn published_values_are_always_drawn_as_points() {
    for kind in [SeriesKind::Bars, SeriesKind::Line, SeriesKind::Stacked] {
        let points = chart(vec![series(Provenance::Published, SeriesKind::Points)]);
        let other = chart(vec![series(Provenance::Published, kind)]);
        assert_eq!(
            other.to_svg().unwrap(),
            points.to_svg().unwrap(),
            "{kind:?}"
        );
    }
}

#[test]
fn every_chart_names_its_platform_profile_and_provenance() {
    let mut chart = chart(vec![
        series(Provenance::Modelled, SeriesKind::Bars).guessed(),
        series(Provenance::Published, SeriesKind::Points),
    ]);
    let svg = chart.to_svg().unwrap();
    assert!(svg.contains("spr-2s · 1e1w-d · dray 0.1.0 · data: modelled, published"));
    assert!(svg.contains(">guess</text>") && svg.contains("rests on a guess"));
    assert!(svg.contains("<title id=\"fig3--title\">Copy throughput</title>"));
    assert!(svg.contains("memmove (modelled, guess); memmove (published)."));
    chart.series[0].guess = false;
    assert!(!chart.to_svg().unwrap().contains("guess"));
}

#[test]
fn a_missing_value_is_left_out_and_a_zero_is_not() {
    let whole = chart(vec![series(Provenance::Modelled, SeriesKind::Bars)]);
    let mut missing = whole.clone();
    missing.series[0].values[1] = None;
    let mut zero = whole.clone();
    zero.series[0].values[1] = Some(0.0);
    let rectangles = |chart: &Chart| count(&chart.to_svg().unwrap(), "rect");
    assert_eq!(rectangles(&whole), rectangles(&missing) + 1);
    assert_eq!(rectangles(&whole), rectangles(&zero));
}

#[test]
fn ids_have_the_prefix_of_the_chart_and_references_exist() {
    let chart = chart(vec![
        series(Provenance::Measured, SeriesKind::Bars),
        series(Provenance::Measured, SeriesKind::Line),
    ]);
    let svg = chart.to_svg().unwrap();
    let elements = elements(&svg);
    let attributes = || elements.iter().flat_map(|(_, attributes)| attributes);
    let ids: BTreeSet<&str> = attributes()
        .filter(|(key, _)| key == "id")
        .map(|(_, value)| value.as_str())
        .collect();
    assert!(
        ids.len() >= 4 && ids.iter().all(|id| id.starts_with("fig3--")),
        "{ids:?}"
    );
    for (_, value) in attributes() {
        if let Some(id) = value.strip_prefix("url(#") {
            assert!(ids.contains(id.trim_end_matches(')')), "{value}");
        }
    }
}

#[test]
fn a_chart_without_content_is_refused() {
    let missing = |chart: Chart| match chart.to_svg() {
        Err(ReportError::EmptyChart { missing, .. }) => missing,
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(chart(vec![])), "series");
    let mut none = chart(vec![series(Provenance::Modelled, SeriesKind::Bars)]);
    none.series[0].values = vec![None; 3];
    assert_eq!(missing(none.clone()), "values");
    none.categories.clear();
    assert_eq!(missing(none), "categories");
}

#[test]
fn a_value_that_cannot_be_drawn_is_refused_by_name() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e301] {
        let mut chart = chart(vec![series(Provenance::Modelled, SeriesKind::Bars)]);
        chart.series[0].values[1] = Some(value);
        let error = chart.to_svg().unwrap_err();
        assert!(matches!(error, ReportError::BadValue { .. }));
        let text = error.to_string();
        assert!(
            text.contains("fig3") && text.contains("memmove") && text.contains("4K"),
            "{text}"
        );
    }
    let mut chart = chart(vec![series(Provenance::Modelled, SeriesKind::Bars)]);
    chart.reference_line = Some((f64::NAN, "ceiling".into()));
    let text = chart.to_svg().unwrap_err().to_string();
    assert!(
        text.contains("ceiling") && text.contains("reference line"),
        "{text}"
    );
}

#[test]
fn series_of_another_length_are_refused() {
    let mut short = chart(vec![series(Provenance::Modelled, SeriesKind::Bars)]);
    short.series[0].values.pop();
    assert!(matches!(
        short.to_svg(),
        Err(ReportError::SeriesLength {
            values: 2,
            categories: 3,
            ..
        })
    ));
    let mut groups = chart(vec![series(Provenance::Modelled, SeriesKind::Bars)]);
    groups.group_labels = Some(vec!["one".into()]);
    assert!(matches!(
        groups.to_svg(),
        Err(ReportError::GroupLabels {
            labels: 1,
            categories: 3,
            ..
        })
    ));
}

#[test]
fn a_logarithmic_axis_refuses_zeros_and_stacks() {
    let mut zero = chart(vec![series(Provenance::Modelled, SeriesKind::Bars)]);
    zero.log_y = true;
    assert!(zero.to_svg().is_ok());
    zero.series[0].values[0] = Some(0.0);
    assert!(matches!(
        zero.to_svg(),
        Err(ReportError::NotPositive { .. })
    ));
    let mut stack = chart(vec![series(Provenance::Modelled, SeriesKind::Stacked)]);
    stack.log_y = true;
    assert!(matches!(
        stack.to_svg(),
        Err(ReportError::StackOnLog { .. })
    ));
}

#[test]
fn a_stack_refuses_a_negative_part() {
    let mut chart = chart(vec![series(Provenance::Modelled, SeriesKind::Stacked)]);
    chart.series[0].values[0] = Some(-1.0);
    assert!(matches!(
        chart.to_svg(),
        Err(ReportError::NegativeStack { .. })
    ));
}

#[test]
fn the_right_axis_needs_a_label() {
    let mut chart = chart(vec![series(Provenance::Modelled, SeriesKind::Line).right()]);
    assert!(matches!(
        chart.to_svg(),
        Err(ReportError::NoRightAxis { .. })
    ));
    chart.y2_label = Some("Latency (µs)".into());
    assert!(chart.to_svg().unwrap().contains("Latency (µs)</text>"));
}

#[test]
fn an_id_that_cannot_be_a_file_name_is_refused() {
    for id in ["", "a b", "../x", "-a", "ä", "a\"b", "a/b"] {
        let mut chart = chart(vec![series(Provenance::Modelled, SeriesKind::Bars)]);
        chart.id = id.into();
        assert!(
            matches!(chart.to_svg(), Err(ReportError::BadId { .. })),
            "{id:?}"
        );
    }
}

fn any_series(categories: usize) -> impl Strategy<Value = Series> {
    let value = prop_oneof![
        90 => (0.0..1e6f64).prop_map(Some),
        9 => Just(None),
        1 => any::<f64>().prop_map(Some),
    ];
    (
        "\\PC{0,40}|[<>&\"'\\x00-\\x1f]{0,9}",
        0..3usize,
        0..4usize,
        any::<bool>(),
        any::<bool>(),
        prop::option::of(any::<u8>()),
        prop::collection::vec(value, categories),
    )
        .prop_map(|(name, provenance, kind, guess, right, family, values)| {
            use SeriesKind::{Bars, Line, Points, Stacked};
            Series {
                name,
                provenance: Provenance::ALL[provenance],
                guess,
                kind: [Bars, Line, Points, Stacked][kind],
                axis: if right { Axis::Right } else { Axis::Left },
                spans: values
                    .iter()
                    .map(|v| v.map(|v| (v * 0.5, v * 2.0)))
                    .collect(),
                values,
                family,
                beyond: if right { vec![0] } else { Vec::new() },
            }
        })
}

fn any_chart() -> impl Strategy<Value = Chart> {
    let text = || "\\PC{0,60}|[<>&\"'\\x00-\\x1f]{0,9}";
    (1..14usize)
        .prop_flat_map(move |categories| {
            (
                prop::collection::vec(any_series(categories), 0..12),
                prop::collection::vec(text(), categories),
                prop::option::of(prop::collection::vec("[ab]", categories)),
                (text(), text(), text(), prop::option::weighted(0.9, text())),
                any::<[bool; 2]>(),
                prop::option::of((1e-3..1e3f64, text())),
                prop::collection::vec(text(), 0..3),
                prop::option::of(prop::collection::vec(-1.0..1e6f64, categories)),
            )
        })
        .prop_map(
            |(series, categories, group_labels, labels, flags, line, notes, x_values)| Chart {
                id: "any".into(),
                title: labels.0,
                x_label: labels.1,
                y_label: labels.2.clone(),
                y2_label: labels.3,
                categories,
                x_values,
                group_labels,
                log_y: flags[0],
                reference_line: line,
                series,
                notes,
                footer: labels.2,
                size: if flags[1] {
                    ChartSize::Half
                } else {
                    ChartSize::Full
                },
            },
        )
}

/// The `x` of the markers of the first line, whose paths begin with it.
fn line_of(svg: &str) -> Vec<f64> {
    let path = elements(svg)
        .into_iter()
        .filter(|(name, _)| name == "path")
        .find_map(|(_, attributes)| {
            let is_line = attributes
                .iter()
                .any(|(key, value)| key == "fill" && value == "none");
            let d = attributes.into_iter().find(|(key, _)| key == "d");
            d.filter(|_| is_line).map(|(_, value)| value)
        })
        .expect("a line");
    let places = path.split(['M', 'L']).filter(|place| !place.is_empty());
    places
        .map(|place| place.split(' ').next().expect("x").parse().expect("number"))
        .collect()
}

#[test]
fn numeric_categories_are_drawn_to_scale() {
    let mut line = Series::new(
        "s",
        Provenance::Modelled,
        SeriesKind::Line,
        vec![Some(1.0), Some(2.0), Some(3.0)],
    );
    line.beyond = vec![2];
    let mut chart = Chart {
        id: "scale".into(),
        categories: ["96", "104", "128"].map(str::to_owned).to_vec(),
        series: vec![line],
        ..Chart::default()
    };
    let even = line_of(&chart.to_svg().unwrap());
    assert!(
        (even[1] - even[0] - (even[2] - even[1])).abs() < 0.1,
        "{even:?}"
    );
    chart.x_values = Some(vec![96.0, 104.0, 128.0]);
    let svg = chart.to_svg().unwrap();
    let x = line_of(&svg);
    let ratio = (x[2] - x[1]) / (x[1] - x[0]);
    assert!((ratio - 3.0).abs() < 0.1, "{x:?}");
    assert!(svg.contains("beyond the axis"));
    chart.x_values = Some(vec![96.0, 104.0]);
    assert!(matches!(chart.to_svg(), Err(ReportError::XValues { .. })));
    chart.x_values = Some(vec![96.0, 104.0, f64::NAN]);
    assert!(matches!(chart.to_svg(), Err(ReportError::BadValue { .. })));
}

proptest! {
    #[test]
    fn random_charts_are_refused_or_well_formed_and_finite(chart in any_chart()) {
        if let Ok(svg) = chart.to_svg() {
            for (_, attributes) in elements(&svg) {
                for (key, value) in attributes {
                    prop_assert!(!value.contains("NaN") && !value.contains("inf"), "{key}={value}");
                }
            }
            prop_assert!(!svg.chars().any(|c| c < ' ' && !matches!(c, '\n' | '\t' | '\r')));
        }
    }
}
