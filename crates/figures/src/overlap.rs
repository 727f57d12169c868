//! Lines that lie on each other.

use crate::render::Row;

/// Lines nearer than this are one line to the eye, as a share of the value.
const NEAR: f64 = 0.03;

/// Makes one row of those that are the same everywhere, with the names of all.
pub(crate) fn merge(rows: &mut Vec<Row>) {
    let mut merged: Vec<Row> = Vec::new();
    for row in rows.drain(..) {
        let same = merged.iter_mut().find(|known| {
            known.backend == row.backend
                && known.values == row.values
                && known.spans == row.spans
                && known.never == row.never
                && known.published == row.published
        });
        match same {
            Some(known) => {
                known.name = format!("{} = {}", known.name, row.name);
                known.guess |= row.guess;
            }
            None => merged.push(row),
        }
    }
    *rows = merged;
}

/// Says of each row that lies under a later one from end to end where it is.
pub(crate) fn hidden(rows: &[Row]) -> Vec<String> {
    let sentence = |(index, row): (usize, &Row)| {
        let above = &rows[index + 1..];
        let found = above
            .iter()
            .find_map(|over| Some((over, apart(row, over)?)));
        found.map(|(over, apart)| {
            format!(
                "{} lies under {}: they are at most {:.1} % apart.",
                row.name,
                over.name,
                100.0 * apart
            )
        })
    };
    rows.iter().enumerate().filter_map(sentence).collect()
}

/// How far two rows are apart at most, if that is too little to be seen.
fn apart(row: &Row, over: &Row) -> Option<f64> {
    let mut most = 0.0f64;
    let mut points = 0;
    for (a, b) in row.values.iter().zip(&over.values) {
        let Some(a) = a else { continue };
        most = most.max((a / (*b)? - 1.0).abs());
        points += 1;
    }
    (points > 0 && most <= NEAR).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Backend;

    fn row(name: &str, values: &[f64]) -> Row {
        Row {
            name: name.to_owned(),
            backend: Backend::Model,
            values: values.iter().map(|v| Some(*v)).collect(),
            spans: Vec::new(),
            published: Vec::new(),
            never: Vec::new(),
            guess: false,
            family: 0,
        }
    }

    #[test]
    fn equal_lines_are_drawn_once_under_both_names() {
        let mut rows = vec![
            row("a", &[1.0, 2.0]),
            row("b", &[1.0, 3.0]),
            row("c", &[1.0, 2.0]),
        ];
        rows[2].guess = true;
        merge(&mut rows);
        let names: Vec<&str> = rows.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["a = c", "b"]);
        assert!(rows[0].guess && !rows[1].guess);
    }

    #[test]
    fn a_line_hidden_under_another_is_named() {
        let rows = [
            row("a", &[100.0, 200.0]),
            row("b", &[102.0, 200.0]),
            row("c", &[102.0, 300.0]),
        ];
        assert_eq!(
            hidden(&rows),
            ["a lies under b: they are at most 2.0 % apart."]
        );
    }
}
