//! Help, lists, completions and man pages.

use crate::common::{directory, dray, output};

#[test]
fn help_shows_examples() {
    let dir = directory();
    assert!(output(dir.path(), "--help").contains("dray advise --op copy --size 16k"));
    let help = output(dir.path(), "figures --help");
    for part in [
        "--set wq_size=1..128*2",
        "--measure-cpu",
        "--protocol",
        "dray-report",
        "Exit codes",
    ] {
        assert!(help.contains(part), "{part}");
    }
    assert!(output(dir.path(), "").contains("dray doctor dmesg.txt"));
    dray(dir.path(), "figure").assert().code(2);
}

#[test]
fn the_figures_are_listed() {
    let dir = directory();
    insta::assert_snapshot!(output(dir.path(), "figures --list"));
    insta::assert_snapshot!(output(
        dir.path(),
        "figures --list --protocol seed --format csv"
    ));
    let json = output(dir.path(), "figures --list --format json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["figures"][1]["figure"], "fig3");
}

#[test]
fn completions_and_man_pages() {
    let dir = directory();
    for shell in ["bash", "zsh", "fish"] {
        let script = output(dir.path(), &format!("completions {shell}"));
        assert!(script.contains("measure-cpu"), "{shell}");
    }
    dray(dir.path(), "man pages").assert().success();
    let page = std::fs::read_to_string(dir.path().join("pages/dray-figures.1")).unwrap();
    assert!(page.contains("measure\\-cpu"));
}
