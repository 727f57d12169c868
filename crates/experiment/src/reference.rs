//! Published numbers as data.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use toml::Value as Toml;

use crate::error::Result;
use crate::fields::{Fields, read};
use crate::location::Location;
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
            let value = Location { origin, key: &key }.value(&found)?;
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
        Err(Location {
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
            return Err(Location {
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
    let mut seen = HashMap::new();
    let mut points = Vec::new();
    for (index, fields) in file.tables("point", None)?.iter().enumerate() {
        let point = point(fields, workload)?;
        if let Some(before) = seen.insert(point.parameters.clone(), index) {
            let own = point
                .own
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let own = format!("({})", own.collect::<Vec<_>>().join(", "));
            let problem = format!("has the parameters of point[{before}]");
            let fix = "keep one of the two, or add the key that distinguishes them";
            return Err(fields.location().invalid(own, problem, fix));
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
        let value = Location {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r#"
id = "sync-latency"
title = "Synchronous latency"
source = "logs"
configuration = "1 engine"
metric = "latency"
unit = "us"
target_percent = 10.0
platform = "spr-2s"
[workload]
op = "memmove"
engines = 1
cache_control = false
[overrides]
governor = "performance"
memory_ns = 120
[[point]]
size = 64
op = "fill"
value = 0.75
low = 0.7
high = 0.8
note = "a note"
[[point]]
size = 128
value = 1
checked = false
why = "printed twice"
"#;

    fn parse(text: &str) -> Result<ReferenceTable> {
        ReferenceTable::parse(text, "table.toml")
    }

    #[test]
    fn a_reference_file_is_parsed() {
        let table = parse(TEXT).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(table.target, Some(Target::Percent(10.0)));
        assert_eq!(table.platform, "spr-2s");
        assert_eq!(table.workload["cache_control"], "false".into());
        assert_eq!(table.overrides["memory_ns"], Toml::Integer(120));
        let [first, second] = table.points.as_slice() else {
            panic!("two points")
        };
        assert_eq!(
            first.own,
            [("size".into(), 64.into()), ("op".into(), "fill".into())]
        );
        assert_eq!(first.parameters["op"], "fill".into());
        assert_eq!(first.parameters["engines"], 1.into());
        assert_eq!(
            (first.value, first.low, first.high),
            (0.75, Some(0.7), Some(0.8))
        );
        assert!(first.checked && !second.checked);
        assert_eq!(second.parameters["op"], "memmove".into());
        assert_eq!(
            (second.value, second.why.as_deref()),
            (1.0, Some("printed twice"))
        );
    }

    #[test]
    fn targets_can_be_absolute_or_absent() {
        let with = |target| parse(&TEXT.replacen("target_percent = 10.0", target, 1));
        assert_eq!(
            with("target_absolute = 3").unwrap().target,
            Some(Target::Absolute(3.0))
        );
        assert_eq!(with("").unwrap().target, None);
        let both = with("target_percent = 10\ntarget_absolute = 3")
            .unwrap_err()
            .to_string();
        assert!(both.contains("keep one of the two"), "{both}");
    }

    #[test]
    fn each_error_names_file_key_and_fix() {
        let cases = [
            (
                "source =",
                "sources =",
                "unknown key `sources`; did you mean `source`?",
            ),
            ("unit = \"us\"\n", "", "`unit` is missing"),
            (
                "value = 0.75",
                "value = -1",
                "`point[0].value` = -1 is below the limit of 0",
            ),
            (
                "value = 0.75",
                "value = nan",
                "`point[0].value` = NaN is not a finite number",
            ),
            (
                "value = 0.75",
                "value = inf",
                "`point[0].value` = inf is not a finite number",
            ),
            (
                "value = 0.75",
                "value = \"1\"",
                "`point[0].value` is the text \"1\"; write a number",
            ),
            ("value = 0.75", "", "`point[0].value` is missing"),
            ("low = 0.7", "low = 0.76", "is below its own `low`"),
            ("high = 0.8", "high = 0.7", "is above its own `high`"),
            (
                "size = 64\nop = \"fill\"",
                "size = 128",
                "`point[1]` = (size=128) has the parameters of point[0]; keep one",
            ),
            (
                "size = 64",
                "size = 6.4",
                "`point[0].size` is the number 6.4",
            ),
            (
                "engines = 1",
                "engines = -1",
                "`workload.engines` is the number -1",
            ),
            (
                "memory_ns = 120",
                "memory_ns = inf",
                "`overrides.memory_ns` is the number inf",
            ),
            (
                "memory_ns = 120",
                "memory_ns = true",
                "`overrides.memory_ns` is true",
            ),
            ("why = \"printed twice\"", "", "`point[1].why` is missing"),
            (
                "checked = false",
                "",
                "add checked = false, or call it note",
            ),
        ];
        for (old, new, expected) in cases {
            assert!(TEXT.contains(old), "{old}");
            let message = parse(&TEXT.replacen(old, new, 1)).unwrap_err().to_string();
            assert!(
                message.starts_with("table.toml: ") && message.contains(expected),
                "{message}"
            );
        }
        let empty = &TEXT[..TEXT.find("[[point]]").unwrap()];
        let message = parse(empty).unwrap_err().to_string();
        assert!(message.contains("`point` is missing"), "{message}");
    }

    #[test]
    fn the_file_name_must_be_the_id() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("other.toml");
        std::fs::write(&path, TEXT).unwrap();
        let message = ReferenceTable::load(&path).unwrap_err().to_string();
        assert!(
            message.contains("`id` = sync-latency is not the name of its file"),
            "{message}"
        );
        let named = directory.path().join("sync-latency.toml");
        std::fs::rename(&path, &named).unwrap();
        assert_eq!(ReferenceTable::load(&named).unwrap(), parse(TEXT).unwrap());
    }

    proptest! {
        #[test]
        fn mutated_text_is_parsed_or_refused(
            at in any::<prop::sample::Index>(), removed in 0usize..12, added in "[\\PC\n]{0,6}"
        ) {
            let mut letters: Vec<char> = TEXT.chars().collect();
            let start = at.index(letters.len());
            let end = (start + removed).min(letters.len());
            letters.splice(start..end, added.chars());
            let _ = parse(&letters.into_iter().collect::<String>());
        }
    }
}
