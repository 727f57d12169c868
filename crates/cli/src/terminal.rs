//! What standard output is: how wide a terminal is, and whether it has colours.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::ops::{Deref, DerefMut};

use comfy_table::{Row, Table};

/// Columns of the terminal, or of the variable COLUMNS; `None` where stdout is none, and lines stay whole.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let said = std::env::var("COLUMNS").ok();
    let said = said
        .and_then(|text| text.parse().ok())
        .filter(|&columns| columns > 0);
    Some(said.unwrap_or_else(textwrap::termwidth))
}

/// A table that becomes a list where the terminal is too narrow for it.
pub(crate) struct Columns(pub(crate) Table);

impl Deref for Columns {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0
    }
}

impl DerefMut for Columns {
    fn deref_mut(&mut self) -> &mut Table {
        &mut self.0
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&fitted(&self.0, width()))
    }
}

fn fitted(table: &Table, width: Option<usize>) -> String {
    let text = table.to_string();
    let longest = text
        .lines()
        .map(|line| textwrap::core::display_width(line.trim_end()))
        .max();
    match width {
        Some(width) if longest > Some(width) => list(table, width),
        _ => text,
    }
}

/// The first cell of each row with its heading, and below it a line for each other one.
fn list(table: &Table, width: usize) -> String {
    let cells =
        |row: &Row| -> Vec<String> { row.cell_iter().map(comfy_table::Cell::content).collect() };
    let heads = table.header().map(cells).unwrap_or_default();
    let names = heads.iter().skip(1);
    let column = names
        .map(|name| textwrap::core::display_width(name))
        .max()
        .unwrap_or(0);
    let mut lines = Vec::new();
    for row in table.row_iter() {
        let cells = cells(row);
        let mut cells = cells.iter();
        let first = cells.next().map_or("", String::as_str);
        let first = format!("{} {first}", heads.first().map_or("", String::as_str));
        lines.push(textwrap::fill(first.trim(), width));
        for (name, cell) in heads
            .iter()
            .skip(1)
            .zip(cells)
            .filter(|(_, cell)| !cell.is_empty())
        {
            let line = format!("  {name:<column$}  {cell}");
            let rest = " ".repeat(column + 4);
            let options = textwrap::Options::new(width).subsequent_indent(&rest);
            lines.push(textwrap::fill(line.trim_end(), options));
        }
    }
    lines.join("\n")
}

/// How a line judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    Doubtful,
    Bad,
}

impl Verdict {
    /// The color of it.
    fn code(self) -> u8 {
        match self {
            Verdict::Good => 32,
            Verdict::Doubtful => 33,
            Verdict::Bad => 31,
        }
    }
}

/// Whether a stream has colours: it is a terminal that has some, and NO_COLOR is not set.
pub(crate) fn has_colours(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !dumb
}

/// Writes a text to stdout, the lines that judge in their colour. What files say is no command for the terminal.
pub(crate) fn judged(text: &str, of: impl Fn(&str) -> Option<Verdict>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let shown = dray_output::shown(text);
    let text = match has_colours(&out) {
        true => coloured(&shown, of),
        false => shown.into_owned(),
    };
    crate::print::raw(&mut out, &text).and_then(|()| out.flush())
}

fn coloured(text: &str, of: impl Fn(&str) -> Option<Verdict>) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let (words, end) = line.split_at(line.trim_end().len());
        match of(words) {
            Some(verdict) => format!("\x1b[{}m{words}\x1b[0m{end}", verdict.code()),
            None => line.to_owned(),
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::{plain, right};

    fn table() -> Columns {
        let mut table = plain(["case", "old ns", "new ns", ""]);
        table.add_row(["copy/size:4096", "1.50", "3.00", "slower"]);
        table.add_row(["fill/size:4096", "2.00", "2.00", ""]);
        right(&mut table, 1);
        table
    }

    #[test]
    fn a_table_is_a_list_where_the_terminal_is_narrow() {
        let table = table();
        let whole = fitted(&table.0, None);
        assert_eq!(fitted(&table.0, Some(200)), whole);
        let expected = "case copy/size:4096\n  old ns  1.50\n  new ns  3.00\n          slower\n\
                        case fill/size:4096\n  old ns  2.00\n  new ns  2.00";
        assert_eq!(fitted(&table.0, Some(30)), expected);
        // As narrow as its lines are: nothing changes.
        let longest = whole.lines().map(|line| line.trim_end().len()).max();
        assert_eq!(fitted(&table.0, longest), whole);
        for width in 20..200 {
            let lines = fitted(&table.0, Some(width));
            assert!(
                lines.lines().all(|line| line.trim_end().len() <= width),
                "{width}: {lines}"
            );
        }
    }

    #[test]
    fn lines_that_judge_are_coloured() {
        let of = |line: &str| line.ends_with("slower").then_some(Verdict::Bad);
        assert_eq!(
            coloured("a\nb slower \nc", of),
            "a\n\x1b[31mb slower\x1b[0m \nc"
        );
    }
}
