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

/// The verbs that a help lists, but `help` itself.
fn verbs(help: &str) -> Vec<&str> {
    let listed = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = listed.lines().take_while(|line| line.starts_with("  "));
    let words = lines.filter(|line| !line.starts_with("   "));
    let words = words.filter_map(|line| line.split_whitespace().next());
    words.filter(|verb| *verb != "help").collect()
}

#[test]
fn every_command_and_verb_shows_an_example_of_itself() {
    let dir = directory();
    // Without a verb there are questions.
    let commands = output(dir.path(), "--help");
    let mut rest: Vec<String> = verbs(&commands)
        .iter()
        .map(|verb| format!(" {verb}"))
        .collect();
    let mut seen = 0;
    while let Some(path) = rest.pop() {
        let help = output(dir.path(), &format!("{path} --help"));
        let shown = help.split("Example").nth(1).unwrap_or_default();
        assert!(shown.contains(&format!("dray{path}")), "dray{path}: {help}");
        rest.extend(verbs(&help).iter().map(|verb| format!("{path} {verb}")));
        seen += 1;
    }
    assert!(seen > 40, "{seen} helps");
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
