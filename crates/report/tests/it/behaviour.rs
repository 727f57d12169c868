//! The page in a browser: a search finds, a series disappears, a value is read; at three widths, light and dark.

use std::path::Path;
use std::process::Command;

use dray_report::{Chart, ChartSize, Provenance, Report, Section, Series, SeriesKind};

/// What a reader does, as a script behind the page's own; its answers become the text of the element `answers`.
const READER: &str = include_str!("reader.js");

fn report() -> String {
    let chart = |id: &str, size| Chart {
        id: id.into(),
        title: "Copies".into(),
        x_label: "Size (bytes)".into(),
        y_label: "Throughput (GB/s)".into(),
        categories: ["1K, hot", "4K: cold"].map(str::to_owned).to_vec(),
        series: vec![
            Series::new(
                "copy, \"one\"",
                Provenance::Modelled,
                SeriesKind::Bars,
                vec![Some(1.5), Some(28.39)],
            ),
            Series::new(
                "fill",
                Provenance::Modelled,
                SeriesKind::Line,
                vec![Some(2.5), Some(3.25)],
            )
            .guessed(),
        ],
        size,
        ..Chart::default()
    };
    let section = |id: &str, title: &str, size| Section {
        id: id.into(),
        title: title.into(),
        charts: vec![chart(&format!("{id}-chart"), size)],
        ..Section::default()
    };
    let report = Report {
        title: "Report".into(),
        sections: vec![
            section("a", "First", ChartSize::Full),
            section("b", "Second", ChartSize::Half),
        ],
        ..Report::default()
    };
    report.to_html().expect("a report")
}

/// What the reader found in a window.
fn read(page: &Path, width: u32, dark: bool) -> serde_json::Value {
    let home = tempfile::tempdir().expect("a directory");
    let scheme = u32::from(!dark);
    // A window has a least width: an inner frame has none.
    let frame = page.with_file_name(format!("frame-{width}-{dark}.html"));
    let outer = format!(
        "<iframe id=f src=index.html style='width:{width}px;height:800px;border:0'></iframe>
        <script>setTimeout(() => document.body.append(f.contentDocument.getElementById('answers')), 4500)</script>"
    );
    std::fs::write(&frame, outer).expect("a page");
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", home.path().display()))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg("--window-size=1600,900")
        .arg(format!("file://{}", frame.display()))
        .output()
        .expect("chromium runs");
    let dom = String::from_utf8(output.stdout).expect("text");
    let (_, rest) = dom.split_once("<pre id=\"answers\">").unwrap_or_else(|| {
        panic!("{dom}\n{}", String::from_utf8_lossy(&output.stderr));
    });
    let (json, _) = rest.split_once("</pre>").expect("its end");
    let json = json
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&json).expect("answers")
}

#[test]
fn a_reader_finds_reads_hides_and_saves_at_three_widths_light_and_dark() {
    if dray_skip::lacks(&["chromium"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let page = dir.path().join("index.html");
    let html = report().replace("</body>", &format!("<script>{READER}</script></body>"));
    std::fs::write(&page, html).expect("a page");
    for (width, dark) in [(390, false), (390, true), (900, true), (1400, false)] {
        let answers = read(&page, width, dark);
        let is = |key: &str, expected: serde_json::Value| {
            assert_eq!(answers[key], expected, "{key} at {width}, dark: {dark}");
        };
        is("failed", serde_json::json!([]));
        is("width", width.into());
        is("search", serde_json::json!(["b"]));
        is("found", "1 of 2".into());
        is("all", serde_json::json!(["a", "b"]));
        is("folded", 2.into());
        is("unfolded", true.into());
        is("values", "4K: cold copy, \"one\" 28.39 fill 3.250".into());
        is("before", true.into());
        is("after", false.into());
        is("others", "4K: cold fill 3.250".into());
        is("left", "1K, hot".into());
        is("hidden", true.into());
        is("saved", serde_json::json!(["a-chart.csv"]));
        is("csv", "\"\",\"copy, \"\"one\"\"\",\"fill\"\n\"1K, hot\",1.500,2.500\n\"4K: cold\",28.39,3.250\n".into());
        is("overflow", 0.into());
        is("side", (width >= 1240).into());
        let paper = if dark {
            "rgb(22, 22, 22)"
        } else {
            "rgb(255, 255, 255)"
        };
        is("paper", paper.into());
        let number = |key: &str| answers[key].as_f64().expect("a number");
        assert!(
            number("smallest") >= 9.95,
            "{} px at {width}",
            answers["smallest"]
        );
        assert!(
            number("large") > 0.8 * f64::from(width),
            "{}",
            answers["large"]
        );
    }
}
