//! A sum that keeps what rounding takes from it.

/// Neumaier's compensated sum: the error does not grow with the number of terms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    pub(crate) fn new(value: f64) -> Self {
        Self {
            high: value,
            low: 0.0,
        }
    }

    pub(crate) fn add(&mut self, term: f64) {
        let sum = self.high + term;
        self.low += if self.high.abs() >= term.abs() {
            (self.high - sum) + term
        } else {
            (term - sum) + self.high
        };
        self.high = sum;
    }

    pub(crate) fn value(self) -> f64 {
        self.high + self.low
    }
}

#[cfg(test)]
mod tests {
    use super::Sum;

    #[test]
    fn small_terms_are_not_lost() {
        let mut sum = Sum::new(1e16);
        for _ in 0..1000 {
            sum.add(1.0);
        }
        sum.add(-1e16);
        assert_eq!(sum.value(), 1000.0);
    }
}
