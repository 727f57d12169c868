//! Published numbers as data.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use toml::Value as Toml;

use crate::fields::{Fields, Place, Result, read};
use crate::value::Value;

/// How far a model may be from a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Percent of the published value.
    Percent(f64),
    /// A difference in the unit of the table.
    Absolute(f64),
}

/// One published number.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferencePoint {
    /// The workload of the table, with what this point changes.
    pub parameters: BTreeMap<String, Value>,
    /// What this point names itself, in the order of the file, for labels.
    pub own: Vec<(String, Value)>,
    /// The number, in the unit of the table.
    pub value: f64,
    /// The lower end, if a range was published.
    pub low: Option<f64>,
    /// The upper end, if a range was published.
    pub high: Option<f64>,
    /// What the source says about it.
    pub note: Option<String>,
    /// Whether it counts in the error of the model.
    pub checked: bool,
    /// Why it does not count.
    pub why: Option<String>,
}

/// A table of published numbers, with its source.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceTable {
    /// Its name.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Who published it, and where.
    pub source: String,
    /// The machine and the settings that it was measured with.
    pub configuration: String,
    /// The metric that its values are.
    pub metric: String,
    /// Their unit.
    pub unit: String,
    /// How far a model may be from it, if that was said.
    pub target: Option<Target>,
    /// The platform that models its machine.
    pub platform: String,
    /// The parameters that all its points share.
    pub workload: BTreeMap<String, Value>,
    /// Physical parameters of its machine that differ from the platform's.
    pub overrides: BTreeMap<String, Toml>,
    /// The numbers.
    pub points: Vec<ReferencePoint>,
}

const KEYS: &[&str] = &[
    "id",
    "title",
    "source",
    "configuration",
    "metric",
    "unit",
    "target_percent",
    "target_absolute",
    "platform",
    "workload",
    "overrides",
    "point",
];
const POINT_KEYS: &[&str] = &["value", "low", "high", "note", "checked", "why"];

impl ReferenceTable {
    /// Reads a table from the text of a file; `origin` names the file in errors.
    ///
    /// Errors: not TOML, a key that is unknown or missing, a value that is negative or not finite or
    /// outside of its own range, a point that is there twice.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let file = Fields::parse(text, origin, KEYS)?;
        let mut workload = BTreeMap::new();
        for (name, found) in file.pairs("workload")? {
            let key = format!("workload.{name}");
            let value = Place { origin, key: &key }.value(&found)?;
            workload.insert(name, value);
        }
        Ok(Self {
            id: file.id("id")?,
            title: file.text("title")?,
            source: file.text("source")?,
            configuration: file.text("configuration")?,
            metric: file.text("metric")?,
            unit: file.text("unit")?,
            target: target(&file)?,
            platform: file.text("platform")?,
            overrides: overrides(&file)?,
            points: points(&file, &workload)?,
            workload,
        })
    }

    /// Reads a table from a file.
    ///
    /// Errors: those of [`ReferenceTable::parse`], a file that cannot be read, and an id that is not
    /// the name of the file.
    pub fn load(path: &Path) -> Result<Self> {
        let origin = path.display().to_string();
        let table = Self::parse(&read(path)?, &origin)?;
        if path
            .file_stem()
            .is_some_and(|stem| stem.to_str() == Some(table.id.as_str()))
        {
            return Ok(table);
        }
        let problem = "is not the name of its file";
        Err(Place {
            origin: &origin,
            key: "id",
        }
        .invalid(table.id, problem, "rename one of the two"))
    }
}

fn target(file: &Fields<'_>) -> Result<Option<Target>> {
    match (
        file.number("target_percent")?,
        file.number("target_absolute")?,
    ) {
        (None, None) => Ok(None),
        (Some(percent), None) => Ok(Some(Target::Percent(percent))),
        (None, Some(absolute)) => Ok(Some(Target::Absolute(absolute))),
        (Some(percent), Some(_)) => {
            let problem = "stands beside target_absolute";
            Err(file.invalid("target_percent", percent, problem, "keep one of the two"))
        }
    }
}

fn overrides(file: &Fields<'_>) -> Result<BTreeMap<String, Toml>> {
    let mut overrides = BTreeMap::new();
    for (name, found) in file.pairs("overrides")? {
        let fine = match &found {
            Toml::String(_) | Toml::Integer(_) => true,
            Toml::Float(number) => number.is_finite(),
            _ => false,
        };
        if !fine {
            let key = format!("overrides.{name}");
            return Err(Place {
                origin: file.origin(),
                key: &key,
            }
            .kind(&found, "a finite number or a text"));
        }
        overrides.insert(name, found);
    }
    Ok(overrides)
}

fn points(file: &Fields<'_>, workload: &BTreeMap<String, Value>) -> Result<Vec<ReferencePoint>> {
    let mut seen = HashSet::new();
    let mut points = Vec::new();
    for fields in file.tables("point", None)? {
        let point = point(&fields, workload)?;
        if !seen.insert(point.parameters.clone()) {
            let own: Vec<String> = point
                .own
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let problem = "has the parameters of a point before it";
            return Err(fields.invalid(
                "value",
                point.value,
                problem,
                format!("keep one of the two ({})", own.join(", ")),
            ));
        }
        points.push(point);
    }
    if points.is_empty() {
        return Err(file.missing("point", "at least one [[point]] with a value"));
    }
    Ok(points)
}

fn point(fields: &Fields<'_>, workload: &BTreeMap<String, Value>) -> Result<ReferencePoint> {
    let mut own = Vec::new();
    for (name, found) in fields.pairs_beside(POINT_KEYS) {
        let key = fields.key(name);
        let value = Place {
            origin: fields.origin(),
            key: &key,
        }
        .value(found)?;
        own.push((name.to_owned(), value));
    }
    let value = fields.number("value")?;
    let value = value.ok_or_else(|| fields.missing("value", "the published number"))?;
    let (low, high) = (fields.number("low")?, fields.number("high")?);
    if low.is_some_and(|low| low > value) {
        return Err(fields.invalid(
            "value",
            value,
            "is below its own `low`",
            "swap or correct them",
        ));
    }
    if high.is_some_and(|high| high < value) {
        return Err(fields.invalid(
            "value",
            value,
            "is above its own `high`",
            "swap or correct them",
        ));
    }
    let mut parameters = workload.clone();
    parameters.extend(own.iter().cloned());
    let (checked, why) = (fields.flag("checked", true)?, fields.optional_text("why")?);
    match &why {
        None if !checked => {
            return Err(fields.missing("why", "why the point does not count"));
        }
        Some(why) if checked => {
            let problem = "says why a point does not count, and this one counts";
            return Err(fields.invalid(
                "why",
                why,
                problem,
                "add checked = false, or call it note",
            ));
        }
        _ => {}
    }
    Ok(ReferencePoint {
        parameters,
        own,
        value,
        low,
        high,
        note: fields.optional_text("note")?,
        checked,
        why,
    })
}
