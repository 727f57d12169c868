//! Programs under `dray run`.

use super::Row;

pub(super) const ROWS: &[Row] = &[];
