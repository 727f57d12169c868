//! Flows over machines, beside what has been measured.

mod measured;
