//! The results of a figure as programs read them: CSV and JSON with the guesses behind them.

use dray_experiment::{Figure, Header, Outcome};

use crate::guess::GuessIndex;
use crate::request::{GENERATOR, Request};

/// What holds for all results of a figure.
pub fn header(request: &Request, guesses: &GuessIndex, figure: &Figure) -> Header {
    let stated = figure.experiment.guess.iter().cloned();
    let guess: Vec<String> = stated
        .chain(guesses.lines(&request.platform, figure))
        .collect();
    Header {
        experiment: figure.experiment.id.clone(),
        platform: request.platform.name.clone(),
        profile: request.profile_name.clone(),
        generator: GENERATOR.to_owned(),
        guess: (!guess.is_empty()).then(|| guess.join("; ")),
    }
}

/// The outcomes of a figure as CSV has them: with a column for the guesses behind each.
pub fn with_guesses(request: &Request, guesses: &GuessIndex, figure: &Figure) -> Vec<Outcome> {
    let outcomes = figure.outcomes.iter();
    let named = outcomes.map(|outcome| {
        let behind = guesses.of_outcome(&request.platform, figure, outcome);
        let names: Vec<&str> = behind.iter().map(|p| p.name).collect();
        Outcome {
            point: outcome.point.with("guesses", names.join(" ")),
            ..outcome.clone()
        }
    });
    named.collect()
}
