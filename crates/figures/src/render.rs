//! The charts of a figure.

mod stacked;

use dray_experiment::{
    AxisUnit, BACKEND, Experiment, Figure, Filter, Overlay, Panel, PanelKind, Point, Value,
};
use dray_platform::PlatformFile;
use dray_report::{Chart, ChartSize, Provenance, Series, SeriesKind};

use crate::findings::TWO_MIB_US;
use crate::guess::GuessIndex;
use crate::hues::Hues;
use crate::overlap;
use crate::published::Published;
use crate::task::{Backend, reduced};
use crate::{Ends, Metric, label};

/// What all charts of a report share.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    /// The machine, for its guesses.
    pub(crate) platform: &'a PlatformFile,
    /// The guesses behind the results.
    pub(crate) guesses: &'a GuessIndex,
    /// The figures at the ends of the parameters' ranges.
    pub(crate) ends: &'a Ends,
    /// Numbers that were published for the very configuration of a point.
    pub(crate) published: &'a Published,
    /// Platform, profile and version.
    pub(crate) footer: &'a str,
}

/// One series before it is drawn.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) backend: Backend,
    /// Points along the axis, with their value.
    pub(crate) values: Vec<Option<f64>>,
    /// Their 90 % intervals.
    pub(crate) spans: Vec<Option<(f64, f64)>>,
    pub(crate) published: Vec<Option<f64>>,
    /// Columns where there is no size from which the device wins.
    pub(crate) never: Vec<usize>,
    pub(crate) guess: bool,
    pub(crate) family: u8,
}

/// The charts of a figure; panels in which no point is left are left out.
pub(crate) fn charts(figure: &Figure, context: &Context<'_>) -> Vec<Chart> {
    let panels = figure.experiment.panels.iter();
    let charts = panels.map(|panel| {
        Drawing {
            figure,
            context,
            panel,
        }
        .chart()
    });
    charts
        .filter(|chart| !chart.series.is_empty() && !chart.categories.is_empty())
        .collect()
}

/// The names that the modelled series of an experiment have, by picture in print: whichever of them a
/// run draws, each keeps its look.
pub(crate) fn names(experiment: &Experiment) -> Vec<Vec<String>> {
    let points = experiment.points();
    let series = |names: &[String], filter: &Filter| {
        let backends: Vec<Backend> = [Backend::Model, Backend::Cpu]
            .into_iter()
            .filter(|backend| points.iter().any(|p| matches(filter, p, *backend)))
            .collect();
        let beside_core = backends.contains(&Backend::Cpu);
        let mut found: Vec<String> = Vec::new();
        for backend in backends {
            for point in points.iter().filter(|p| matches(filter, p, backend)) {
                let name = label::series(backend, names, &reduced(point, backend), beside_core);
                if !found.contains(&name) {
                    found.push(name);
                }
            }
        }
        found
    };
    let panels = experiment.panels.iter();
    let of_panel = |panel: &Panel| -> Vec<Vec<String>> {
        let own = match panel.kind {
            PanelKind::Stacked => {
                let parts = panel
                    .y
                    .iter()
                    .map(|metric| label::metric(metric).to_owned());
                parts.chain(["software".to_owned()]).collect()
            }
            PanelKind::Bars | PanelKind::Lines => series(&panel.series, &panel.filter),
        };
        let overlays = panel.overlays.iter();
        let overlays = overlays.map(|overlay| series(&overlay.series, &overlay.filter));
        [own].into_iter().chain(overlays).collect()
    };
    panels.flat_map(of_panel).collect()
}

struct Drawing<'a> {
    figure: &'a Figure,
    context: &'a Context<'a>,
    panel: &'a Panel,
}

impl Drawing<'_> {
    /// What stands below the chart. A switch transfers packets.
    fn x_label(&self) -> String {
        let switch = self.figure.experiment.values("kind") == [Value::Text("vhost".to_owned())];
        match self.panel.x.as_str() {
            "size" if switch => "Packet size (bytes)".to_owned(),
            "batch" if switch => "Packets of a burst".to_owned(),
            x => label::axis(x),
        }
    }

    fn chart(&self) -> Chart {
        let panel = self.panel;
        let mut chart = Chart {
            id: panel.id.clone(),
            title: panel.title.clone(),
            x_label: self.x_label(),
            y_label: panel.y_label.clone(),
            log_y: panel.log_y,
            footer: self.footer(),
            size: match panel.half {
                true => ChartSize::Half,
                false => ChartSize::Full,
            },
            ..Chart::default()
        };
        let xs = self.xs();
        match panel.kind {
            PanelKind::Stacked => self.stack(&xs, &mut chart),
            PanelKind::Bars | PanelKind::Lines => {
                chart.categories = xs.iter().map(|x| label::category(&panel.x, x)).collect();
                let kind = match panel.kind {
                    PanelKind::Lines => SeriesKind::Line,
                    _ => SeriesKind::Bars,
                };
                let mut rows =
                    self.rows(&panel.series, &panel.filter, &xs, &panel.y[0], panel.y_unit);
                if panel.kind == PanelKind::Lines {
                    chart.x_values = to_scale(&panel.x, &xs);
                    overlap::merge(&mut rows);
                    chart.notes.extend(overlap::hidden(&rows));
                }
                if rows.iter().any(|row| !row.never.is_empty()) {
                    chart.notes.push(NEVER.to_owned());
                }
                rows.into_iter().for_each(|row| add(&mut chart, row, kind));
                if !panel.improvement_over.is_empty() && !chart.series.is_empty() {
                    let even = (1.0, "1: as fast as one core".to_owned());
                    chart.reference_line = match panel.y_unit {
                        AxisUnit::Excess => Some((0.0, "0: as fast as one core".to_owned())),
                        _ => Some(even),
                    };
                }
                for overlay in &panel.overlays {
                    self.overlay(overlay, &xs, &mut chart);
                }
            }
        }
        if chart
            .series
            .iter()
            .all(|s| s.values.iter().all(Option::is_none))
        {
            chart.series.clear();
        }
        if self.figure.experiment.id == "channels" && !chart.series.is_empty() {
            self.marks(&mut chart);
        }
        chart
    }

    /// Two published times of one copy whose configuration is not known: lines across the chart.
    fn marks(&self, chart: &mut Chart) {
        for (family, us) in [(2, TWO_MIB_US.0), (3, TWO_MIB_US.1)] {
            let name = format!("2 MiB in {us} µs, cause not known");
            let values = vec![Some(us); chart.categories.len()];
            let line = Series::new(name, Provenance::Published, SeriesKind::Line, values);
            chart.series.push(line.family(family));
        }
    }

    /// The report's footer, and what this chart changes of the profile.
    fn footer(&self) -> String {
        let changes = ["submit", "engines", "wq_size", "read_buffers", "devices"];
        let fixed = self.figure.experiment.fixed.iter();
        let changed: Vec<String> = fixed
            .filter(|(name, _)| changes.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        match changed.is_empty() {
            true => self.context.footer.to_owned(),
            false => format!("{} · changed: {}", self.context.footer, changed.join(" ")),
        }
    }

    /// Values along the axis that some point drawn has.
    fn xs(&self) -> Vec<Value> {
        let points = self.figure.experiment.points();
        let drawn = |value: &Value| {
            self.backends().iter().any(|backend| {
                points.iter().any(|p| {
                    p.get(&self.panel.x) == Some(value) && matches(&self.panel.filter, p, *backend)
                })
            })
        };
        self.figure
            .experiment
            .values(&self.panel.x)
            .into_iter()
            .filter(drawn)
            .collect()
    }

    fn backends(&self) -> Vec<Backend> {
        let roles = &self.figure.experiment.backends;
        let applies = |backend: &Backend| roles.iter().any(|role| role == backend.role());
        Backend::ALL.into_iter().filter(applies).collect()
    }

    /// One row for each combination of the series' parameters and each backend.
    fn rows(
        &self,
        names: &[String],
        filter: &Filter,
        xs: &[Value],
        metric: &str,
        unit: AxisUnit,
    ) -> Vec<Row> {
        let points = self.figure.experiment.points();
        let mut rows: Vec<Row> = Vec::new();
        let present: Vec<Backend> = self
            .backends()
            .into_iter()
            .filter(|backend| {
                points.iter().any(|p| {
                    matches(filter, p, *backend)
                        && self.figure.outcome(&reduced(p, *backend)).is_some()
                })
            })
            .collect();
        let beside_core = present.iter().any(|b| *b != Backend::Model);
        let hues = Hues::new(&self.figure.experiment, names, beside_core);
        for backend in present {
            for point in &points {
                let Some(x) = point.get(&self.panel.x) else {
                    continue;
                };
                let Some(column) = xs.iter().position(|known| known == x) else {
                    continue;
                };
                if !matches(filter, point, backend) {
                    continue;
                }
                let run = reduced(point, backend);
                let name = label::series(backend, names, &run, beside_core);
                let known = rows
                    .iter()
                    .position(|r| r.name == name && r.backend == backend);
                let row = known.unwrap_or_else(|| {
                    rows.push(Row {
                        name,
                        backend,
                        values: vec![None; xs.len()],
                        spans: vec![None; xs.len()],
                        published: vec![None; xs.len()],
                        never: Vec::new(),
                        guess: false,
                        family: hues.of(backend, &run),
                    });
                    rows.len() - 1
                });
                let value = self.value(None, point, backend, metric);
                rows[row].values[column] = value.map(|value| unit.apply(value));
                rows[row].spans[column] = value.and_then(|value| {
                    let id = &self.figure.experiment.id;
                    let at = |end: Option<&Figure>| self.value(end, point, backend, metric);
                    let at = self
                        .context
                        .ends
                        .interval(id, value, at)
                        .filter(|_| !backend.is_measured());
                    at.map(|(low, high)| (unit.apply(low), unit.apply(high)))
                });
                if self.is_never(&run, metric) {
                    rows[row].never.push(column);
                }
                rows[row].guess |= self.guessed(point, backend, metric);
                if backend == Backend::Model && self.panel.improvement_over.is_empty() {
                    let found = Metric::named(metric)
                        .and_then(|metric| self.context.published.value(&run, metric));
                    rows[row].published[column] = found.map(|v| unit.apply(v));
                }
            }
        }
        rows.retain(|row| row.values.iter().any(Option::is_some) || !row.never.is_empty());
        rows
    }

    /// Whether a point was run and found no size.
    fn is_never(&self, run: &Point, metric: &str) -> bool {
        let outcome = self.figure.outcome(run);
        Metric::named(metric).is_some_and(Metric::is_break_even)
            && outcome.is_some_and(|o| o.metric(metric).is_none())
    }

    /// What a point gave; divided, if the panel divides. At an `end` of a parameter's range the figure there
    /// says what it gave, or, where it says nothing, that it is the same.
    fn value(
        &self,
        end: Option<&Figure>,
        point: &Point,
        backend: Backend,
        metric: &str,
    ) -> Option<f64> {
        let of = |point: &Point| {
            let there = end.and_then(|end| end.outcome(point));
            there.or_else(|| self.figure.outcome(point))?.metric(metric)
        };
        let value = of(&reduced(point, backend))?;
        let Some(base) = self.base(point, backend) else {
            return Some(value);
        };
        let below = of(&base)?;
        (below > 0.0).then(|| value / below)
    }

    /// The point that is divided by.
    fn base(&self, point: &Point, backend: Backend) -> Option<Point> {
        let whole = point.with(BACKEND, Value::Text(backend.role().to_owned()));
        let base = self.panel.baseline(&whole)?;
        let by = match base.text(BACKEND) {
            // What is measured is divided by what is measured.
            Some("cpu") if backend.is_measured() => Backend::Measured,
            Some("cpu") => Backend::Cpu,
            _ if backend == Backend::Device => Backend::Device,
            _ => Backend::Model,
        };
        Some(reduced(&base, by))
    }

    fn guessed(&self, point: &Point, backend: Backend, metric: &str) -> bool {
        let Some(metric) = Metric::named(metric).filter(|_| !backend.is_measured()) else {
            return false;
        };
        let Context {
            platform, guesses, ..
        } = self.context;
        let id = self.figure.experiment.id.as_str();
        let guessed = |point: Point| {
            !guesses.behind(platform, id, &point, metric).is_empty()
                || !guesses.of_migration(id, &point, metric).is_empty()
        };
        let own = reduced(point, backend);
        self.base(point, backend)
            .into_iter()
            .chain([own])
            .any(guessed)
    }

    /// Lines on the right axis.
    fn overlay(&self, overlay: &Overlay, xs: &[Value], chart: &mut Chart) {
        let rows = self.rows(
            &overlay.series,
            &overlay.filter,
            xs,
            &overlay.y,
            overlay.y_unit,
        );
        let what = overlay
            .y_label
            .split(" (")
            .next()
            .unwrap_or_default()
            .to_lowercase();
        for mut row in rows {
            row.name = format!("{what}, {}", row.name);
            // Colours of their own: a line is not one of the bars.
            row.family = match row.backend {
                Backend::Model => 2,
                Backend::Device => 4,
                _ => 3,
            };
            row.published = Vec::new();
            let mut line = series(&row, SeriesKind::Line).right();
            line.values = row.values;
            chart.series.push(line);
        }
        chart.y2_label = Some(overlay.y_label.clone());
    }
}

/// What marks at the upper edge mean.
const NEVER: &str = "A mark at the upper edge: at no size up to the limit of the work queue.";

/// Numbers along the axis, to be drawn to scale: all but sizes, which are read by powers of two, and
/// steps that are all of one ratio, which are a logarithmic axis as they are.
fn to_scale(parameter: &str, xs: &[Value]) -> Option<Vec<f64>> {
    if xs
        .iter()
        .any(|x| label::category(parameter, x) != x.to_string())
    {
        return None;
    }
    let numbers: Vec<u64> = xs.iter().map(Value::integer).collect::<Option<_>>()?;
    let rising = numbers.windows(2).all(|w| w[0] < w[1]);
    let geometric = numbers.windows(3).all(|w| w[1] * w[1] == w[0] * w[2]);
    (rising && !geometric).then(|| numbers.into_iter().map(|n| n as f64).collect())
}

fn matches(filter: &Filter, point: &Point, backend: Backend) -> bool {
    filter.matches(&point.with(BACKEND, Value::Text(backend.role().to_owned())))
}

fn add(chart: &mut Chart, row: Row, kind: SeriesKind) {
    chart.series.push(series(&row, kind));
    if row.published.iter().any(Option::is_some) {
        let points = row.published;
        chart.series.push(
            Series::new(row.name, Provenance::Published, SeriesKind::Points, points)
                .family(row.family),
        );
    }
}

fn series(row: &Row, kind: SeriesKind) -> Series {
    let provenance = match row.backend.is_measured() {
        true => Provenance::Measured,
        false => Provenance::Modelled,
    };
    let mut series = Series::new(row.name.as_str(), provenance, kind, row.values.clone());
    series.guess = row.guess;
    series.beyond = row.never.clone();
    if row.spans.iter().any(Option::is_some) {
        series.spans.clone_from(&row.spans);
    }
    series.family(row.family)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::VOCABULARY;

    #[test]
    fn every_parameter_has_an_axis_title() {
        for parameter in VOCABULARY.parameters() {
            assert!(!label::axis(parameter.name).is_empty());
        }
    }

    #[test]
    fn axis_values_without_a_common_step_are_drawn_to_scale() {
        let scale = |name, numbers: &[u64]| {
            let values: Vec<Value> = numbers.iter().map(|n| (*n).into()).collect();
            to_scale(name, &values)
        };
        assert_eq!(scale("count", &[8, 96, 104]), Some(vec![8.0, 96.0, 104.0]));
        assert_eq!(scale("depth", &[1, 2, 4, 8]), None);
        assert_eq!(scale("size", &[256, 1024, 2048]), None);
        assert_eq!(to_scale("wait", &["poll".into(), "pause".into()]), None);
    }
}
