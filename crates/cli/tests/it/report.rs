//! Files that `dray figures` writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{directory, dray, output};

/// Points of every figure that run quickly.
const SMALL: &str = "--set size=256,4k";

/// All files of a directory with their contents.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).expect("the run made it");
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("no other process is here");
        let name = entry.file_name().into_string().expect("names are ASCII");
        (name, fs::read(entry.path()).expect("only files are here"))
    };
    entries.map(read).collect()
}

#[test]
fn every_figure_has_picture_and_data() {
    let dir = directory();
    dray(dir.path(), &format!("figures {SMALL}"))
        .assert()
        .success();
    let files = files(&dir.path().join("dray-report"));
    for figure in ["fig2", "fig3", "fig4", "fig5", "fig6a", "fig6b", "fig7"] {
        for ending in ["svg", "csv", "json"] {
            assert!(
                files.contains_key(&format!("{figure}.{ending}")),
                "{figure}.{ending}"
            );
        }
    }
    for name in [
        "index.html",
        "check.csv",
        "check.json",
        "fig2-async.svg",
        "fig2-crc.svg",
    ] {
        assert!(files.contains_key(name), "{name}");
    }
    assert!(
        !files.contains_key(".partial"),
        "an unfinished run is left behind"
    );
    let page = String::from_utf8(files["index.html"].clone()).unwrap();
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
    for text in [
        "spr-2s",
        "1e1w-d",
        "not available as numbers",
        "guess",
        "Model error",
        "umwait_wake",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    assert!(!page.contains("http-equiv"));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let dir = directory();
    for jobs in ["1", "2"] {
        let run = format!("figures {SMALL} --jobs {jobs} --out {jobs}");
        let mut run = dray(dir.path(), &run);
        run.env("SOURCE_DATE_EPOCH", "0").assert().success();
    }
    let (one, two) = (files(&dir.path().join("1")), files(&dir.path().join("2")));
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        two.keys().collect::<Vec<_>>()
    );
    let page = String::from_utf8(one["index.html"].clone()).unwrap();
    assert!(page.contains("1970-01-01T00:00:00Z") && page.contains("--jobs 1 --out 1"));
    for (name, bytes) in &one {
        // The page names the command that wrote it.
        let bytes = match name.as_str() {
            "index.html" => page
                .replace("--jobs 1 --out 1", "--jobs 2 --out 2")
                .into_bytes(),
            _ => bytes.clone(),
        };
        assert!(bytes == two[name], "{name} differs");
    }
}

#[test]
fn pictures_for_a_paper_come_as_svg_pdf_and_png() {
    let dir = directory();
    let run = |style: &str| {
        let flags = "--only fig6a,fig3 --set size=256,4k --set batch=1,4";
        dray(
            dir.path(),
            &format!("figures {flags} --style {style} --out {style}"),
        )
        .assert()
        .success();
        files(&dir.path().join(style))
    };
    let (page, column, wide) = (run("page"), run("paper"), run("paper-wide"));
    // The latency of figure 6a is a panel of its own on the page, too; no picture comes twice.
    for name in ["fig3", "fig6a", "fig6a-latency"] {
        assert!(!page.contains_key(&format!("{name}.pdf")));
        let svg = |files: &BTreeMap<String, Vec<u8>>| {
            String::from_utf8(files[&format!("{name}.svg")].clone()).unwrap()
        };
        assert!(svg(&page).contains("width=\"860\""), "{name}");
        assert!(svg(&column).contains("width=\"252pt\""), "{name}");
        assert!(svg(&wide).contains("width=\"516pt\""), "{name}");
        for files in [&column, &wide] {
            assert!(files[&format!("{name}.pdf")].starts_with(b"%PDF-"));
            assert!(files[&format!("{name}.png")].starts_with(b"\x89PNG"));
        }
    }
    // One axis a picture.
    assert!(!String::from_utf8_lossy(&column["fig6a.svg"]).contains("Latency"));
}

#[test]
fn move_bytes_does_not_change_the_modelled_time() {
    let dir = directory();
    let run = |flags: &str| {
        output(
            dir.path(),
            &format!("figures --only fig2 {SMALL} --format csv {flags}"),
        )
    };
    assert_eq!(run("--out a"), run("--out b --move-bytes"));
}

#[test]
fn results_are_printed_as_csv_json_and_table() {
    let dir = directory();
    let run = |format: &str| {
        let flags = format!("--only fig3 --set batch=1 --set size=4k --format {format}");
        output(dir.path(), &format!("figures {flags}"))
    };
    let csv = run("csv");
    assert!(
        csv.starts_with("figure,op,mode,batch,size,backend,guesses,throughput_gbps,"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 3);
    let json: serde_json::Value = serde_json::from_str(&run("json")).unwrap();
    assert_eq!(json["figures"][0]["experiment"], "fig3");
    assert_eq!(json["figures"][0]["outcomes"].as_array().unwrap().len(), 2);
    let table = run("table");
    assert!(
        table.contains("throughput_gbps") && table.contains(" 4K "),
        "{table}"
    );
}

#[test]
fn a_measured_series_is_a_series_of_its_own() {
    let dir = directory();
    let flags = "--only fig2 --set op=memmove --set size=4k --measure-cpu --format csv";
    let csv = output(dir.path(), &format!("figures {flags}"));
    assert_eq!(csv.matches(",measured,cpu").count(), 1, "{csv}");
    assert_eq!(csv.matches(",modelled,model-cpu").count(), 1, "{csv}");
    let page = fs::read_to_string(dir.path().join("dray-report/index.html")).unwrap();
    assert!(page.contains("one core</tspan>") || page.contains("measured here"));
    assert!(page.contains("one thread"), "the machine is not described");
}

#[test]
fn the_seeds_protocol_keeps_128_buffers_in_flight() {
    let dir = directory();
    let flags = "--protocol seed --only modes,fig2,fig7 --set size=256,4k --set batch=1,64";
    let csv = output(dir.path(), &format!("figures {flags} --format csv"));
    assert!(csv.contains("buffers"), "{csv}");
    let page = fs::read_to_string(dir.path().join("dray-report/index.html")).unwrap();
    for text in [
        "-n128",
        "-x 0x000100",
        "computed and never used",
        "differ by at most",
        "-c, which",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // The plot of the async improvement shows the sync improvement: so does the script.
    let picture = |name: &str| {
        let text = fs::read_to_string(dir.path().join("dray-report").join(name)).unwrap();
        text.lines().filter(|line| line.contains("<rect")).count()
    };
    assert_eq!(picture("fig2-c.svg"), picture("fig2-d.svg"));
}

#[test]
fn panels_without_points_are_left_out() {
    let dir = directory();
    dray(dir.path(), "figures --only fig2 --set op=crc --set size=4k")
        .assert()
        .success();
    let report = dir.path().join("dray-report");
    assert!(report.join("fig2-crc.svg").exists() && !report.join("fig2-fill.svg").exists());
    let page = fs::read_to_string(report.join("index.html")).unwrap();
    assert!(page.contains("no point left after --set"));
}

#[test]
fn reports_are_made_for_other_platforms_and_profiles() {
    let dir = directory();
    for platform in ["emr-2s", "dsa2-2s"] {
        let flags =
            format!("figures --platform {platform} --config 4e1w-s --only fig3,fig6b {SMALL}");
        dray(dir.path(), &flags).assert().success();
        let page = fs::read_to_string(dir.path().join("dray-report/index.html")).unwrap();
        assert!(page.contains(platform) && page.contains("4e1w-s"));
    }
}
