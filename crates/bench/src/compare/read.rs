//! Result files of both tools, theirs or ours.

use dray_experiment::Provenance;
use serde_json::Value;
use thiserror::Error;

use crate::console::TimeUnit;

/// What two results cannot be compared for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompareError {
    /// Not a result of a tool that is known.
    #[error("{origin}: {reason}")]
    Unknown {
        /// File.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// No case is in both.
    #[error("the two results have no case in common{}", first(.old, .new))]
    NothingInCommon {
        /// A case of the first.
        old: Option<String>,
        /// A case of the second.
        new: Option<String>,
    },
}

fn first(old: &Option<String>, new: &Option<String>) -> String {
    match (old, new) {
        (Some(old), Some(new)) => format!(": one has {old:?}, the other {new:?}"),
        _ => String::new(),
    }
}

/// The measurements of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Case.
    pub name: String,
    /// Times: of an iteration, or of an operation for dsa_perf_micros.
    pub ns: Vec<f64>,
}

/// A result.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultFile {
    /// Where the times come from, if the result says so.
    pub time: Option<Provenance>,
    /// Cases in order.
    pub cases: Vec<Measurement>,
    /// Cases that ended with an error.
    pub failed: Vec<String>,
}

impl ResultFile {
    fn add(&mut self, name: &str, ns: f64) {
        if !(ns.is_finite() && ns > 0.0) {
            return;
        }
        match self.cases.iter_mut().find(|case| case.name == name) {
            Some(case) => case.ns.push(ns),
            None => self.cases.push(Measurement {
                name: name.to_owned(),
                ns: vec![ns],
            }),
        }
    }
}

/// Reads a result: Google Benchmark's JSON or CSV, JSON or CSV of `dray micros`, or a log with
/// dsa_perf_micros's result lines; several of those are repetitions.
///
/// # Errors
/// [`CompareError::Unknown`] if it is none of them, or has no measurement.
pub fn parse(text: &str, origin: &str) -> Result<ResultFile, CompareError> {
    let unknown = |reason: &str| CompareError::Unknown {
        origin: origin.to_owned(),
        reason: reason.to_owned(),
    };
    let mut file = ResultFile {
        time: None,
        cases: Vec::new(),
        failed: Vec::new(),
    };
    let start = text.trim_start();
    if start.starts_with('{') || start.starts_with('[') {
        let document: Value =
            serde_json::from_str(text).map_err(|error| unknown(&error.to_string()))?;
        match document.get("benchmarks").and_then(Value::as_array) {
            Some(rows) => benchmarks(&mut file, &document, rows),
            None => match &document {
                Value::Array(results) => results.iter().try_for_each(|r| micros(&mut file, r)),
                result => micros(&mut file, result),
            },
        }
        .map_err(|reason| unknown(&reason))?;
    } else if start.starts_with("name,iterations,") || start.starts_with("case,time,") {
        table(&mut file, start).map_err(|reason| unknown(&reason))?;
    } else {
        log(&mut file, text);
    }
    match file.cases.is_empty() && file.failed.is_empty() {
        true => Err(unknown(
            "no measurement in it: neither Google Benchmark's JSON or CSV nor dsa_perf_micros's lines",
        )),
        false => Ok(file),
    }
}

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key).and_then(Value::as_f64)
}

/// Google Benchmark's times are in nanoseconds where it names no unit.
fn in_ns(value: f64, unit: Option<&str>) -> Result<f64, String> {
    let unit = unit.map_or(Ok(TimeUnit::default()), TimeUnit::named)?;
    Ok(unit.to_ns(value))
}

fn provenance(word: Option<&Value>) -> Result<Option<Provenance>, String> {
    word.and_then(Value::as_str).map(str::parse).transpose()
}

fn benchmarks(file: &mut ResultFile, document: &Value, rows: &[Value]) -> Result<(), String> {
    file.time = provenance(document.pointer("/context/dray_time"))?;
    let text = |row: &Value, key: &str| -> Option<String> {
        row.get(key).and_then(Value::as_str).map(str::to_owned)
    };
    let add = |file: &mut ResultFile, row: &Value, wanted: Option<&str>| {
        let Some(name) = text(row, "run_name").or(text(row, "name")) else {
            return Ok(());
        };
        if row.get("error_occurred").and_then(Value::as_bool) == Some(true) {
            if wanted.is_none() {
                file.failed.push(name);
            }
            return Ok(());
        }
        let aggregate = text(row, "aggregate_name");
        if aggregate.as_deref() == wanted
            && let Some(time) = number(row, "real_time")
        {
            file.add(&name, in_ns(time, text(row, "time_unit").as_deref())?);
        }
        Ok::<(), String>(())
    };
    // Only where single measurements were left out is the median all there is.
    for wanted in [None, Some("median"), Some("mean")] {
        if file.cases.is_empty() {
            rows.iter().try_for_each(|row| add(file, row, wanted))?;
        }
    }
    Ok(())
}

fn micros(file: &mut ResultFile, result: &Value) -> Result<(), String> {
    let Some(case) = result.get("case").and_then(Value::as_str) else {
        return Ok(());
    };
    file.time = provenance(result.get("time"))?;
    let latency = number(result, "latency_ns");
    let per_operation = number(result, "kopsrate").map(|kops| 1e6 / kops);
    // Kilo-operations are whole numbers: throughput says the same with more digits.
    let by_bytes = match (number(result, "gb_per_sec"), number(result, "kopsrate")) {
        (Some(gb), Some(kops)) if gb > 0.0 && kops > 0.0 => {
            let bytes = (gb * 1e6 / kops).round();
            Some(bytes / gb)
        }
        _ => None,
    };
    if let Some(ns) = latency.or(by_bytes).or(per_operation) {
        file.add(case, ns);
    }
    Ok(())
}

fn table(file: &mut ResultFile, text: &str) -> Result<(), String> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(text.as_bytes());
    let wrong = |error: csv::Error| error.to_string();
    let head = reader.headers().map_err(wrong)?.clone();
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().map_err(wrong)?;
    let column = |name: &str| head.iter().position(|column| column == name);
    let cell = |row: &csv::StringRecord, name: &str| {
        let index = column(name)?;
        row.get(index).filter(|c| !c.is_empty()).map(str::to_owned)
    };
    if column("case").is_some() {
        for row in &rows {
            let mut result = serde_json::Map::new();
            for (name, value) in head.iter().zip(row) {
                let value = match value.parse::<f64>() {
                    Ok(number) if name != "case" => Value::from(number),
                    _ => Value::from(value),
                };
                result.insert(name.to_owned(), value);
            }
            micros(file, &Value::Object(result))?;
        }
        return Ok(());
    }
    for row in &rows {
        let Some(name) = cell(row, "name") else {
            continue;
        };
        let aggregate = ["_mean", "_median", "_stddev", "_cv"];
        if cell(row, "error_occurred").as_deref() == Some("true") {
            file.failed.push(name);
        } else if !aggregate.iter().any(|suffix| name.ends_with(suffix))
            && let Some(time) = cell(row, "real_time").and_then(|t| t.parse().ok())
        {
            file.add(&name, in_ns(time, cell(row, "time_unit").as_deref())?);
        }
    }
    Ok(())
}

/// Result lines, each named by the command line before it: what a shell shows of it, or what the tool repeats.
fn log(file: &mut ResultFile, text: &str) {
    const TOOL: &str = "dsa_perf_micros";
    let command = |line: &str| {
        let (_, rest) = line.split_once(TOOL)?;
        let words = rest
            .split_whitespace()
            .take_while(|w| !w.contains(['>', '|']));
        let words: Vec<&str> = words.take_while(|w| *w != "2>&1").collect();
        let flags = words.first().is_some_and(|word| word.starts_with('-'));
        flags.then(|| words.join(" "))
    };
    let mut case = TOOL.to_owned();
    for line in text.lines() {
        if let Some(command) = command(line) {
            case = command;
        }
        if !line.starts_with("GB per sec = ") {
            continue;
        }
        let words: Vec<&str> = line.split([' ', ',']).collect();
        let after = |word: &str| {
            let at = words.iter().position(|w| *w == word)?;
            words.get(at + 2)?.parse::<f64>().ok()
        };
        let before = |word: &str| {
            let at = words.iter().position(|w| *w == word)?;
            words.get(at.checked_sub(1)?)?.parse::<f64>().ok()
        };
        let per_operation = after("kopsrate").map(|kops| 1e6 / kops);
        if let Some(ns) = before("ns").or(per_operation) {
            file.add(&case, ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn google_benchmarks_json_and_csv_are_read() {
        let json = r#"{"context": {}, "benchmarks": [
            {"name": "a", "run_name": "a", "run_type": "iteration", "real_time": 1.5, "time_unit": "us"},
            {"name": "a", "run_name": "a", "run_type": "iteration", "real_time": 2.5, "time_unit": "us"},
            {"name": "a_mean", "run_name": "a", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 2.0, "time_unit": "us"},
            {"name": "b", "run_name": "b", "error_occurred": true, "error_message": "no"}]}"#;
        let read = parse(json, "x").unwrap();
        assert_eq!(read.cases[0].ns, [1500.0, 2500.0]);
        assert_eq!(read.failed, ["b"]);
        let csv = "name,iterations,real_time,cpu_time,time_unit,error_occurred\n\"a\",5,1.5,1,us,\n\"a_mean\",5,9,1,us,\n";
        assert_eq!(parse(csv, "x").unwrap().cases[0].ns, [1500.0]);
    }

    /// Command lines of `dray micros` hold commas, and names what users call a case.
    #[test]
    fn names_with_commas_quotes_and_line_ends_are_read() {
        for name in ["-K[0-3]@dsa0,0 -n8", "a \"b\"", "two\nlines"] {
            let rows = [[name, "1000"].map(str::to_owned).to_vec()];
            let micros = dray_experiment::csv_table(
                &["case", "time", "kopsrate"],
                rows.clone()
                    .map(|r| vec![r[0].clone(), "modelled".to_owned(), r[1].clone()]),
            );
            assert_eq!(parse(&micros, "x").unwrap().cases[0].name, name);
            let bench = dray_experiment::csv_table(
                &["name", "iterations", "real_time"],
                rows.map(|r| vec![r[0].clone(), "1".to_owned(), r[1].clone()]),
            );
            assert_eq!(parse(&bench, "x").unwrap().cases[0].name, name);
        }
    }

    #[test]
    fn medians_are_used_where_no_iteration_is_listed() {
        let json = r#"{"benchmarks": [
            {"name": "a_mean", "run_name": "a", "aggregate_name": "mean", "real_time": 3.0, "time_unit": "ns"},
            {"name": "a_median", "run_name": "a", "aggregate_name": "median", "real_time": 2.0, "time_unit": "ns"}]}"#;
        assert_eq!(parse(json, "x").unwrap().cases[0].ns, [2.0]);
    }

    #[test]
    fn results_of_logs_are_named_by_their_command_lines() {
        let log = "DSA_PERF_MICROS_LOG_LEVEL=info ./src/dsa_perf_micros -n1 -q1 2>&1 | tee log\n\
            GB per sec = 7.5 latency(cycles) = 1083.0, 541.5 ns, cycles/sec =2000000000 cpu 1.0 kopsrate = 1846\n";
        let read = parse(log, "x").unwrap();
        assert_eq!(read.cases[0].name, "-n1 -q1");
        assert_eq!(read.cases[0].ns, [541.5]);
        let two =
            "GB per sec = 7.5 cpu 1.0 kopsrate = 1000\nGB per sec = 7.5 cpu 1.0 kopsrate = 2000\n";
        assert_eq!(parse(two, "x").unwrap().cases[0].ns, [1000.0, 500.0]);
    }

    /// A shell shows the command line, and the tool repeats it.
    #[test]
    fn each_result_has_the_command_line_before_it() {
        let log = "$ sudo ./src/dsa_perf_micros -n128 -s16k -j\n[sudo] password for user:\n\
            ./src/dsa_perf_micros -n128 -s16k -j\n-j option is deprecated\nblen 16384\n\
            GB per sec = 31.170166 cpu 6.270452 kopsrate = 1902\n\
            $ ./src/dsa_perf_micros -n64\n./src/dsa_perf_micros -n64\n\
            GB per sec = 20.0 cpu 6.0 kopsrate = 4000\nGB per sec = 20.0 cpu 6.0 kopsrate = 5000\n";
        let read = parse(log, "x").unwrap();
        let cases = read
            .cases
            .iter()
            .map(|case| (case.name.as_str(), case.ns.len()));
        assert_eq!(
            cases.collect::<Vec<_>>(),
            [("-n128 -s16k -j", 1), ("-n64", 2)]
        );
    }

    #[test]
    fn unknown_time_units_and_provenances_are_errors() {
        let json = r#"{"benchmarks": [{"name": "a", "real_time": 1.5, "time_unit": "uss"}]}"#;
        let error = parse(json, "x").unwrap_err().to_string();
        assert_eq!(error, "x: `uss` is not a unit of time; did you mean `us`?");
        let micros = r#"{"case": "a", "time": "model", "kopsrate": 1000}"#;
        let error = parse(micros, "x").unwrap_err().to_string();
        assert!(
            error.contains("`model` is neither modelled nor measured"),
            "{error}"
        );
    }

    #[test]
    fn files_without_results_are_refused() {
        for text in [
            "",
            "hello",
            "{",
            "{}",
            "[]",
            "name,iterations,real_time\n",
            "null",
        ] {
            assert!(parse(text, "x").is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn random_text_is_parsed_or_refused(text in any::<String>()) {
            let _ = parse(&text, "x");
            let _ = parse(&format!("name,iterations,real_time\n{text}"), "x");
            let _ = parse(&format!("GB per sec = {text}"), "x");
        }
    }
}
