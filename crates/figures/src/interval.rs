//! Between which sizes a break-even lies when parameters take the values of their ranges.

use dray_experiment::{Figure, Point};
use rayon::prelude::*;

use crate::advice::Advice;
use crate::label::operation;
use crate::model::Model;
use crate::workload::Workload;
use crate::{BreakEven, FiguresError};

/// The figure that has such sizes.
pub(crate) const FIGURE: &str = "break-even";
/// Where the comparison is made; the sizes are searched for from all of them.
const SIZE: u64 = 16 << 10;

/// A sentence for each operation of the break-even figure: one outstanding, in DRAM, as `dray advise`
/// answers for it.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn sentences(model: &Model, figures: &[Figure]) -> Result<Vec<String>, FiguresError> {
    let Some(figure) = figures.iter().find(|f| f.experiment.id == FIGURE) else {
        return Ok(Vec::new());
    };
    let operations: Vec<String> = figure
        .experiment
        .values("op")
        .iter()
        .map(ToString::to_string)
        .collect();
    operations
        .into_par_iter()
        .map(|op| {
            let point = Point::default()
                .with("op", op.as_str())
                .with("size", SIZE)
                .with("depth", 1);
            let advice = Advice::of(model, &Workload::from_point(&point)?)?;
            Ok(sentence(&op, &advice))
        })
        .collect()
}

fn sentence(op: &str, advice: &Advice) -> String {
    let size = |of: &BreakEven| match of.throughput {
        Some(bytes) => format!("{bytes} B"),
        None => "no size".to_owned(),
    };
    let op = operation(op);
    let (least, most) = &advice.within;
    let mut text = format!(
        "One {op} outstanding in DRAM pays from {} on",
        size(&advice.from)
    );
    match advice.dominant() {
        Some(effect) => {
            text += &format!(
                "; from {} to {} where the parameters take the values of their ranges, of which {} matters most",
                size(least),
                size(most),
                effect.parameter.name
            );
        }
        None => text += ", whatever the parameters' values within their ranges",
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use dray_idxd::Profile;

    #[test]
    fn the_interval_of_a_copy_names_the_parameter_that_makes_it() {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named("1e1w-d").unwrap());
        let point = Point::default()
            .with("op", "memmove")
            .with("size", SIZE)
            .with("depth", 1);
        let advice = Advice::of(&model, &Workload::from_point(&point).unwrap()).unwrap();
        let text = sentence("memmove", &advice);
        assert!(
            text.starts_with("One copy outstanding in DRAM pays from "),
            "{text}"
        );
        assert!(
            text.ends_with("of which cpu_copy_line matters most."),
            "{text}"
        );
        let sizes: Vec<u32> = text
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        assert!(sizes[1] < sizes[0] && sizes[0] < sizes[2], "{text}");
    }
}
