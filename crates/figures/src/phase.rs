//! What a run does after its points, in steps that are followed and may be stopped like them.

use std::path::Path;

use dray_experiment::Progress;
use rayon::prelude::*;

use crate::FiguresError;

/// The phases of a run.
#[derive(Clone, Copy)]
pub(crate) struct Phases<'a> {
    pub(crate) progress: &'a dyn Progress,
    /// Output directory, named where a phase is stopped.
    pub(crate) out: &'a Path,
}

impl Phases<'_> {
    /// Runs a phase: a step for each item, on the threads of the current pool. Results are in the order of the items.
    ///
    /// # Errors
    /// The first error of any step, and [`FiguresError::Interrupted`].
    pub(crate) fn each<T: Send, R: Send>(
        self,
        name: &str,
        items: Vec<T>,
        step: impl Fn(T) -> Result<R, FiguresError> + Sync,
    ) -> Result<Vec<R>, FiguresError> {
        self.progress.phase(name, items.len());
        let step = |item| {
            self.go_on()?;
            let result = step(item)?;
            self.progress.done();
            Ok(result)
        };
        items.into_par_iter().map(step).collect()
    }

    /// # Errors
    /// [`FiguresError::Interrupted`] once the run is to stop.
    pub(crate) fn go_on(self) -> Result<(), FiguresError> {
        match self.progress.stopped() {
            true => Err(FiguresError::Interrupted {
                out: self.out.to_owned(),
            }),
            false => Ok(()),
        }
    }
}
