//! Experiment files: their points and panels, and messages about errors in them.

use std::path::Path;

use dray_experiment::{
    Experiment, FileError, Kind, PanelKind, Parameter, Point, Value, Vocabulary,
};
use proptest::prelude::*;

const TEXT: &str = include_str!("fig3.toml");

const fn parameter(name: &'static str, kind: Kind) -> Parameter {
    Parameter {
        name,
        kind,
        help: "",
    }
}

const VOCABULARY: Vocabulary = Vocabulary::new(&[
    parameter("op", Kind::Choice(&["memmove", "fill", "compare"])),
    parameter("mode", Kind::Choice(&["sync", "async"])),
    parameter("batch", Kind::Count { min: 1, max: 1024 }),
    parameter("wq_size", Kind::Count { min: 1, max: 128 }),
    parameter(
        "size",
        Kind::Bytes {
            min: 1,
            max: 1 << 31,
        },
    ),
])
.with_backends(&["model", "cpu"])
.with_metrics(&[
    "throughput_gbps",
    "latency_ns",
    "prepare_ns",
    "submit_ns",
    "wait_ns",
]);

fn parse(text: &str) -> Result<Experiment, FileError> {
    Experiment::parse(text, "fig3.toml", &VOCABULARY)
}

fn experiment() -> Experiment {
    parse(TEXT).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn an_experiment_file_is_parsed() {
    let experiment = experiment();
    assert_eq!(experiment.backends, ["model", "cpu"]);
    assert_eq!(experiment.fixed, [("op".into(), "memmove".into())]);
    assert_eq!(
        experiment.values("size"),
        [256.into(), 1024.into(), 4096.into()]
    );
    assert_eq!(experiment.values("backend"), ["model".into(), "cpu".into()]);
    assert_eq!(experiment.values("wq_size"), []);

    let [first, second] = experiment.panels.as_slice() else {
        panic!("two panels")
    };
    assert_eq!((first.id.as_str(), first.kind), ("fig3", PanelKind::Bars));
    assert_eq!(first.title, experiment.title);
    assert!(first.half && !first.log_y);
    assert_eq!(
        (second.id.as_str(), second.kind),
        ("fig3-b", PanelKind::Stacked)
    );
    assert_eq!(second.y, ["prepare_ns", "submit_ns", "wait_ns"]);
}

#[test]
fn the_first_swept_parameter_is_the_outermost_loop() {
    let points = experiment().points();
    assert_eq!(points.len(), 12);
    assert_eq!(
        points[0].to_string(),
        "op=memmove, mode=sync, batch=1, size=256"
    );
    assert_eq!(
        points[1].to_string(),
        "op=memmove, mode=sync, batch=1, size=1024"
    );
    assert_eq!(
        points[3].to_string(),
        "op=memmove, mode=sync, batch=4, size=256"
    );
    assert_eq!(
        points[6].to_string(),
        "op=memmove, mode=async, batch=1, size=256"
    );
}

#[test]
fn panels_choose_points_and_their_baselines() {
    let experiment = experiment();
    let overlay = &experiment.panels[0].overlays[0];
    let drawn: Vec<String> = experiment
        .points()
        .iter()
        .filter(|point| overlay.filter.matches(point))
        .map(|point| {
            format!(
                "{}x{}",
                point.integer("batch").unwrap(),
                point.integer("size").unwrap()
            )
        })
        .collect();
    assert_eq!(drawn, ["1x256", "1x4096", "4x256", "4x4096"]);
    assert!(!overlay.filter.matches(&Point::default()));

    let point = experiment.points()[0].with("backend", "model");
    let baseline = experiment.panels[0].baseline(&point).unwrap();
    assert_eq!(baseline, point.with("backend", "cpu"));
    assert_eq!(experiment.panels[1].baseline(&point), None);
}

#[test]
fn set_changes_what_is_swept() {
    let mut experiment = experiment();
    experiment.set("mode", &["async".into()]).unwrap();
    experiment
        .set("op", &["fill".into(), "memmove".into()])
        .unwrap();
    experiment.set("wq_size", &[16.into()]).unwrap();
    experiment.set("size", &["4k".into()]).unwrap();
    let points: Vec<String> = experiment
        .points()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        points,
        [
            "wq_size=16, op=fill, mode=async, batch=1, size=4096",
            "wq_size=16, op=fill, mode=async, batch=4, size=4096",
            "wq_size=16, op=memmove, mode=async, batch=1, size=4096",
            "wq_size=16, op=memmove, mode=async, batch=4, size=4096",
        ]
    );
}

#[test]
fn parameters_swept_by_set_are_added_to_the_series() {
    let mut experiment = experiment();
    experiment.set("wq_size", &[16.into(), 32.into()]).unwrap();
    experiment.set("batch", &[1.into(), 2.into()]).unwrap();
    let [first, second] = experiment.panels.as_slice() else {
        panic!("two panels")
    };
    assert_eq!(first.series, ["mode", "batch", "wq_size"]);
    assert_eq!(first.overlays[0].series, ["batch", "wq_size"]);
    assert_eq!(second.series, ["wq_size"]);
}

#[test]
fn a_refused_set_changes_nothing() {
    let many: Vec<Value> = (1..=1024).map(Value::Integer).collect();
    let sizes: Vec<Value> = (1..=1000).map(Value::Integer).collect();
    let mut experiment = experiment();
    experiment.set("size", &sizes).unwrap();
    let before = experiment.clone();
    let cases: [(&str, &[Value], &str); 7] = [
        ("wqsize", &[1.into()], "did you mean `wq_size`?"),
        ("mode", &[], "expands to nothing"),
        ("size", &[0.into()], "size = 0 is outside of 1 to 2G"),
        ("size", &["4k".into(), 4096.into()], "4096 is there twice"),
        ("mode", &[3.into()], "known: sync, async"),
        ("batch", &many, "above the limit of 1000000 points"),
        (
            "backend",
            &["cpu".into()],
            "name the backends under `backends`",
        ),
    ];
    for (name, values, expected) in cases {
        let message = experiment.set(name, values).unwrap_err().to_string();
        assert!(
            message.starts_with("--set: ") && message.contains(expected),
            "{message}"
        );
    }
    assert_eq!(experiment, before);
}

#[test]
fn each_error_names_file_key_and_fix() {
    let cases = [
        (
            "series = [\"mode\", \"batch\"]",
            "",
            "`panel[0].series` = [] does not distinguish the 2 values of mode; add \"mode\", or",
        ),
        (
            "series = [\"batch\"]",
            "",
            "`panel[0].overlay[0].series` = [] does not distinguish the 2 values of batch",
        ),
        ("id = \"fig3\"\n", "", "`id` is missing; add id = \"...\""),
        (
            "id = \"fig3\"",
            "id = \"../x\"",
            "cannot be the name of a file",
        ),
        (
            "title = \"Copy",
            "titel = \"Copy",
            "unknown key `titel`; did you mean `title`?",
        ),
        (
            "title = \"Copy",
            "title = 3 #",
            "`title` is the number 3; write a text in quotes",
        ),
        ("\"Figure 3\"", "\" \"", "`published` = \"\" is empty"),
        (
            "[\"model\", \"cpu\"]",
            "[]",
            "`backends` is missing; add those it applies to",
        ),
        (
            "\"cpu\"]",
            "\"gpu\"]",
            "`backends`: backend = `gpu` is not one of its values; did you mean `cpu`?",
        ),
        (
            "\"model\", \"cpu\"",
            "\"cpu\", \"cpu\"",
            "`backends` = cpu is there twice",
        ),
        (
            "op = \"memmove\"",
            "op = \"memove\"",
            "`fixed.op`: op = `memove` is not one of its values; did you mean `memmove`?",
        ),
        (
            "op = \"memmove\"",
            "op = -1",
            "`fixed.op` is the number -1; write a whole number of 0 or more",
        ),
        (
            "op = \"memmove\"",
            "size = 1",
            "`sweep.size` = \"256..4k*4\" is under [fixed] already",
        ),
        (
            "\"256..4k*4\"",
            "\"4k..256*4\"",
            "`sweep.size`: sweep `4k..256*4`: `4k..256*4` starts at 4096",
        ),
        (
            "\"256..4k*4\"",
            "\"0,256\"",
            "`sweep.size`: size = 0 is outside of 1 to 2G",
        ),
        (
            "\"256..4k*4\"",
            "[]",
            "`sweep.size` = [] expands to nothing",
        ),
        (
            "\"256..4k*4\"",
            "[[1]]",
            "`sweep.size` is a list; write one list without lists",
        ),
        (
            "batch = \"1,4\"",
            "batches = \"1,4\"",
            "unknown parameter `batches`; did you mean `batch`?",
        ),
        (
            "batch = \"1,4\"",
            "batch = 1.5",
            "`sweep.batch` is the number 1.5",
        ),
        (
            "batch = \"1,4\"",
            "backend = \"cpu\"",
            "name the backends under `backends`",
        ),
        (
            "kind = \"bars\"",
            "kind = \"bar\"",
            "`panel[0].kind` = bar is no kind of panel; did you mean `bars`?",
        ),
        (
            "half = true",
            "halfs = true",
            "unknown key `panel[0].halfs`; did you mean `half`?",
        ),
        (
            "half = true",
            "half = 1",
            "`panel[0].half` is the number 1; write true or false",
        ),
        (
            "half = true",
            "id = \"fig4\"",
            "`panel[0].id` = fig4 is not the experiment's id",
        ),
        (
            "id = \"fig3-b\"",
            "id = \"fig3\"",
            "`panel[1].id` = fig3 is the id of another panel",
        ),
        ("id = \"fig3-b\"", "", "`panel[1].id` is missing"),
        (
            "x = \"size\"\nseries",
            "x = \"sise\"\nseries",
            "`panel[0].x` = sise is no parameter of this experiment; did you mean `size`?",
        ),
        (
            "[\"mode\", \"batch\"]",
            "[\"size\"]",
            "`panel[0].series` = size is the x axis already",
        ),
        (
            "[\"mode\", \"batch\"]",
            "[\"mode\", \"mode\"]",
            "`panel[0].series` = mode is there twice",
        ),
        (
            "y = \"throughput_gbps\"",
            "y = \"throughput\"",
            "`panel[0].y`: y = `throughput` is not one of its values",
        ),
        (
            "y = \"throughput_gbps\"",
            "y = [\"latency_ns\", \"wait_ns\"]",
            "names several metrics; name one, or set kind",
        ),
        ("y = \"throughput_gbps\"", "", "`panel[0].y` is missing"),
        (
            "{ backend = \"cpu\" }",
            "{}",
            "`panel[0].improvement_over` = {} names no parameter",
        ),
        (
            "{ backend = \"cpu\" }",
            "{ batch = \"1,4\" }",
            "has 2 values; name the one to divide by",
        ),
        (
            "{ backend = \"cpu\" }",
            "{ batch = 2 }",
            "= 2 is a value that no point has; write one of: 1, 4",
        ),
        (
            "{ mode = \"sync\", batch = 1 }",
            "{ wq_size = 1 }",
            "`panel[1].where` = wq_size is no parameter of this",
        ),
        (
            "series = [\"batch\"]\n",
            "serie = [\"batch\"]\n",
            "unknown key `panel[0].overlay[0].serie`; did you mean `series`?",
        ),
        (
            "[[panel.overlay]]",
            "[panel.overlay]",
            "`panel[0].overlay` is a table; write tables, each under its own",
        ),
        ("[fixed]", "[fixed", "TOML parse error at line"),
    ];
    for (old, new, expected) in cases {
        assert!(TEXT.contains(old), "{old}");
        let message = parse(&TEXT.replacen(old, new, 1)).unwrap_err().to_string();
        assert!(
            message.starts_with("fig3.toml: ") && message.contains(expected),
            "{message}"
        );
    }
}

#[test]
fn too_many_points_are_refused() {
    let text = TEXT
        .replacen("256..4k*4", "1..99999", 1)
        .replacen("\"1,4\"", "\"1..99\"", 1);
    let message = parse(&text).unwrap_err().to_string();
    let expected = "19799802 points is above the limit of 1000000 points; take larger steps";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_missing_file_is_named() {
    let error = Experiment::load(Path::new("no/fig3.toml"), &VOCABULARY).unwrap_err();
    assert!(
        error.to_string().contains("no/fig3.toml: cannot be read"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn mutated_text_is_parsed_or_refused(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "[\\PC\n]{0,6}"), 1..4)
    ) {
        let mut letters: Vec<char> = TEXT.chars().collect();
        for (at, removed, added) in edits {
            let start = at.index(letters.len());
            let end = (start + removed).min(letters.len());
            letters.splice(start..end, added.chars());
        }
        if let Ok(experiment) = parse(&letters.into_iter().collect::<String>()) {
            prop_assert!(!experiment.points().is_empty());
        }
    }
}
