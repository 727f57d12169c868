//! The picture of a comparison.

use dray_report::{Chart, Provenance, ReportError, Series, SeriesKind};

use super::{Comparison, ResultFile};

/// Cases drawn at most: the most changed.
const MOST: usize = 40;

/// Ratios as bars around 1, the most changed first.
///
/// # Errors
/// Ratios that no axis can show.
pub fn picture(
    comparison: &Comparison,
    new: &ResultFile,
    names: (&str, &str),
) -> Result<String, ReportError> {
    let drawn: Vec<_> = comparison.ratios.iter().take(MOST).collect();
    let labels = short(&drawn.iter().map(|r| r.name.as_str()).collect::<Vec<_>>());
    let provenance = match new.time {
        Some(dray_experiment::Provenance::Modelled) => Provenance::Modelled,
        Some(dray_experiment::Provenance::Measured) | None => Provenance::Measured,
    };
    let ratios = drawn.iter().map(|r| Some(r.ratio)).collect();
    let mut notes = Vec::new();
    if comparison.ratios.len() > MOST {
        let all = comparison.ratios.len();
        notes.push(format!("The {MOST} most changed of {all} cases."));
    }
    notes.extend(comparison.caution().map(|text| format!("Caution: {text}.")));
    let chart = Chart {
        id: "compare".to_owned(),
        title: format!("Time of {} over {}", names.1, names.0),
        x_label: "Case".to_owned(),
        y_label: "Ratio of medians".to_owned(),
        categories: labels,
        reference_line: Some((1.0, "no change".to_owned())),
        series: vec![Series::new("ratio", provenance, SeriesKind::Bars, ratios)],
        notes,
        footer: format!("dray {}", env!("CARGO_PKG_VERSION")),
        ..Chart::default()
    };
    chart.to_svg()
}

/// Names without the parts that all have in common.
fn short(names: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = names.iter().map(|n| n.split('/').collect()).collect();
    let common = |part: &str| parts.iter().all(|other| other.contains(&part));
    let shortened = |own: &Vec<&str>| {
        let kept: Vec<&str> = own.iter().copied().filter(|part| !common(part)).collect();
        kept.join("/")
    };
    names
        .iter()
        .zip(&parts)
        .map(|(name, own)| match shortened(own) {
            text if text.is_empty() => own.first().unwrap_or(name).to_string(),
            text => text,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_only_the_parts_that_differ() {
        let names = ["move/api:c/size:1024/x", "move/api:c/size:2048/x"];
        assert_eq!(short(&names), ["size:1024", "size:2048"]);
        assert_eq!(short(&names[..1]), ["move"]);
    }
}
