//! What the page keeps to: it stands alone, escapes what it is given, and links its data.

use dray_report::{
    Cell, Chart, ChartSize, Column, Provenance, Report, ReportError, RowClass, Section, Series,
    SeriesKind, Table,
};

fn chart(id: &str) -> Chart {
    Chart {
        id: id.into(),
        title: "Title".into(),
        x_label: "Size (bytes)".into(),
        y_label: "Throughput (GB/s)".into(),
        categories: vec!["4K".into()],
        series: Provenance::ALL
            .into_iter()
            .map(|p| Series::new("memmove", p, SeriesKind::Bars, vec![Some(28.3)]))
            .collect(),
        ..Chart::default()
    }
}

fn section(id: &str, charts: Vec<Chart>) -> Section {
    Section {
        id: id.into(),
        title: format!("Section {id}"),
        charts,
        ..Section::default()
    }
}

fn report(sections: Vec<Section>) -> Report {
    Report {
        title: "Report".into(),
        facts: vec![("Platform".into(), "spr-2s".into())],
        summary: vec!["It works.".into()],
        sections,
        ..Report::default()
    }
}

#[test]
fn the_page_refers_to_no_outside_file() {
    let mut half = chart("fig3-b");
    half.size = ChartSize::Half;
    let html = report(vec![section("fig3", vec![chart("fig3"), half])])
        .to_html()
        .unwrap();
    let html = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for outside in [
        "http://", "https://", "src=", "<link", "@import", "url(http",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"));
}

#[test]
fn sections_are_listed_and_link_their_files() {
    let mut guessed = section("fig6b", vec![]);
    guessed.guess = Some("the link".into());
    let html = report(vec![section("fig3", vec![chart("fig3")]), guessed])
        .to_html()
        .unwrap();
    for link in ["#fig3", "#fig6b", "fig3.svg", "fig3.csv", "fig3.json"] {
        assert!(html.contains(&format!("<a href=\"{link}\">")), "{link}");
    }
    let mut alone = report(vec![section("fig3", vec![chart("fig3")])]);
    alone.alone = true;
    let links = alone.to_html().unwrap();
    assert!(!links.contains("fig3.svg") && !links.contains("fig3.csv"));
    assert!(html.contains("<details class=\"part\" id=\"fig3\" open>"));
    assert!(
        !html.contains("fig6b.csv"),
        "a section without charts has no data files"
    );
    assert!(html.contains("<span class=\"tag\">guess</span> the link"));
}

#[test]
fn all_kinds_of_data_are_explained() {
    let explained =
        |html: &str, kind: Provenance| html.contains(&format!("<b>{}</b>", kind.label()));
    let html = report(vec![section("a", vec![chart("fig3")])])
        .to_html()
        .unwrap();
    for kind in Provenance::ALL {
        assert!(explained(&html, kind), "{kind:?}");
    }
    // Counts of a guest only where there are some.
    let html = report(vec![]).to_html().unwrap();
    for kind in Provenance::ALL {
        assert_eq!(
            explained(&html, kind),
            kind != Provenance::Counted,
            "{kind:?}"
        );
    }
}

#[test]
fn text_is_escaped_everywhere() {
    let evil = "<script>alert(1)</script>&";
    let mut chart = chart("fig3");
    chart.title = evil.into();
    chart.series[0].name = evil.into();
    chart.categories[0] = evil.into();
    chart.notes.push(evil.into());
    let mut table = Table::new(evil, vec![Column::text(evil), Column::number("n", evil)]);
    table.push(
        vec![Cell::text(evil), Cell::number(1.0, 2)],
        Some(RowClass::Bad),
    );
    table.notes.push(evil.into());
    let mut section = section("fig3", vec![chart]);
    section.title = evil.into();
    section.intro.push(evil.into());
    section.notes.push(evil.into());
    section.guess = Some(evil.into());
    section.guesses.push(evil.into());
    section.tables.push(table);
    let mut report = report(vec![section]);
    report.title = evil.into();
    report.subtitle = evil.into();
    report.facts.push((evil.into(), evil.into()));
    report.summary.push(evil.into());
    report.footer = evil.into();
    let html = report.to_html().unwrap();
    // The page's own script, and no other.
    assert_eq!(html.matches("<script").count(), 1);
    assert_eq!(html.matches("</script").count(), 1);
    assert!(html.matches("&lt;script&gt;").count() >= 20);
}

#[test]
fn tables_align_numbers_and_mark_rows() {
    let mut table = Table::new(
        "Errors",
        vec![Column::text("Table"), Column::number("Worst", "%")],
    );
    table.push(
        vec![Cell::text("a"), Cell::number(12_345.678, 1)],
        Some(RowClass::Good),
    );
    table.push(vec![Cell::text("b"), Cell::Empty], None);
    let mut part = section("accuracy", vec![]);
    part.tables.push(table);
    let html = report(vec![part]).to_html().unwrap();
    assert!(html.contains("<td class=\"n\">12,345.7</td>"));
    assert!(html.contains("<td class=\"n\">–</td>"));
    assert!(html.contains("<span class=\"unit\">%</span>"));
    assert!(
        html.contains("<tr class=\"good\"><td class=\"mark\"><span title=\"good\">✓</span></td>")
    );
}

#[test]
fn tables_with_bad_rows_cells_or_classes_are_refused() {
    let with = |table: Table| {
        let mut part = section("t", vec![]);
        part.tables.push(table);
        report(vec![part]).to_html().unwrap_err()
    };
    let columns = || vec![Column::text("a"), Column::number("b", "")];
    let mut short = Table::new("T", columns());
    short.push(vec![Cell::text("x")], None);
    assert!(matches!(
        with(short),
        ReportError::RowLength {
            row: 1,
            cells: 1,
            columns: 2,
            ..
        }
    ));
    let mut infinite = Table::new("T", columns());
    infinite.push(vec![Cell::text("x"), Cell::number(f64::NAN, 1)], None);
    let error = with(infinite);
    assert!(matches!(error, ReportError::BadCell { .. }));
    assert!(error.to_string().contains("\"b\""), "{error}");
    let mut classes = Table::new("T", columns());
    classes.rows.push(vec![Cell::Empty, Cell::Empty]);
    classes.row_classes = vec![None, None];
    assert!(matches!(with(classes), ReportError::RowClasses { .. }));
}

#[test]
fn duplicate_ids_are_refused() {
    let twice = report(vec![section("a", vec![]), section("a", vec![])]);
    assert!(matches!(
        twice.to_html(),
        Err(ReportError::DuplicateId {
            what: "sections",
            ..
        })
    ));
    let twice = report(vec![
        section("a", vec![chart("x")]),
        section("b", vec![chart("x")]),
    ]);
    assert!(matches!(
        twice.to_html(),
        Err(ReportError::DuplicateId { what: "charts", .. })
    ));
    let bad = report(vec![section("a b", vec![])]);
    assert!(matches!(bad.to_html(), Err(ReportError::BadId { .. })));
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let report = report(vec![section("fig3", vec![chart("fig3")])]);
    assert_eq!(report.to_html().unwrap(), report.clone().to_html().unwrap());
}
