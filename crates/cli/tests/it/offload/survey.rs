//! Counts and estimates of `dray offload --survey`.

use std::fs;

use super::{compiled, json, number, refused};
use crate::common::{directory, dray};

#[test]
fn a_survey_counts_calls_by_site_and_estimates_savings() {
    let dir = directory();
    compiled(&dir, "surveyed", &["-O1"]);
    let survey = "offload --survey --report survey.html --stats-file=/dev/stderr -- ./surveyed";
    let output = dray(dir.path(), survey).assert().success();
    let found = json(&output.get_output().stderr);
    let sites = found["sites"].as_array().expect("a list");
    let site = |function: &str| {
        let name = format!("surveyed!{function}+");
        let mut found = sites.iter().filter(|site| {
            site["site"]
                .as_str()
                .is_some_and(|text| text.starts_with(&name))
        });
        found
            .next()
            .unwrap_or_else(|| panic!("{function}: {sites:#?}"))
    };
    let copies = site("copy_pages");
    assert_eq!(copies["call"], "memcpy");
    assert_eq!(
        (number(copies, "calls"), number(copies, "bytes")),
        (500, 500 << 16)
    );
    assert_eq!(number(copies, "calls_on_buffers_seen_before"), 499);
    assert_eq!(number(&copies["to"], "page"), 500);
    let fills = site("clear");
    assert_eq!(
        (number(fills, "calls"), number(fills, "bytes")),
        (70, 210_000)
    );
    assert_eq!(number(&fills["to"], "other"), 70);
    assert_eq!(number(&fills["from"], "other"), 0);
    // The model says that such copies are worth a device where the core has other work.
    let saved = &copies["saved_ns"]["asynchronous"];
    let [low, value, high] = ["low", "value", "high"].map(|n| saved[n].as_f64().expect(n));
    assert!(low <= value && value <= high && value > 0.0, "{saved}");
    assert_eq!(found["platform"], "spr-2s");
    assert!(found["overhead_ns_per_call"].as_f64() > Some(0.0));
    let page = fs::read_to_string(dir.path().join("survey.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("copy_pages"));
    for ending in [".csv\"", ".svg\"", ".json\""] {
        assert!(!page.contains(ending), "a link to a file");
    }
    let text = dray(
        dir.path(),
        "offload --survey --platform spr-2s --config 4e1w-s -- ./surveyed",
    )
    .assert()
    .success();
    let text = String::from_utf8_lossy(&text.get_output().stderr).into_owned();
    for part in [
        "surveyed!copy_pages+",
        "Recording a call took",
        "with 4e1w-s",
        "Asynchronously",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_empty_survey_is_printed_and_bad_options_are_refused() {
    let dir = directory();
    let output = dray(dir.path(), "offload --survey --calls memcmp -- /bin/true")
        .assert()
        .success();
    let text = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(text.contains("survey of /bin/true"), "{text}");
    refused(
        "offload --survey --platform nothing -- /bin/true",
        "nothing",
    );
    refused(
        "offload --survey --min-bytes 4k -- /bin/true",
        "--min-bytes",
    );
    refused("offload --report x.html -- /bin/true", "--survey");
    dray(dir.path(), "offload --survey -- no-such-program")
        .assert()
        .code(127);
}
