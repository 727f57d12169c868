//! Symmetric positive definite matrices, small ones.

/// A square matrix.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    size: usize,
    values: Vec<f64>,
}

impl Matrix {
    pub(super) fn identity(size: usize) -> Matrix {
        let mut matrix = Matrix {
            size,
            values: vec![0.0; size * size],
        };
        for n in 0..size {
            matrix.add(n, n, 1.0);
        }
        matrix
    }

    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.size + column]
    }

    pub(super) fn add(&mut self, row: usize, column: usize, value: f64) {
        self.values[row * self.size + column] += value;
    }

    /// The lower triangle whose product with its transpose this is. No pivots: what has an identity in it has none
    /// that is 0.
    pub(super) fn triangle(&self) -> Matrix {
        let mut lower = Matrix {
            size: self.size,
            values: vec![0.0; self.values.len()],
        };
        for row in 0..self.size {
            for column in 0..=row {
                let known: f64 = (0..column)
                    .map(|k| lower.at(row, k) * lower.at(column, k))
                    .sum();
                let rest = self.at(row, column) - known;
                let value = match row == column {
                    true => rest.max(f64::MIN_POSITIVE).sqrt(),
                    false => rest / lower.at(column, column),
                };
                lower.add(row, column, value);
            }
        }
        lower
    }

    pub(super) fn scaled(mut self, by: f64) -> Matrix {
        for value in &mut self.values {
            *value *= by;
        }
        self
    }

    /// The product with a vector.
    pub(super) fn times(&self, vector: &[f64]) -> Vec<f64> {
        let rows = self.values.chunks(self.size.max(1));
        let row = |row: &[f64]| row.iter().zip(vector).map(|(a, b)| a * b).sum();
        rows.map(row).collect()
    }

    /// The vector whose product with this is `right`.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let lower = self.triangle();
        let mut found = right.to_vec();
        for row in 0..self.size {
            let known: f64 = (0..row).map(|k| lower.at(row, k) * found[k]).sum();
            found[row] = (found[row] - known) / lower.at(row, row);
        }
        for row in (0..self.size).rev() {
            let known: f64 = (row + 1..self.size)
                .map(|k| lower.at(k, row) * found[k])
                .sum();
            found[row] = (found[row] - known) / lower.at(row, row);
        }
        found
    }

    pub(super) fn inverse(&self) -> Matrix {
        let mut inverse = Matrix {
            size: self.size,
            values: vec![0.0; self.values.len()],
        };
        for column in 0..self.size {
            let mut unit = vec![0.0; self.size];
            unit[column] = 1.0;
            for (row, value) in self.solve(&unit).into_iter().enumerate() {
                inverse.add(row, column, value);
            }
        }
        inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_the_identity() {
        let mut matrix = Matrix::identity(3);
        for (row, column, value) in [
            (0, 0, 3.0),
            (0, 1, 1.0),
            (1, 0, 1.0),
            (2, 2, 0.5),
            (1, 2, -0.5),
            (2, 1, -0.5),
        ] {
            matrix.add(row, column, value);
        }
        let inverse = matrix.inverse();
        for row in 0..3 {
            for column in 0..3 {
                let product: f64 = (0..3)
                    .map(|k| matrix.at(row, k) * inverse.at(k, column))
                    .sum();
                let expected = f64::from(u8::from(row == column));
                assert!(
                    (product - expected).abs() < 1e-12,
                    "{row} {column}: {product}"
                );
            }
        }
        let found = matrix.solve(&[1.0, 2.0, 3.0]);
        let back: f64 = (0..3).map(|k| matrix.at(1, k) * found[k]).sum();
        assert!((back - 2.0).abs() < 1e-12);
    }
}
