//! Platform files: what is refused, and with which words.

use dray_platform::{PlatformFile, builtin, builtin_names};

const SPR: &str = include_str!("../../../../platforms/spr-2s.toml");

fn refused(text: &str) -> String {
    PlatformFile::parse(text, "mine.toml")
        .expect_err("refused")
        .to_string()
}

fn with_line(name: &str, line: &str) -> String {
    let lines = SPR
        .lines()
        .map(|l| match l.starts_with(&format!("{name} = ")) {
            true => line,
            false => l,
        });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_built_in_platform_loads_and_states_its_sources() {
    for name in builtin_names() {
        let platform = builtin(name).unwrap();
        for parameter in platform.list() {
            assert!(!parameter.source.is_empty(), "{name}: {}", parameter.name);
            assert!(!PlatformFile::help(parameter.name).is_empty());
        }
    }
}

#[test]
fn a_negative_latency_names_file_parameter_value_and_fix() {
    let line = r#"dispatch = { value = -5, unit = "ns", range = [0, 120], source = "x" }"#;
    let message = refused(&with_line("dispatch", line));
    for part in [
        "mine.toml",
        "'dispatch'",
        "-5",
        "[0, 120] ns",
        "in the range",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let line = r#"dispatch = { value = -5, unit = "ns", range = [-9, 120], source = "x" }"#;
    assert!(refused(&with_line("dispatch", line)).contains("its range must lie within"));
}

#[test]
fn a_missing_or_wrong_unit_names_the_unit_to_write() {
    let line = r#"dispatch = { value = 80, range = [40, 120], source = "x" }"#;
    let message = refused(&with_line("dispatch", line));
    assert!(
        message.contains("unit none given") && message.contains(r#"unit = "ns""#),
        "{message}"
    );
    let line = r#"port_read = { value = 31, unit = "GiB/s", range = [1, 99], source = "x" }"#;
    assert!(refused(&with_line("port_read", line)).contains("GiB/s given, 'GB/s' needed"));
}

#[test]
fn unknown_missing_and_repeated_parameters_are_named() {
    let line = r#"dispach = { value = 80, unit = "ns", range = [40, 120], source = "x" }"#;
    assert!(refused(&with_line("dispatch", line)).contains("did you mean `dispatch`"));
    assert!(refused(&with_line("dispatch", "")).contains("'dispatch' (ns) is missing"));
    let twice = SPR.lines().find(|l| l.starts_with("dispatch = ")).unwrap();
    assert!(refused(&format!("{SPR}\n{twice}\n")).contains("mine.toml"));
}

#[test]
fn values_that_are_no_numbers_and_reversed_ranges_are_refused() {
    for value in ["nan", "inf", "-inf", "1e300"] {
        let line = format!(
            r#"dispatch = {{ value = {value}, unit = "ns", range = [40, 120], source = "x" }}"#
        );
        assert!(
            refused(&with_line("dispatch", &line)).contains("outside"),
            "{value}"
        );
    }
    let line = r#"dispatch = { value = 80, unit = "ns", range = [120, 40], source = "x" }"#;
    assert!(refused(&with_line("dispatch", line)).contains("upside down"));
    let line = r#"port_read = { value = 0, unit = "GB/s", range = [0, 40], source = "x" }"#;
    assert!(refused(&with_line("port_read", line)).contains("0.01"));
}

#[test]
fn a_machine_with_0_or_too_many_sockets_is_refused() {
    for (from, to) in [
        ("sockets = 2", "sockets = 0"),
        ("sockets = 2", "sockets = 99"),
    ] {
        assert!(
            refused(&SPR.replace(from, to)).contains("topology.sockets"),
            "{to}"
        );
    }
}

#[test]
fn an_extension_states_only_what_differs() {
    let text = r#"
        name = "mine"
        title = "Mine"
        extends = "spr-2s"
        [parameters]
        dispatch = { value = 90, unit = "ns", range = [40, 120], source = "mine" }
    "#;
    let (mine, spr) = (
        PlatformFile::parse(text, "mine.toml").unwrap(),
        builtin("spr-2s").unwrap(),
    );
    let differ = mine
        .list()
        .iter()
        .zip(spr.list())
        .filter(|(a, b)| a != b)
        .count();
    assert_eq!(differ, 1);
    assert_eq!(mine.parameters().poll, spr.parameters().poll);
    let lost = text.replace("spr-2s", "spr");
    assert!(refused(&lost).contains("known: spr-2s"));
}

#[test]
fn a_changed_value_must_be_in_its_range() {
    let spr = builtin("spr-2s").unwrap();
    assert!(spr.with("dispatch", 100.0).is_ok());
    assert!(spr.with("dispatch", 1.0).is_err());
    assert!(
        spr.with("dipatch", 100.0)
            .unwrap_err()
            .to_string()
            .contains("`dispatch`")
    );
}

#[test]
fn recorded_reads_depend_only_on_the_parameters_read() {
    let platform = builtin("spr-2s").unwrap();
    let parameters = platform.recorded_parameters();
    assert!(parameters.reads().same_in(platform.parameters()));
    let value = parameters.dispatch();
    assert_eq!(value, platform.parameters().dispatch);
    let _ = (parameters.cpu_scale_cxl(), parameters.prepare());
    let reads = parameters.reads();
    assert!(reads.same_in(platform.parameters()));
    for parameter in platform.list() {
        let read = ["dispatch", "cpu_scale_cxl", "prepare"].contains(&parameter.name);
        for end in parameter.range {
            let other = platform.with(parameter.name, end).unwrap();
            let same = reads.same_in(other.parameters());
            assert_eq!(same, !read || end == parameter.value, "{}", parameter.name);
        }
    }
}
