//! What came out of an experiment, as JSON and CSV.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::point::{Pairs, Point};
use crate::provenance::Provenance;

/// Version of the JSON files; it changes when a reader of the old ones would be misled.
pub const SCHEMA: u32 = 1;

/// What one point gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The parameters.
    pub point: Point,
    /// Names with their unit (`latency_ns`), and values.
    #[serde(serialize_with = "write_metrics", deserialize_with = "read_metrics")]
    pub metrics: Vec<(String, f64)>,
    /// Where the metrics come from.
    pub provenance: Provenance,
    /// Who executed it.
    pub executor: String,
}

impl Outcome {
    /// The value of a metric.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value)
    }

    /// The first metric that is not a finite number, which no JSON file can hold.
    pub(crate) fn not_finite(&self) -> Option<&(String, f64)> {
        self.metrics.iter().find(|(_, value)| !value.is_finite())
    }
}

/// What holds for all outcomes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The experiment's id.
    pub experiment: String,
    /// The platform file's name.
    pub platform: String,
    /// The device profile's name.
    pub profile: String,
    /// Program and version that wrote the file.
    pub generator: String,
    /// What is guessed, if anything is.
    pub guess: Option<String>,
}

/// Results that cannot be written or read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ResultError {
    /// A metric that JSON has no number for.
    #[error("{experiment}: {metric} = {value} at {point}; a metric must be a finite number")]
    NotFinite {
        /// The experiment's id.
        experiment: String,
        /// The point.
        point: String,
        /// The metric.
        metric: String,
        /// Its value.
        value: f64,
    },
    /// Not a file of results.
    #[error("not a file of results: {message}")]
    Syntax {
        /// What is wrong, and where.
        message: String,
    },
    /// A file of another version.
    #[error("results of schema {found}; this version reads schema {SCHEMA}, so run them again")]
    Schema {
        /// The file's version.
        found: u32,
    },
}

#[derive(Serialize)]
struct Written<'a> {
    schema: u32,
    #[serde(flatten)]
    header: &'a Header,
    outcomes: &'a [Outcome],
}

#[derive(Deserialize)]
struct Read {
    #[serde(flatten)]
    header: Header,
    outcomes: Vec<Outcome>,
}

#[derive(Deserialize)]
struct ReadSchema {
    schema: u32,
}

/// The results as JSON; the same results give the same bytes.
///
/// Errors: a metric that is not a finite number.
pub fn write_json(header: &Header, outcomes: &[Outcome]) -> Result<String, ResultError> {
    for outcome in outcomes {
        if let Some((metric, value)) = outcome.not_finite() {
            return Err(ResultError::NotFinite {
                experiment: header.experiment.clone(),
                point: outcome.point.to_string(),
                metric: metric.clone(),
                value: *value,
            });
        }
    }
    let written = Written {
        schema: SCHEMA,
        header,
        outcomes,
    };
    let mut text = serde_json::to_string_pretty(&written).map_err(|error| ResultError::Syntax {
        message: error.to_string(),
    })?;
    text.push('\n');
    Ok(text)
}

/// Reads what [`write_json`] wrote, to the last bit.
///
/// Errors: not JSON, not results, or results of another schema.
pub fn read_json(text: &str) -> Result<(Header, Vec<Outcome>), ResultError> {
    let syntax = |error: serde_json::Error| ResultError::Syntax {
        message: error.to_string(),
    };
    let ReadSchema { schema } = serde_json::from_str(text).map_err(syntax)?;
    if schema != SCHEMA {
        return Err(ResultError::Schema { found: schema });
    }
    let Read { header, outcomes } = serde_json::from_str(text).map_err(syntax)?;
    Ok((header, outcomes))
}

/// The outcomes as CSV: a column for each parameter, for each metric, then provenance and executor.
///
/// Columns come in the order in which the outcomes first name them. Numbers read back to the last
/// bit; what an outcome lacks, and what is not a finite number, is an empty cell.
pub fn write_csv(outcomes: &[Outcome]) -> String {
    let mut parameters: Vec<&str> = Vec::new();
    let mut metrics: Vec<&str> = Vec::new();
    for outcome in outcomes {
        for (name, _) in outcome.point.iter() {
            add(&mut parameters, name);
        }
        for (name, _) in &outcome.metrics {
            add(&mut metrics, name);
        }
    }
    let names = parameters
        .iter()
        .chain(&metrics)
        .copied()
        .chain(["provenance", "executor"]);
    let head: Vec<&str> = names.collect();
    let rows = outcomes.iter().map(|outcome| {
        let mut cells = Vec::new();
        for name in &parameters {
            cells.push(
                outcome
                    .point
                    .get(name)
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            );
        }
        for name in &metrics {
            cells.push(outcome.metric(name).map(format_number).unwrap_or_default());
        }
        cells.push(outcome.provenance.to_string());
        cells.push(outcome.executor.clone());
        cells
    });
    csv_table(&head, rows)
}

/// A head and rows of as many cells each, as CSV: cells with commas, quotes or line ends are quoted.
pub fn csv_table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new()
        .flexible(true)
        .from_writer(Vec::new());
    writer.write_record(head).expect("memory takes every write");
    for row in rows {
        writer.write_record(row).expect("memory takes every write");
    }
    let bytes = writer.into_inner().expect("memory takes every write");
    String::from_utf8(bytes).expect("all cells were text")
}

fn add<'a>(names: &mut Vec<&'a str>, name: &'a str) {
    if !names.contains(&name) {
        names.push(name);
    }
}

/// The shortest text that reads back as the same number.
fn format_number(number: f64) -> String {
    let plain = 1e-5..1e16;
    if !number.is_finite() {
        String::new()
    } else if number == 0.0 || plain.contains(&number.abs()) {
        format!("{number}")
    } else {
        format!("{number:e}")
    }
}

fn write_metrics<S: Serializer>(
    metrics: &[(String, f64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(metrics.iter().map(|(name, value)| (name, value)))
}

fn read_metrics<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, f64)>, D::Error> {
    deserializer.deserialize_map(Pairs::new())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn outcome(size: u64, latency: f64) -> Outcome {
        Outcome {
            point: Point::default().with("mode", "sync").with("size", size),
            metrics: vec![
                ("throughput_gbps".into(), 1.5),
                ("latency_ns".into(), latency),
            ],
            provenance: Provenance::Modelled,
            executor: "model".into(),
        }
    }

    fn header() -> Header {
        Header {
            experiment: "fig3".into(),
            platform: "spr-2s".into(),
            profile: "1e1w-d".into(),
            generator: "dray 0.1.0".into(),
            guess: None,
        }
    }

    #[test]
    fn csv_has_parameters_then_metrics() {
        let mut second = outcome(1024, 0.1 + 0.2);
        second.point = second.point.with("name", "a,\"b\"");
        second.metrics.remove(0);
        let expected = "mode,size,name,throughput_gbps,latency_ns,provenance,executor\n\
                        sync,256,,1.5,100,modelled,model\n\
                        sync,1024,\"a,\"\"b\"\"\",,0.30000000000000004,modelled,model\n";
        assert_eq!(write_csv(&[outcome(256, 100.0), second]), expected);
        assert_eq!(write_csv(&[]), "provenance,executor\n");
    }

    #[test]
    fn json_survives_a_round_trip() {
        let outcomes = [outcome(256, 0.1 + 0.2), outcome(1024, 1e300)];
        let text = write_json(&header(), &outcomes).unwrap();
        let (read_header, read) = read_json(&text).unwrap();
        assert_eq!(
            (read_header, read.as_slice()),
            (header(), outcomes.as_slice())
        );
        assert_eq!(write_json(&header(), &read).unwrap(), text);
        assert!(
            text.starts_with("{\n  \"schema\": 1,\n  \"experiment\": \"fig3\","),
            "{text}"
        );
    }

    #[test]
    fn metrics_that_are_no_finite_numbers_are_refused() {
        let error = write_json(&header(), &[outcome(256, f64::NAN)])
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "fig3: latency_ns = NaN at mode=sync, size=256; a metric must be a finite number"
        );
        assert!(write_csv(&[outcome(256, f64::INFINITY)]).contains("1.5,,modelled"));
    }

    #[test]
    fn files_of_another_schema_are_refused() {
        assert!(matches!(read_json("{"), Err(ResultError::Syntax { .. })));
        assert!(matches!(
            read_json("{\"schema\": 1}"),
            Err(ResultError::Syntax { .. })
        ));
        let text = write_json(&header(), &[outcome(1, 1.0)]).unwrap();
        let error = read_json(&text.replace("modelled", "modeled")).unwrap_err();
        assert!(error.to_string().contains("`modeled`"), "{error}");
        assert_eq!(
            read_json("{\"schema\": 9}"),
            Err(ResultError::Schema { found: 9 })
        );
    }

    proptest! {
        #[test]
        fn csv_cells_of_random_text_survive_a_round_trip(
            head in prop::collection::vec("[a-z,\"\r\n ]{0,8}", 2),
            rows in prop::collection::vec(prop::collection::vec(any::<String>(), 2), 0..5),
        ) {
            let head: Vec<&str> = head.iter().map(String::as_str).collect();
            let text = csv_table(&head, rows.clone());
            let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
            prop_assert_eq!(reader.headers().unwrap(), &head[..]);
            let read: Vec<Vec<String>> = reader.deserialize().map(Result::unwrap).collect();
            prop_assert_eq!(read, rows);
        }

        #[test]
        fn numbers_survive_a_round_trip_exactly(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let read: f64 = format_number(number).parse().unwrap();
            prop_assert_eq!(read.to_bits(), bits);
            let outcomes = [outcome(1, number)];
            let (_, read) = read_json(&write_json(&header(), &outcomes).unwrap()).unwrap();
            prop_assert_eq!(read[0].metric("latency_ns").map(f64::to_bits), Some(bits));
        }
    }
}
