//! Command lines and files that README and the guide name.

use std::path::Path;

use assert_cmd::Command;

/// Words of a shell line: apart by blanks, with single quotes around what holds any.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.last_mut().unwrap().push_str(part);
            continue;
        }
        for (index, piece) in part.split(' ').enumerate() {
            if index > 0 {
                words.push(String::new());
            }
            words.last_mut().unwrap().push_str(piece);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn the_lines_of_the_page_on_measuring_run_in_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands/measure.md");
    let text = std::fs::read_to_string(page).unwrap();
    let lines: Vec<&str> = text.lines().filter(|l| l.starts_with("dray ")).collect();
    assert!(lines.len() >= 12, "{lines:?}");
    let directory = tempfile::tempdir().unwrap();
    // README has `dray` put on PATH before.
    let dray = Path::new(env!("CARGO_BIN_EXE_dray")).parent().unwrap();
    let path = format!("{}:{}", dray.display(), std::env::var("PATH").unwrap());
    for line in lines {
        let output = Command::cargo_bin("dray")
            .unwrap()
            .current_dir(directory.path())
            .env("PATH", &path)
            .args(words(line).into_iter().skip(1))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {errors}");
        assert!(!output.stdout.is_empty(), "{line}");
    }
    let picture = std::fs::read_to_string(directory.path().join("change.svg")).unwrap();
    assert!(picture.contains("</svg>"));
}

#[test]
fn quoted_words_are_one_argument() {
    assert_eq!(words("a 'b c' -x'[0]'  d"), ["a", "b c", "-x[0]", "d"]);
}

/// `cargo run`, as the README has it, finds one program to run.
#[test]
fn cargo_run_starts_the_program_dray() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let output = cargo.current_dir(root).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let default = list(&metadata["workspace_default_members"]);
    let packages = list(&metadata["packages"]);
    let programs = packages
        .iter()
        .filter(|package| default.contains(&package["id"]))
        .flat_map(|package| list(&package["targets"]))
        .filter(|target| list(&target["kind"]).contains(&"bin".into()));
    let names: Vec<_> = programs.map(|target| target["name"].clone()).collect();
    assert_eq!(names, ["dray"]);
}

/// The files in `examples/` do what README says.
#[test]
fn the_examples_run_on_virtual_devices() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    let built = std::process::Command::new("cc")
        .args(["-O2", "-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(examples.join("program.c"))
        .status()
        .unwrap();
    assert!(built.success());
    std::fs::copy(
        examples.join("my-accel-config.json"),
        directory.path().join("my-accel-config.json"),
    )
    .unwrap();
    let script = examples.join("script.py").display().to_string();
    let setup = examples.join("setup-and-test.sh").display().to_string();
    let lines = [
        "--profile 4e1w-s -- ./program".to_owned(),
        "--profile 1e1w-d -- ./program".to_owned(),
        "--profile my-accel-config.json -- ./program".to_owned(),
        "--profile my-accel-config.json -- ./program /dev/dsa/wq0.1".to_owned(),
        format!("--profile 1e1w-d --personality 7.2 -- python3 {script}"),
        format!("--profile 1e1w-d --require write -- python3 {script}"),
        format!("--personality 5.18 -- sh {setup}"),
        format!("--personality 6.8 -- sh {setup}"),
    ];
    for line in lines {
        let output = Command::cargo_bin("dray")
            .unwrap()
            .current_dir(directory.path())
            .arg("run")
            .args(words(&line))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "status 1, copied\n", "{line}: {output:?}");
        assert!(output.status.success(), "{line}: {output:?}");
    }
    let mut validate = Command::cargo_bin("dray").unwrap();
    let profile = examples.join("my-accel-config.json");
    validate.args(["config", "validate"]).arg(profile);
    validate.assert().success();
}

/// README's line for another device: points beyond it are named, and the rest is drawn.
#[test]
fn figures_of_the_example_name_what_they_leave_out() {
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/my-accel-config.json");
    let directory = tempfile::tempdir().unwrap();
    let mut figures = Command::cargo_bin("dray").unwrap();
    figures.current_dir(directory.path());
    figures.args([
        "figures",
        "--only",
        "fig4,pages,migration,vhost-cores",
        "--config",
    ]);
    let output = figures.arg(&profile).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for line in [
        "fig4: 7 points are left out: wq_size 128: size is 256 for all work queues",
        "pages: 12 points are left out: batch above 64 (max_batch_size)",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let page = std::fs::read_to_string(directory.path().join("dray-report/index.html")).unwrap();
    assert!(page.contains("batch above 64 (max_batch_size)"));
    // With `--set`, such a value is an error.
    let mut figures = Command::cargo_bin("dray").unwrap();
    figures.current_dir(directory.path());
    figures.args([
        "figures",
        "--only",
        "fig4",
        "--set",
        "wq_size=1,128",
        "--config",
    ]);
    figures.arg(&profile).assert().failure().code(2);
}

/// The program that README's install line names is the one that it puts on `PATH`.
#[test]
fn the_install_line_names_the_package_of_dray() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("README.md")).unwrap();
    let lines = text
        .lines()
        .filter(|line| line.starts_with("cargo install "));
    for line in lines {
        let path = words(line)
            .into_iter()
            .skip_while(|word| word != "--path")
            .nth(1);
        let package = root.join(path.expect("--path")).canonicalize().unwrap();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"))
            .canonicalize()
            .unwrap();
        assert_eq!(package, here, "{line}");
    }
}

/// Files that README and `--help` texts name below these directories are in the repository.
#[test]
fn files_that_readme_and_help_texts_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("README.md")).unwrap();
    let directories = ["examples/", "docs/", "platforms/", "fabrics/", "reference/"];
    let is_of_a_path = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
    let mut named: Vec<&str> = text
        .split(|c: char| !is_of_a_path(c))
        .filter(|word| {
            directories
                .iter()
                .any(|d| word.len() > d.len() && word.starts_with(d))
        })
        .map(|word| word.trim_end_matches('.'))
        .collect();
    named.dedup();
    assert!(named.len() >= 6, "{named:?}");
    for name in named {
        assert!(root.join(name).exists(), "README names {name}");
    }
}
