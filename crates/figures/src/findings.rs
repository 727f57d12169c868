//! What a figure shows, in sentences whose numbers are computed from its results.

mod modes;
mod more;
mod sizes;
mod steps;
mod vhost;

use dray_experiment::{Figure, Point, Value, format_bytes};

pub(crate) use modes::engine_anomaly;
pub(crate) use more::TWO_MIB_US;

use crate::Metric;
use crate::task::{Backend, reduced};

const THROUGHPUT: &str = Metric::Throughput.name();

/// One or two sentences on a figure; none where its results lack what they speak of.
pub(crate) fn of(figure: &Figure) -> Vec<String> {
    let sentences = match figure.experiment.id.as_str() {
        "fig2" if figure.experiment.values("wait").len() > 1 => {
            vec![modes::mode_difference(figure)]
        }
        "fig2" => sizes::improvement(figure),
        "fig3" => sizes::batches(figure),
        "fig4" => sizes::queues(figure),
        "fig5" => steps::breakdown(figure),
        "fig6a" | "fig6b" => steps::places(figure),
        "fig7" => modes::engines(figure),
        "modes" => modes::modes(figure),
        "enqcmd" => more::cores(figure),
        "devices" => more::devices(figure),
        "orders" => more::orders(figure),
        "in-kernel" => more::in_kernel(figure),
        "channels" => more::channels(figure),
        "pages" => more::lists(figure),
        "overtaking" => more::overtaking(figure),
        "waits" => more::waits(figure),
        "vhost" => vhost::switch(figure),
        _ => Vec::new(),
    };
    sentences.into_iter().flatten().collect()
}

fn value(figure: &Figure, point: &Point) -> Option<f64> {
    figure
        .outcome(&reduced(point, Backend::Model))?
        .metric(THROUGHPUT)
}

fn integers(figure: &Figure, name: &str) -> Vec<u64> {
    figure
        .experiment
        .values(name)
        .iter()
        .filter_map(Value::integer)
        .collect()
}

fn size_text(bytes: u64) -> String {
    let label = format_bytes(bytes);
    match label.ends_with(|c: char| c.is_ascii_digit()) {
        true => format!("{label} B"),
        false => format!(
            "{} {}iB",
            &label[..label.len() - 1],
            &label[label.len() - 1..]
        ),
    }
}

fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value.abs() {
        v if v < 0.05 => "0 %".to_owned(),
        v if v < 10.0 => format!("{value:.1} %"),
        _ => format!("{value:.0} %"),
    }
}
