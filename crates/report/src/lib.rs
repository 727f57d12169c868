//! Charts as SVG, tables, and the HTML report.
