//! What can be wrong with a chart, a table or a report.

/// Why a report or one of its parts cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// An id that cannot name a file, an anchor and an SVG element at once.
    #[error(
        "id {id:?}: an id starts with a letter or digit and holds only letters, digits, '.', '-' and '_' (ASCII)"
    )]
    BadId {
        /// The id as given.
        id: String,
    },
    /// Two charts or two sections with the same id.
    #[error("id {id:?} names two {what}: each needs its own")]
    DuplicateId {
        /// The id as given.
        id: String,
        /// `"charts"` or `"sections"`.
        what: &'static str,
    },
    /// A chart in which nothing would be drawn.
    #[error("chart {chart}: nothing to draw, it has no {missing}")]
    EmptyChart {
        /// Id of the chart.
        chart: String,
        /// What it lacks: `"categories"`, `"series"` or `"values"`.
        missing: &'static str,
    },
    /// A series with more or fewer values than there are categories.
    #[error(
        "chart {chart}, series {series:?}: {values} values for {categories} categories (use None for a missing value)"
    )]
    SeriesLength {
        /// Id of the chart.
        chart: String,
        /// Name of the series.
        series: String,
        /// How many values the series has.
        values: usize,
        /// How many categories the chart has.
        categories: usize,
    },
    /// A series of a picture for print whose name was given no look.
    #[error("picture {chart}, series {series:?}: no look was given to this name")]
    NoLook {
        /// Id of the picture.
        chart: String,
        /// Name of the series.
        series: String,
    },
    /// More or fewer group labels than there are categories.
    #[error(
        "chart {chart}: {labels} group labels for {categories} categories (one per category, equal neighbours are drawn as one)"
    )]
    GroupLabels {
        /// Id of the chart.
        chart: String,
        /// How many group labels were given.
        labels: usize,
        /// How many categories the chart has.
        categories: usize,
    },
    /// More or fewer places along the axis than there are categories.
    #[error("chart {chart}: {values} places along the axis for {categories} categories")]
    XValues {
        /// Id of the chart.
        chart: String,
        /// How many places were given.
        values: usize,
        /// How many categories the chart has.
        categories: usize,
    },
    /// A value that is infinite, not a number, or too large for an axis.
    #[error(
        "chart {chart}, series {series:?}, category {category:?}: {value} cannot be drawn (finite and below 1e300 is needed)"
    )]
    BadValue {
        /// Id of the chart.
        chart: String,
        /// Name of the series, or the label of the reference line.
        series: String,
        /// The category, or `"reference line"`.
        category: String,
        /// The value as given.
        value: f64,
    },
    /// A value that has no place on a logarithmic axis.
    #[error(
        "chart {chart}, series {series:?}, category {category:?}: {value} on a logarithmic axis, which needs values above 0"
    )]
    NotPositive {
        /// Id of the chart.
        chart: String,
        /// Name of the series, or the label of the reference line.
        series: String,
        /// The category, or `"reference line"`.
        category: String,
        /// The value as given.
        value: f64,
    },
    /// A stacked series on a logarithmic axis: heights would not add up.
    #[error(
        "chart {chart}, series {series:?}: stacked bars on a logarithmic axis do not add up; use a linear axis"
    )]
    StackOnLog {
        /// Id of the chart.
        chart: String,
        /// Name of the series.
        series: String,
    },
    /// A negative part of a stack.
    #[error("chart {chart}, series {series:?}, category {category:?}: {value} cannot be stacked")]
    NegativeStack {
        /// Id of the chart.
        chart: String,
        /// Name of the series.
        series: String,
        /// The category.
        category: String,
        /// The value as given.
        value: f64,
    },
    /// A series on the right axis of a chart that has no label for it.
    #[error(
        "chart {chart}, series {series:?}: it belongs to the right axis, but y2_label is missing"
    )]
    NoRightAxis {
        /// Id of the chart.
        chart: String,
        /// Name of the series.
        series: String,
    },
    /// A table row with more or fewer cells than there are columns.
    #[error("table {table:?}, row {row}: {cells} cells for {columns} columns")]
    RowLength {
        /// Title of the table.
        table: String,
        /// Row, counted from 1.
        row: usize,
        /// How many cells it has.
        cells: usize,
        /// How many columns the table has.
        columns: usize,
    },
    /// Row classes that do not match the rows.
    #[error("table {table:?}: {classes} row classes for {rows} rows (give one per row, or none)")]
    RowClasses {
        /// Title of the table.
        table: String,
        /// How many classes were given.
        classes: usize,
        /// How many rows the table has.
        rows: usize,
    },
    /// A number in a table that is infinite or not a number.
    #[error(
        "table {table:?}, row {row}, column {column:?}: {value} is no number to print (use Cell::Empty)"
    )]
    BadCell {
        /// Title of the table.
        table: String,
        /// Row, counted from 1.
        row: usize,
        /// Name of the column.
        column: String,
        /// The value as given.
        value: f64,
    },
    /// The page template failed; its parts are fixed, so this is a defect of dray.
    #[error("the page template failed")]
    Template(#[from] minijinja::Error),
}
