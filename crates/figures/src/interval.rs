//! Between which sizes a break-even lies when parameters take the values of their ranges: as a
//! sentence, a chart, CSV and JSON.

use dray_experiment::{Figure, Point, csv_table};
use dray_platform::Parameter;
use dray_report::{Chart, ChartSize, Provenance, Series, SeriesKind};
use rayon::prelude::*;
use serde::Serialize;

use crate::advice::{candidates, size_interval};
use crate::break_even::BreakEven;
use crate::label::operation;
use crate::model::Model;
use crate::phase::Phases;
use crate::sensitivity::with;
use crate::workload::Workload;
use crate::{FiguresError, measurement};

/// The figure that has such sizes.
pub(crate) const FIGURE: &str = "break-even";
/// Where the comparison is made; the sizes are searched for from all of them.
const SIZE: u64 = 16 << 10;

/// Name of the chart and of the files.
pub(crate) const ID: &str = "break-even-interval";

/// The size from which one operation outstanding in DRAM pays, as `dray advise` answers for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    /// Operation.
    pub op: String,
    /// Bytes by the parameters' values; `None`: at no size.
    pub break_even_bytes: Option<u32>,
    /// The lower end of the 90 % interval, all parameters anywhere in their ranges.
    pub least_bytes: Option<u32>,
    /// The upper end.
    pub most_bytes: Option<u32>,
    /// The parameter whose range moves the size most.
    pub dominant: Option<String>,
    /// What of that parameter is possible.
    pub dominant_range: Option<[f64; 2]>,
    /// What would have to be measured to narrow it.
    pub measure: Option<&'static str>,
}

/// The interval of each operation of the break-even figure.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn intervals(
    model: &Model,
    figures: &[Figure],
    phases: Phases<'_>,
) -> Result<Vec<Interval>, FiguresError> {
    let Some(figure) = figures.iter().find(|f| f.experiment.id == FIGURE) else {
        return Ok(Vec::new());
    };
    let operations: Vec<String> = figure
        .experiment
        .values("op")
        .iter()
        .map(ToString::to_string)
        .collect();
    phases.each("break-even intervals", operations, |op| {
        Interval::of(model, op)
    })
}

fn workload(op: &str) -> Result<Workload, FiguresError> {
    let point = Point::default()
        .with("op", op)
        .with("size", SIZE)
        .with("depth", 1);
    Workload::from_point(&point)
}

/// A size that there is not is larger than all others.
fn size(bytes: Option<u32>) -> u32 {
    bytes.unwrap_or(u32::MAX)
}

fn widened((least, most): (u32, u32), (low, high): (u32, u32)) -> (u32, u32) {
    (least.min(low), most.max(high))
}

/// The least and the most size by the parameter's value, at which it is `from`, and by the ends of its range.
fn within(
    model: &Model,
    w: &Workload,
    parameter: &Parameter,
    from: u32,
) -> Result<(u32, u32), FiguresError> {
    let mut within = (from, from);
    for end in parameter.range {
        if end != parameter.value {
            let there = with(model, parameter, end)?;
            let found = size(BreakEven::throughput_near(&there, w)?);
            within = widened(within, (found, found));
        }
    }
    Ok(within)
}

impl Interval {
    /// The interval of an operation: what [`Advice::of`] says of the size, and nothing else.
    fn of(model: &Model, op: String) -> Result<Interval, FiguresError> {
        let w = workload(&op)?;
        let from = BreakEven::throughput_of(model, &w)?;
        let candidates = candidates(model, &w)?;
        let within: Vec<(u32, u32)> = candidates
            .par_iter()
            .map(|parameter| within(model, &w, parameter, size(from)))
            .collect::<Result<_, FiguresError>>()?;
        let bytes = |size: u32| Some(size).filter(|size| *size < u32::MAX);
        let ends = within
            .iter()
            .map(|(least, most)| [bytes(*least), bytes(*most)]);
        let (least, most) = size_interval(from, ends);
        let width = |(least, most): (u32, u32)| most - least;
        // Of those that move it equally far the first.
        let dominant = candidates
            .iter()
            .zip(&within)
            .rev()
            .max_by_key(|(_, ends)| width(**ends))
            .filter(|(_, ends)| width(**ends) > 0)
            .map(|(parameter, _)| parameter);
        Ok(Interval {
            op,
            break_even_bytes: from,
            least_bytes: least,
            most_bytes: most,
            dominant: dominant.map(|p| p.name.to_owned()),
            dominant_range: dominant.map(|p| p.range),
            measure: dominant.and_then(|p| measurement(p.name)),
        })
    }

    /// In words.
    pub(crate) fn sentence(&self) -> String {
        let size = |bytes: Option<u32>| match bytes {
            Some(bytes) => format!("{bytes} B"),
            None => "no size".to_owned(),
        };
        let op = operation(&self.op);
        let mut text = format!(
            "One {op} outstanding in DRAM pays from {} on",
            size(self.break_even_bytes)
        );
        match &self.dominant {
            Some(name) => {
                text += &format!(
                    "; 90 % interval {} to {}, for which the range of {name} matters most",
                    size(self.least_bytes),
                    size(self.most_bytes),
                );
            }
            None => text += ", whatever the parameters' values within their ranges",
        }
        text + "."
    }
}

/// The intervals as CSV.
pub(crate) fn to_csv(intervals: &[Interval]) -> String {
    let bytes = |size: Option<u32>| size.map_or(String::new(), |size| size.to_string());
    let rows = intervals.iter().map(|i| {
        let end = |index: usize| {
            i.dominant_range
                .map_or(String::new(), |range| range[index].to_string())
        };
        vec![
            i.op.clone(),
            bytes(i.break_even_bytes),
            bytes(i.least_bytes),
            bytes(i.most_bytes),
            i.dominant.clone().unwrap_or_default(),
            end(0),
            end(1),
            i.measure.unwrap_or_default().to_owned(),
        ]
    });
    csv_table(
        &[
            "op",
            "break_even_bytes",
            "least_bytes",
            "most_bytes",
            "dominant",
            "dominant_least",
            "dominant_most",
            "measure",
        ],
        rows,
    )
}

/// The intervals as a chart; `None` if there are none.
pub(crate) fn chart(intervals: &[Interval], footer: &str) -> Option<Chart> {
    if intervals.is_empty() {
        return None;
    }
    let series = |name: &str, of: fn(&Interval) -> Option<u32>| {
        let values = intervals.iter().map(|i| of(i).map(f64::from)).collect();
        let mut series = Series::new(name, Provenance::Modelled, SeriesKind::Bars, values);
        let never = intervals
            .iter()
            .enumerate()
            .filter(|(_, i)| of(i).is_none());
        series.beyond = never.map(|(index, _)| index).collect();
        series
    };
    let dominant = |i: &Interval| {
        let name = i.dominant.as_deref().unwrap_or("no parameter");
        format!("{} ({name})", operation(&i.op))
    };
    Some(Chart {
        id: ID.to_owned(),
        title: "Between which sizes the break-even lies (one outstanding, DRAM)".to_owned(),
        x_label: "Operation (the parameter whose range moves the size most)".to_owned(),
        y_label: "Break-even size (bytes)".to_owned(),
        log_y: true,
        categories: intervals.iter().map(dominant).collect(),
        series: vec![
            series("lower end of the 90 % interval", |i| i.least_bytes),
            series("by the parameters' values", |i| i.break_even_bytes),
            series("upper end of the 90 % interval", |i| i.most_bytes),
        ],
        notes: vec![
            format!(
                "The parameter that matters most: {}.",
                intervals.iter().map(dominant).collect::<Vec<_>>().join(", ")
            ),
            "Each parameter is as likely anywhere in its range, independent of the others. A mark at the upper edge: at no size up to the limit of the work queue.".to_owned(),
        ],
        footer: footer.to_owned(),
        size: ChartSize::Full,
        ..Chart::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Advice;
    use dray_idxd::Profile;

    #[test]
    fn the_interval_of_a_copy_names_the_dominant_parameter() {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named("1e1w-d").unwrap());
        let interval = Interval::of(&model, "memmove".to_owned()).unwrap();
        // The same as is advised.
        let advice = Advice::of(&model, &workload("memmove").unwrap()).unwrap();
        let (least, most) = advice.interval;
        assert_eq!(interval.break_even_bytes, advice.from.throughput);
        assert_eq!(interval.least_bytes, least.throughput);
        assert_eq!(interval.most_bytes, most.throughput);
        let dominant = advice.dominant().map(|effect| effect.parameter.name);
        assert_eq!(interval.dominant.as_deref(), dominant);
        let text = interval.sentence();
        assert!(
            text.starts_with("One copy outstanding in DRAM pays from "),
            "{text}"
        );
        assert!(
            text.ends_with("for which the range of cpu_copy_line matters most."),
            "{text}"
        );
        let sizes: Vec<u32> = text
            .split([' ', ','])
            .filter_map(|word| word.parse().ok())
            .filter(|size| *size != 90)
            .collect();
        assert!(sizes[1] < sizes[0] && sizes[0] < sizes[2], "{text}");
        let csv = to_csv(std::slice::from_ref(&interval));
        let row = format!(
            "memmove,{},{},{},cpu_copy_line,4.5,9,",
            sizes[0], sizes[1], sizes[2]
        );
        assert!(csv.lines().nth(1).unwrap().starts_with(&row), "{csv}");
        let json = serde_json::to_value(&interval).unwrap();
        assert_eq!(json["dominant"], "cpu_copy_line");
        assert_eq!(json["most_bytes"], sizes[2]);
        let chart = chart(&[interval], "").unwrap();
        assert_eq!(chart.categories, ["copy (cpu_copy_line)"]);
        assert!(
            chart
                .to_svg()
                .unwrap()
                .contains("upper end of the 90 % interval")
        );
        assert_eq!(super::chart(&[], ""), None);
    }
}
