//! What of an experiment is drawn, and how.

use dray_suggest::suggest;

use crate::error::Result;
use crate::fields::Fields;
use crate::location::Location;
use crate::point::Point;
use crate::value::Value;
use crate::vocabulary::{BACKEND, Vocabulary};

/// How a panel draws its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelKind {
    /// A group of bars for each x, a bar for each series.
    Bars,
    /// A line for each series.
    Lines,
    /// A bar for each x, with several metrics on each other.
    Stacked,
}

/// The unit of an axis, where it is not that of the metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AxisUnit {
    /// That of the metric.
    #[default]
    Metric,
    /// Microseconds, of a metric in nanoseconds.
    Micro,
    /// How much above 1: a ratio less 1.
    Excess,
    /// Percent of all parts of a stack together.
    Share,
}

impl AxisUnit {
    /// Words of `y_unit` in files.
    const WORDS: [(&str, AxisUnit); 4] = [
        ("metric", AxisUnit::Metric),
        ("us", AxisUnit::Micro),
        ("excess", AxisUnit::Excess),
        ("share", AxisUnit::Share),
    ];

    /// A value of the metric in this unit; a share is worked out from the whole stack.
    pub fn apply(self, value: f64) -> f64 {
        match self {
            AxisUnit::Metric | AxisUnit::Share => value,
            AxisUnit::Micro => value / 1000.0,
            AxisUnit::Excess => value - 1.0,
        }
    }

    fn read(fields: &Fields<'_>) -> Result<AxisUnit> {
        let Some(word) = fields.optional_text("y_unit")? else {
            return Ok(AxisUnit::Metric);
        };
        let found = AxisUnit::WORDS.iter().find(|(name, _)| *name == word);
        found.map(|(_, unit)| *unit).ok_or_else(|| {
            let hint = suggest(&word, AxisUnit::WORDS.iter().map(|(name, _)| *name));
            fields.invalid("y_unit", word, "is no unit of an axis", hint)
        })
    }
}

/// Which points are drawn: those that have one of the values for each name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Vec<(String, Vec<Value>)>);

impl Filter {
    /// Whether the point is drawn; a point that lacks a name is not.
    pub fn matches(&self, point: &Point) -> bool {
        self.0
            .iter()
            .all(|(name, values)| point.get(name).is_some_and(|v| values.contains(v)))
    }

    /// Whether the points drawn have one and the same value for the name.
    fn pins(&self, name: &str) -> bool {
        self.iter()
            .any(|(known, values)| known == name && values.len() == 1)
    }

    /// The names and the values that pass.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Value])> {
        self.0
            .iter()
            .map(|(name, values)| (name.as_str(), values.as_slice()))
    }
}

/// Lines on the right axis of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    /// The metric.
    pub y: String,
    /// What is written beside the axis, with its unit.
    pub y_label: String,
    /// The unit of the axis.
    pub y_unit: AxisUnit,
    /// The parameters that make the series.
    pub series: Vec<String>,
    /// Which points are drawn (`where`).
    pub filter: Filter,
}

/// One chart of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The name of its SVG; that of the first panel is the experiment's id.
    pub id: String,
    /// What stands above it.
    pub title: String,
    /// How it draws.
    pub kind: PanelKind,
    /// The parameter along the x axis.
    pub x: String,
    /// The parameters that make the series.
    pub series: Vec<String>,
    /// Which points are drawn (`where`).
    pub filter: Filter,
    /// The metric; of a stacked panel one or more, from the bottom up.
    pub y: Vec<String>,
    /// What is written beside the left axis, with its unit.
    pub y_label: String,
    /// The unit of the left axis.
    pub y_unit: AxisUnit,
    /// Whether the left axis is logarithmic.
    pub log_y: bool,
    /// If not empty, y is divided by that of the point which differs in these parameters alone.
    pub improvement_over: Vec<(String, Value)>,
    /// Whether two such panels stand in a row.
    pub half: bool,
    /// Lines on the right axis.
    pub overlays: Vec<Overlay>,
}

impl Panel {
    /// The point that this panel divides by, for the point that it draws.
    ///
    /// None if the panel does not divide.
    pub fn baseline(&self, point: &Point) -> Option<Point> {
        let mut pairs = self.improvement_over.iter();
        let (name, value) = pairs.next()?;
        let first = point.with(name, value.clone());
        Some(pairs.fold(first, |point, (name, value)| {
            point.with(name, value.clone())
        }))
    }

    /// Makes series of a parameter that got several values, where nothing else distinguishes them.
    pub(crate) fn tell_apart(&mut self, name: &str) {
        if self.x == name {
            return;
        }
        let overlays = self.overlays.iter_mut();
        let overlays = overlays.map(|overlay| (&mut overlay.series, &overlay.filter));
        for (series, filter) in overlays.chain([(&mut self.series, &self.filter)]) {
            if !series.iter().any(|known| known == name) && !filter.pins(name) {
                series.push(name.to_owned());
            }
        }
    }
}

const PANEL_KEYS: &[&str] = &[
    "id",
    "title",
    "kind",
    "x",
    "series",
    "where",
    "y",
    "y_label",
    "y_unit",
    "log_y",
    "improvement_over",
    "half",
    "overlay",
];
const OVERLAY_KEYS: &[&str] = &["y", "y_label", "y_unit", "series", "where"];
const KINDS: [(&str, PanelKind); 3] = [
    ("bars", PanelKind::Bars),
    ("lines", PanelKind::Lines),
    ("stacked", PanelKind::Stacked),
];

/// What panels may speak of.
pub(crate) struct Context<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// The parameters of every point with all their values, the backend included.
    pub(crate) parameters: &'a [(String, Vec<Value>)],
    pub(crate) vocabulary: &'a Vocabulary,
}

impl Context<'_> {
    pub(crate) fn panels(&self, file: &Fields<'_>) -> Result<Vec<Panel>> {
        let mut panels: Vec<Panel> = Vec::new();
        for (index, fields) in file.tables("panel", Some(PANEL_KEYS))?.iter().enumerate() {
            let panel = self.panel(fields, index == 0)?;
            if panels.iter().any(|known| known.id == panel.id) {
                let problem = "is the id of another panel";
                return Err(fields.invalid("id", &panel.id, problem, "give each panel its own"));
            }
            panels.push(panel);
        }
        Ok(panels)
    }

    fn panel(&self, fields: &Fields<'_>, first: bool) -> Result<Panel> {
        let id = match fields.has("id") {
            false if first => self.id.to_owned(),
            _ => fields.id("id")?,
        };
        if first && id != self.id {
            let fix = format!("write \"{}\" or leave the key out", self.id);
            return Err(fields.invalid("id", id, "is not the experiment's id", fix));
        }
        let word = fields.text("kind")?;
        let kind = KINDS.iter().find(|(name, _)| *name == word);
        let Some((_, kind)) = kind.copied() else {
            let hint = suggest(&word, KINDS.iter().map(|(name, _)| *name));
            return Err(fields.invalid("kind", word, "is no kind of panel", hint));
        };
        let x = fields.text("x")?;
        self.known(fields, "x", &x)?;
        let series = self.series(fields)?;
        if series.contains(&x) {
            let fix = "take it out of one of the two";
            return Err(fields.invalid("series", x, "is the x axis already", fix));
        }
        let log_y = fields.flag("log_y", false)?;
        if log_y && kind == PanelKind::Stacked {
            let fix = "remove log_y, or draw lines";
            return Err(fields.invalid("log_y", true, "says nothing of stacked bars", fix));
        }
        let filter = self.filter(fields)?;
        self.refuse_alike(fields, &x, &series, &filter)?;
        let overlays = fields.tables("overlay", Some(OVERLAY_KEYS))?;
        let overlays = overlays.iter().map(|overlay| self.overlay(overlay, &x));
        let overlays = overlays.collect::<Result<_>>()?;
        Ok(Panel {
            id,
            title: fields
                .optional_text("title")?
                .unwrap_or_else(|| self.title.to_owned()),
            kind,
            x,
            series,
            filter,
            y: self.metrics(fields, kind == PanelKind::Stacked)?,
            y_label: fields.text("y_label")?,
            y_unit: AxisUnit::read(fields)?,
            log_y,
            improvement_over: self.improvement_over(fields)?,
            half: fields.flag("half", false)?,
            overlays,
        })
    }

    fn overlay(&self, fields: &Fields<'_>, x: &str) -> Result<Overlay> {
        let y = self.metrics(fields, false)?.swap_remove(0);
        let (y_label, series) = (fields.text("y_label")?, self.series(fields)?);
        let filter = self.filter(fields)?;
        self.refuse_alike(fields, x, &series, &filter)?;
        Ok(Overlay {
            y,
            y_label,
            y_unit: AxisUnit::read(fields)?,
            series,
            filter,
        })
    }

    /// Refuses a panel in which several points fall on one location. Backends always have their own.
    fn refuse_alike(
        &self,
        fields: &Fields<'_>,
        x: &str,
        series: &[String],
        filter: &Filter,
    ) -> Result<()> {
        let distinguishes = |name: &str| {
            name == BACKEND || name == x || series.iter().any(|s| s == name) || filter.pins(name)
        };
        let mut parameters = self.parameters.iter();
        let Some((name, values)) = parameters.find(|(n, v)| v.len() > 1 && !distinguishes(n))
        else {
            return Ok(());
        };
        let problem = format!("does not distinguish the {} values of {name}", values.len());
        let fix = format!("add \"{name}\", or choose one with where = {{ {name} = ... }}");
        Err(fields.invalid("series", format!("{series:?}"), problem, fix))
    }

    /// One metric, or with `several` one or more.
    fn metrics(&self, fields: &Fields<'_>, several: bool) -> Result<Vec<String>> {
        let metrics = fields.texts("y")?;
        match metrics.len() {
            0 => return Err(fields.missing("y", "the metric to draw, as y = \"throughput_gbps\"")),
            2.. if !several => {
                let fix = "name one, or set kind = \"stacked\"";
                return Err(fields.invalid("y", metrics.join(", "), "names several metrics", fix));
            }
            _ => {}
        }
        for (index, metric) in metrics.iter().enumerate() {
            if metrics[..index].contains(metric) {
                return Err(fields.invalid("y", metric, "is there twice", "name each metric once"));
            }
            let key = fields.key("y");
            let location = Location {
                origin: fields.origin(),
                key: &key,
            };
            self.vocabulary
                .check_metric("y", metric)
                .map_err(|reason| location.parameter(reason))?;
        }
        Ok(metrics)
    }

    fn series(&self, fields: &Fields<'_>) -> Result<Vec<String>> {
        let series = fields.texts("series")?;
        for (index, name) in series.iter().enumerate() {
            self.known(fields, "series", name)?;
            if series[..index].contains(name) {
                return Err(fields.invalid("series", name, "is there twice", "name it once"));
            }
        }
        Ok(series)
    }

    fn filter(&self, fields: &Fields<'_>) -> Result<Filter> {
        let mut filter = Vec::new();
        for (name, found) in fields.pairs("where")? {
            let had = self.known(fields, "where", &name)?;
            let key = fields.key(&format!("where.{name}"));
            let location = Location {
                origin: fields.origin(),
                key: &key,
            };
            let values = location.values(&name, &found, self.vocabulary)?;
            refuse_absent(location, &values, had)?;
            filter.push((name, values));
        }
        Ok(Filter(filter))
    }

    fn improvement_over(&self, fields: &Fields<'_>) -> Result<Vec<(String, Value)>> {
        let mut over = Vec::new();
        for (name, found) in fields.pairs("improvement_over")? {
            let had = self.known(fields, "improvement_over", &name)?;
            let key = fields.key(&format!("improvement_over.{name}"));
            let location = Location {
                origin: fields.origin(),
                key: &key,
            };
            let values = location.values(&name, &found, self.vocabulary)?;
            refuse_absent(location, &values, had)?;
            match <[Value; 1]>::try_from(values) {
                Ok([value]) => over.push((name, value)),
                Err(values) => {
                    let problem = format!("has {} values", values.len());
                    return Err(location.invalid(found, problem, "name the one to divide by"));
                }
            }
        }
        if over.is_empty() && fields.has("improvement_over") {
            let fix = format!("write {{ {BACKEND} = \"cpu\" }} or leave the key out");
            return Err(fields.invalid("improvement_over", "{}", "names no parameter", fix));
        }
        Ok(over)
    }

    /// The values of a parameter that the experiment has.
    fn known(&self, fields: &Fields<'_>, key: &str, name: &str) -> Result<&[Value]> {
        if let Some((_, values)) = self.parameters.iter().find(|(known, _)| known == name) {
            return Ok(values);
        }
        let hint = suggest(
            name,
            self.parameters.iter().map(|(known, _)| known.as_str()),
        );
        let fix = format!("{hint} (or add it to [fixed] or [sweep])");
        Err(fields.invalid(key, name, "is no parameter of this experiment", fix))
    }
}

/// Refuses values that no point has: the panel would be empty, or divide by nothing.
fn refuse_absent(location: Location<'_>, values: &[Value], had: &[Value]) -> Result<()> {
    let Some(absent) = values.iter().find(|value| !had.contains(value)) else {
        return Ok(());
    };
    let had: Vec<String> = had.iter().map(ToString::to_string).collect();
    let fix = format!("write one of: {}", had.join(", "));
    Err(location.invalid(absent, "is a value that no point has", fix))
}
