//! A table of the report.

use crate::{ReportError, number};

/// Which edge the cells of a column stand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Align {
    /// For words.
    #[default]
    Left,
    /// For numbers.
    Right,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Column {
    /// Name in the head.
    pub name: String,
    /// Unit, in the head below the name.
    pub unit: Option<String>,
    /// Which edge its cells stand on.
    pub align: Align,
}

impl Column {
    /// A column of words.
    pub fn text(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// A column of numbers in one unit; an empty unit is not shown.
    pub fn number(name: impl Into<String>, unit: impl Into<String>) -> Self {
        let unit = unit.into();
        Self {
            name: name.into(),
            unit: (!unit.is_empty()).then_some(unit),
            align: Align::Right,
        }
    }
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Cell {
    /// Nothing known; drawn as a dash.
    #[default]
    Empty,
    /// Words.
    Text(String),
    /// A number, in the unit of its column.
    Number {
        /// The number.
        value: f64,
        /// Digits after the point.
        digits: u8,
    },
}

impl Cell {
    /// A cell of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number with so many digits after the point.
    pub fn number(value: f64, digits: u8) -> Self {
        Self::Number { value, digits }
    }

    /// The characters that stand in the table.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Empty => "–".to_owned(),
            Self::Text(text) => text.clone(),
            Self::Number { value, digits } => number::fixed(*value, usize::from(*digits)),
        }
    }
}

/// What a row says about its subject; shown by a mark and a tint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowClass {
    /// Within its target.
    Good,
    /// Near it.
    Warn,
    /// Off it.
    Bad,
}

/// A table of the report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// What it lists, in one line.
    pub title: String,
    /// The columns, left to right.
    pub columns: Vec<Column>,
    /// The rows, one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// One class per row, or empty when no row has one.
    pub row_classes: Vec<Option<RowClass>>,
    /// Sentences below the table.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table.
    pub fn new(title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            title: title.into(),
            columns,
            ..Self::default()
        }
    }

    /// Adds a row, with a class or without.
    pub fn push(&mut self, cells: Vec<Cell>, class: Option<RowClass>) {
        self.row_classes.resize(self.rows.len(), None);
        self.rows.push(cells);
        self.row_classes.push(class);
    }

    /// Whether rows, columns and classes fit each other and every number can be printed.
    pub(crate) fn check(&self) -> Result<(), ReportError> {
        if !self.row_classes.is_empty() && self.row_classes.len() != self.rows.len() {
            return Err(ReportError::RowClasses {
                table: self.title.clone(),
                classes: self.row_classes.len(),
                rows: self.rows.len(),
            });
        }
        for (index, row) in self.rows.iter().enumerate() {
            if row.len() != self.columns.len() {
                return Err(ReportError::RowLength {
                    table: self.title.clone(),
                    row: index + 1,
                    cells: row.len(),
                    columns: self.columns.len(),
                });
            }
            for (cell, column) in row.iter().zip(&self.columns) {
                if let Cell::Number { value, .. } = cell
                    && !value.is_finite()
                {
                    return Err(ReportError::BadCell {
                        table: self.title.clone(),
                        row: index + 1,
                        column: column.name.clone(),
                        value: *value,
                    });
                }
            }
        }
        Ok(())
    }
}
