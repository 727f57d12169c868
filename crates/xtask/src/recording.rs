//! The recording of a terminal in README.md: commands, run now, and what they printed, as a picture of text.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// The commands, in their order, in a directory of their own; `$EXAMPLES` is that of the examples.
pub const COMMANDS: [&str; 6] = [
    "cc -O2 -o copy $EXAMPLES/program.c    # copies 4 KiB with a DSA",
    "./copy",
    "dray run --profile 1e1w-s --require work -- ./copy",
    "dray run --profile 1e1w-s --require work -- true",
    "dray run --profile 4e4w-d -- ls /dev/dsa",
    "dray advise --op copy --size 16k | head -1",
];

/// Columns of the terminal.
const COLUMNS: usize = 100;
/// Pixels of a character and of a line.
const WIDTH: f64 = 7.8;
const HEIGHT: usize = 19;

/// Runs the commands with the `dray` in the directory `programs`, and gives what a terminal shows then.
///
/// # Errors
/// No shell, no room for a temporary directory.
pub fn record(programs: &Path) -> anyhow::Result<Vec<String>> {
    let directory = tempfile::tempdir().context("a temporary directory")?;
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let path = std::env::var("PATH").context("PATH")?;
    let mut lines = Vec::new();
    for command in COMMANDS {
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(directory.path())
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("EXAMPLES", &examples)
            .output()
            .context("sh")?;
        lines.push(format!("$ {}", command.replace("$EXAMPLES", "examples")));
        let said = String::from_utf8(output.stdout).context("text")?;
        for line in said.lines() {
            lines.extend(wrapped(line));
        }
    }
    Ok(lines)
}

/// A line broken after words, as a narrow terminal would show it.
fn wrapped(line: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if last.chars().count() + 1 + word.chars().count() > COLUMNS && !last.is_empty() {
            lines.push(word.to_owned());
            continue;
        }
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(word);
    }
    lines
}

/// The picture.
///
/// # Errors
/// A line with a character that a terminal does not print.
pub fn svg(lines: &[String]) -> anyhow::Result<String> {
    let width = (COLUMNS as f64 * WIDTH).ceil() as usize + 32;
    let height = lines.len() * HEIGHT + 32;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"DejaVu Sans Mono, Liberation Mono, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <title>dray run at work</title>\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1c2128\"/>\n"
    );
    for (index, line) in lines.iter().enumerate() {
        ensure!(
            !line.contains(char::is_control),
            "{line:?} has a control character"
        );
        let text = line
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let colour = match line.starts_with("$ ") {
            true => "#7ee787",
            false if line.starts_with("error") => "#ff9e97",
            false => "#d7dde4",
        };
        let y = 16 + (index + 1) * HEIGHT - 5;
        writeln!(
            svg,
            "<text x=\"16\" y=\"{y}\" fill=\"{colour}\" xml:space=\"preserve\">{text}</text>"
        )?;
    }
    Ok(svg + "</svg>\n")
}
