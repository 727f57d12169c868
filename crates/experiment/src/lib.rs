//! Experiments as data: sweeps, results, resume.
