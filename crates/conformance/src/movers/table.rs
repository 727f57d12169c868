//! The table of the suite: a row for each situation, a column for each mover.

use std::fmt;

use thiserror::Error;

/// How a mover did in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// As the specification says.
    Passed,
    /// The mover cannot do it, and said so; with the status, or the reason.
    Refused(String),
    /// Otherwise than the specification says; with what was found.
    Failed(String),
}

impl Verdict {
    pub(crate) fn refused(reason: &str) -> Verdict {
        Verdict::Refused(reason.to_owned())
    }

    fn word(&self) -> &'static str {
        match self {
            Verdict::Passed => "ok",
            Verdict::Refused(_) => "refused",
            Verdict::Failed(_) => "FAILED",
        }
    }

    fn reason(&self) -> &str {
        match self {
            Verdict::Passed => "",
            Verdict::Refused(reason) | Verdict::Failed(reason) => reason,
        }
    }
}

/// One situation, and how a mover did in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Name of the operation, or of what it is about.
    pub operation: String,
    /// The situation.
    pub case: String,
    /// How the mover did.
    pub verdict: Verdict,
}

/// All rows of one mover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name of the mover.
    pub mover: String,
    /// In the order of the table.
    pub rows: Vec<Row>,
}

/// A text that is no column.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} is no row of a table: {text:?}")]
pub struct NotAColumn {
    /// Its number, from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
}

/// Begins each line of [`Column::lines`].
const MARK: &str = "conformance";

impl Column {
    /// Rows that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Row> {
        let failed = |row: &&Row| matches!(row.verdict, Verdict::Failed(_));
        self.rows.iter().filter(failed)
    }

    /// Rows that passed.
    pub fn passed(&self) -> usize {
        let passed = |row: &&Row| row.verdict == Verdict::Passed;
        self.rows.iter().filter(passed).count()
    }

    /// A row by the names of its operation and its situation.
    pub fn row(&self, operation: &str, case: &str) -> Option<&Row> {
        let is_it = |row: &&Row| row.operation == operation && row.case == case;
        self.rows.iter().find(is_it)
    }

    /// Takes over rows of the same mover in another setting, where it refused them in this one.
    pub fn complete_with(&mut self, other: &Column) {
        for row in &mut self.rows {
            let found = other.row(&row.operation, &row.case);
            if let (Verdict::Refused(_), Some(found)) = (&row.verdict, found)
                && !matches!(found.verdict, Verdict::Refused(_))
            {
                row.verdict = found.verdict.clone();
            }
        }
    }

    /// A line for each row, for another process to [read](Column::parse).
    pub fn lines(&self) -> String {
        let line = |row: &Row| {
            let clean = |text: &str| text.replace(['\t', '\n'], " ");
            let (word, reason) = (row.verdict.word(), clean(row.verdict.reason()));
            let (mover, operation, case) = (&self.mover, &row.operation, &row.case);
            format!("{MARK}\t{mover}\t{operation}\t{case}\t{word}\t{reason}\n")
        };
        self.rows.iter().map(line).collect()
    }

    /// The column in a text: its lines among others.
    ///
    /// # Errors
    /// A line that is marked as a row and is none.
    pub fn parse(text: &str) -> Result<Option<Column>, NotAColumn> {
        let mut column: Option<Column> = None;
        for (line, text) in (1..).zip(text.lines()) {
            let mut fields = text.split('\t');
            if fields.next() != Some(MARK) {
                continue;
            }
            let not_a_row = || NotAColumn {
                line,
                text: text.to_owned(),
            };
            let fields: Vec<&str> = fields.collect();
            let [mover, operation, case, word, reason] = fields[..] else {
                return Err(not_a_row());
            };
            let verdict = match word {
                "ok" => Verdict::Passed,
                "refused" => Verdict::Refused(reason.to_owned()),
                "FAILED" => Verdict::Failed(reason.to_owned()),
                _ => return Err(not_a_row()),
            };
            let column = column.get_or_insert_with(|| Column {
                mover: mover.to_owned(),
                rows: Vec::new(),
            });
            column.rows.push(Row {
                operation: operation.to_owned(),
                case: case.to_owned(),
                verdict,
            });
        }
        Ok(column)
    }
}

/// Several movers beside each other. Every row of every mover is in it, and below it each refusal and each
/// failure with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table(pub Vec<Column>);

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<(&str, &str)> = Vec::new();
        for row in self.0.iter().flat_map(|column| &column.rows) {
            let name = (row.operation.as_str(), row.case.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let widest = |of: fn(&(&str, &str)) -> usize| names.iter().map(of).max().unwrap_or(0);
        let (operations, cases) = (
            widest(|name| name.0.len()),
            widest(|name| name.1.len()).max(9),
        );
        let width = |column: &Column| column.mover.len().max(7);
        write!(f, "{:operations$}  {:cases$}", "", "situation")?;
        for column in &self.0 {
            write!(f, "  {:w$}", column.mover, w = width(column))?;
        }
        writeln!(f)?;
        for (operation, case) in &names {
            write!(f, "{operation:operations$}  {case:cases$}")?;
            for column in &self.0 {
                let row = column.row(operation, case);
                let word = row.map_or("absent", |row| row.verdict.word());
                write!(f, "  {word:w$}", w = width(column))?;
            }
            writeln!(f)?;
        }
        for column in &self.0 {
            writeln!(f, "{}: {}", column.mover, Counts(column))?;
        }
        for column in &self.0 {
            for row in &column.rows {
                let (word, reason) = (row.verdict.word(), row.verdict.reason());
                if !reason.is_empty() {
                    let (mover, operation, case) = (&column.mover, &row.operation, &row.case);
                    writeln!(f, "{mover}: {operation}, {case}: {word}: {reason}")?;
                }
            }
        }
        Ok(())
    }
}

/// How many rows of a column passed, were refused, failed.
struct Counts<'a>(&'a Column);

impl fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed) = (self.0.passed(), self.0.failures().count());
        let refused = self.0.rows.len() - passed - failed;
        write!(f, "{passed} ok, {refused} refused, {failed} failed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(mover: &str, verdicts: &[Verdict]) -> Column {
        let row = |(n, verdict): (usize, &Verdict)| Row {
            operation: "memmove".into(),
            case: format!("case {n}"),
            verdict: verdict.clone(),
        };
        Column {
            mover: mover.into(),
            rows: verdicts.iter().enumerate().map(row).collect(),
        }
    }

    #[test]
    fn a_column_is_parsed_from_among_other_lines() {
        let verdicts = [
            Verdict::Passed,
            Verdict::Refused("bad_opcode".into()),
            Verdict::Failed("other bytes".into()),
        ];
        let column = column("hw", &verdicts);
        let text = format!("running 1 test\n{}ok\n", column.lines());
        assert_eq!(Column::parse(&text), Ok(Some(column)));
        assert_eq!(Column::parse("nothing"), Ok(None));
        let line = "conformance\thw\tmemmove\tcase\tperhaps\t".to_owned();
        let text = line.clone();
        assert_eq!(Column::parse(&line), Err(NotAColumn { line: 1, text }));
    }

    #[test]
    fn rows_of_every_mover_are_printed_with_reasons_of_refusals() {
        let refused = Verdict::Refused("no queue".into());
        let movers = [
            column("cpu", &[Verdict::Passed, refused]),
            column("hw", &[const { Verdict::Passed }; 3]),
        ];
        let text = Table(movers.to_vec()).to_string();
        assert_eq!(
            text,
            "         situation  cpu      hw     \n\
             memmove  case 0     ok       ok     \n\
             memmove  case 1     refused  ok     \n\
             memmove  case 2     absent   ok     \n\
             cpu: 1 ok, 1 refused, 0 failed\n\
             hw: 3 ok, 0 refused, 0 failed\n\
             cpu: memmove, case 1: refused: no queue\n"
        );
    }

    #[test]
    fn results_of_another_setting_replace_only_refusals() {
        let refused = Verdict::Refused("no queue".into());
        let failed = Verdict::Failed("lost".into());
        let mut first = column("hw", &[Verdict::Passed, refused.clone(), refused.clone()]);
        let other = column("hw", &[failed.clone(), failed.clone(), refused.clone()]);
        first.complete_with(&other);
        assert_eq!(first, column("hw", &[Verdict::Passed, failed, refused]));
    }
}
