//! An experiment on a fabric, as a file.

use std::collections::BTreeMap;

use dray_experiment::{Sweep, Value};
use serde::Deserialize;

use super::fields::{Field, Words};
use crate::PcieError;
use crate::sim::{Arrival, Memory, Operation, Scheduling, SimulationOptions, Stream};
use crate::{QueueOrganisation, Topology};

/// An experiment: streams on a topology, some of whose values are swept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FabricExperiment {
    /// Name, also of the files that it writes.
    pub id: String,
    /// What it shows, in one line.
    pub title: String,
    /// Where the publication describes it, of one that has been published.
    pub published: Option<String>,
    /// A built-in topology or a file.
    pub topology: String,
    /// Paragraphs of the report.
    #[serde(default)]
    pub intro: Vec<String>,
    /// The parameter along the axis, and its values.
    #[serde(default)]
    sweep: BTreeMap<String, String>,
    /// Sets of words; each is a series of its own.
    #[serde(default, rename = "variant")]
    variants: Vec<BTreeMap<String, String>>,
    #[serde(rename = "stream")]
    streams: Vec<StreamFields>,
    #[serde(default, rename = "chart")]
    pub(crate) charts: Vec<ChartFields>,
    #[serde(default, rename = "mark")]
    pub(crate) marks: Vec<Mark>,
    #[serde(default = "default_warmup")]
    warmup_us: u64,
    #[serde(default = "default_time")]
    time_us: u64,
    /// Length of an interval of bandwidth over time.
    #[serde(default)]
    pub(crate) interval_ns: u64,
    #[serde(default)]
    queues: Option<QueueOrganisation>,
}

fn default_warmup() -> u64 {
    20
}

fn default_time() -> u64 {
    220
}

/// A stream as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamFields {
    name: String,
    operation: Field,
    host: Field,
    device: Field,
    peer: Option<Field>,
    bytes: Field,
    chunk: Option<Field>,
    batch: Option<Field>,
    outstanding: Option<Field>,
    /// A number, `round-robin` or `least-outstanding`.
    queue: Option<Field>,
    count: Option<Field>,
    start_us: Option<Field>,
    memory: Option<Field>,
    /// One every so many ns.
    every_ns: Option<Field>,
    /// Exponential gaps of this mean.
    random_ns: Option<Field>,
    /// Transfers at once; `every_ns` is then from burst to burst.
    burst: Option<Field>,
    /// `no` leaves the stream out; for variants.
    present: Option<Field>,
}

/// The unit of an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum AxisUnit {
    /// That of the metric.
    #[default]
    #[serde(rename = "metric")]
    Metric,
    /// Microseconds, of metrics in nanoseconds.
    #[serde(rename = "us")]
    Micro,
}

impl AxisUnit {
    /// A value of the metric in this unit.
    pub(crate) fn apply(self, value: f64) -> f64 {
        match self {
            AxisUnit::Metric => value,
            AxisUnit::Micro => value / 1000.0,
        }
    }
}

/// A chart as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChartFields {
    pub(crate) id: String,
    pub(crate) title: String,
    /// Metrics such as `flow1.gib_s`.
    pub(crate) y: Vec<String>,
    pub(crate) y_label: String,
    #[serde(default)]
    pub(crate) y_unit: AxisUnit,
    #[serde(default)]
    pub(crate) log_y: bool,
    #[serde(default)]
    pub(crate) half: bool,
    /// Bandwidth of every stream over time instead of `y` over the sweep.
    #[serde(default)]
    pub(crate) over_time: bool,
    /// The distribution of a stream's durations instead.
    #[serde(default)]
    pub(crate) cdf: bool,
}

/// A published number.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mark {
    pub(crate) metric: String,
    /// Value of the swept parameter; none if nothing is swept.
    #[serde(default)]
    pub(crate) x: Option<Field>,
    #[serde(default)]
    pub(crate) variant: String,
    pub(crate) value: f64,
}

/// One point: what varies, and the streams to run.
#[derive(Debug, Clone)]
pub(crate) struct FabricPoint {
    pub(crate) variant: String,
    pub(crate) x: Option<Value>,
    pub(crate) streams: Vec<Stream>,
}

const FILES: [(&str, &str); 17] = [
    (
        "mmio",
        include_str!("../../../../fabrics/experiments/mmio.toml"),
    ),
    (
        "latency",
        include_str!("../../../../fabrics/experiments/latency.toml"),
    ),
    (
        "device-latency",
        include_str!("../../../../fabrics/experiments/device-latency.toml"),
    ),
    (
        "bandwidth",
        include_str!("../../../../fabrics/experiments/bandwidth.toml"),
    ),
    (
        "packet-rate",
        include_str!("../../../../fabrics/experiments/packet-rate.toml"),
    ),
    (
        "load",
        include_str!("../../../../fabrics/experiments/load.toml"),
    ),
    (
        "partition",
        include_str!("../../../../fabrics/experiments/partition.toml"),
    ),
    (
        "root-complex",
        include_str!("../../../../fabrics/experiments/root-complex.toml"),
    ),
    (
        "bursts",
        include_str!("../../../../fabrics/experiments/bursts.toml"),
    ),
    (
        "reverse",
        include_str!("../../../../fabrics/experiments/reverse.toml"),
    ),
    (
        "host-adapter",
        include_str!("../../../../fabrics/experiments/host-adapter.toml"),
    ),
    (
        "switch",
        include_str!("../../../../fabrics/experiments/switch.toml"),
    ),
    (
        "endpoint-adapter",
        include_str!("../../../../fabrics/experiments/endpoint-adapter.toml"),
    ),
    (
        "orthogonal",
        include_str!("../../../../fabrics/experiments/orthogonal.toml"),
    ),
    (
        "tails",
        include_str!("../../../../fabrics/experiments/tails.toml"),
    ),
    (
        "tails-closed",
        include_str!("../../../../fabrics/experiments/tails-closed.toml"),
    ),
    (
        "arrival",
        include_str!("../../../../fabrics/experiments/arrival.toml"),
    ),
];

/// The experiments that are built in, in the order of the report.
///
/// # Errors
///
/// A file that is not well-formed; the tests make sure that there is none.
pub fn built_in_experiments() -> Result<Vec<FabricExperiment>, PcieError> {
    let read = |(name, text): &(&str, &str)| {
        FabricExperiment::parse(text, &format!("fabrics/experiments/{name}.toml"))
    };
    FILES.iter().map(read).collect()
}

/// The file of an experiment that is built in.
pub fn built_in_text(id: &str) -> Option<&'static str> {
    let found = FILES.iter().find(|(name, _)| *name == id);
    found.map(|(_, text)| *text)
}

impl FabricExperiment {
    /// Reads an experiment; `file` names it in errors.
    ///
    /// # Errors
    ///
    /// Text that is not TOML, unknown keys, sweeps that expand to nothing, streams that cannot be.
    pub fn parse(text: &str, file: &str) -> Result<Self, PcieError> {
        let experiment: Self = toml::from_str(text).map_err(|error| PcieError::Syntax {
            file: file.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        let rule = |entry: &str, rule: String| PcieError::Rule {
            file: file.to_owned(),
            entry: entry.to_owned(),
            rule,
        };
        if experiment.sweep.len() > 1 {
            return Err(rule(
                "[sweep]",
                "one parameter is swept; the others are variants".to_owned(),
            ));
        }
        for (name, values) in &experiment.sweep {
            Sweep::parse(values)
                .map_err(|error| rule(&format!("sweep `{name}`"), error.to_string()))?;
        }
        for variant in &experiment.variants {
            if !variant.contains_key("name") {
                return Err(rule("[[variant]]", "has no `name`".to_owned()));
            }
        }
        if experiment.streams.is_empty() || experiment.time_us <= experiment.warmup_us {
            return Err(rule(
                "experiment",
                "needs a stream, and more time than warm-up".to_owned(),
            ));
        }
        let topology = Topology::resolve(&experiment.topology)?;
        experiment.points(&topology, file)?;
        Ok(experiment)
    }

    /// Name of the swept parameter.
    pub fn swept(&self) -> Option<&str> {
        self.sweep.keys().next().map(String::as_str)
    }

    /// Names of the variants; one without a name if there are none.
    pub(crate) fn variant_names(&self) -> Vec<String> {
        match self.variants.as_slice() {
            [] => vec![String::new()],
            variants => variants.iter().map(|words| words["name"].clone()).collect(),
        }
    }

    /// Values of the swept parameter.
    pub(crate) fn xs(&self) -> Vec<Value> {
        let values = self.sweep.values().next();
        values
            .and_then(|text| Sweep::parse(text).ok())
            .unwrap_or_default()
    }

    pub(crate) fn options(&self, seed: u64) -> SimulationOptions {
        SimulationOptions {
            warmup_ns: self.warmup_us * 1000,
            interval_ns: self.interval_ns,
            queues: self.queues,
            seed,
            ..SimulationOptions::default()
        }
    }

    pub(crate) fn end_ns(&self) -> u64 {
        self.time_us * 1000
    }

    /// Every combination of variant and swept value.
    pub(crate) fn points(
        &self,
        topology: &Topology,
        file: &str,
    ) -> Result<Vec<FabricPoint>, PcieError> {
        let none = [BTreeMap::from([("name".to_owned(), String::new())])];
        let variants = if self.variants.is_empty() {
            &none[..]
        } else {
            &self.variants
        };
        let xs = match self.xs() {
            xs if xs.is_empty() => vec![None],
            xs => xs.into_iter().map(Some).collect(),
        };
        let mut points = Vec::new();
        for variant in variants {
            for x in &xs {
                let mut words: Words = variant.clone();
                if let (Some(name), Some(x)) = (self.swept(), x) {
                    words.insert(name.to_owned(), x.to_string());
                }
                let mut streams = Vec::new();
                for fields in &self.streams {
                    let made = fields.stream(topology, &words);
                    let made = made.map_err(|rule| PcieError::Rule {
                        file: file.to_owned(),
                        entry: format!("stream `{}`", fields.name),
                        rule,
                    })?;
                    streams.extend(made);
                }
                points.push(FabricPoint {
                    variant: words["name"].clone(),
                    x: x.clone(),
                    streams,
                });
            }
        }
        Ok(points)
    }
}

impl StreamFields {
    /// The stream at one point, or none if it is not present there.
    fn stream(&self, topology: &Topology, words: &Words) -> Result<Option<Stream>, String> {
        let text = |field: &Field| field.text(words);
        let number = |field: &Option<Field>, otherwise: u64| match field {
            None => Ok(otherwise),
            Some(field) => field.number(words),
        };
        if let Some(present) = &self.present {
            match text(present)?.as_str() {
                "yes" => {}
                "no" => return Ok(None),
                other => {
                    let hint = dray_suggest::suggest(other, ["yes", "no"]);
                    return Err(format!("present = `{other}` is neither yes nor no; {hint}"));
                }
            }
        }
        let name = text(&self.operation)?;
        let operation = Operation::parse(&name).ok_or_else(|| {
            let hint = dray_suggest::suggest(&name, Operation::ALL.iter().map(|(_, name)| *name));
            format!("operation = `{name}` is unknown; {hint}")
        })?;
        let node = |field: &Field| {
            topology
                .find(&text(field)?)
                .map_err(|error| error.to_string())
        };
        let mut stream = Stream::new(
            &self.name,
            operation,
            node(&self.host)?,
            node(&self.device)?,
            self.bytes.number(words)?,
        );
        if operation.has_peer() {
            stream.peer = self.peer.as_ref().map(node).transpose()?;
        }
        let narrow = |value: u64, key: &str| {
            u32::try_from(value).map_err(|_| format!("{key} = {value} is above {}", u32::MAX))
        };
        stream.chunk = narrow(number(&self.chunk, u64::from(stream.chunk))?, "chunk")?;
        stream.batch = narrow(number(&self.batch, 1)?, "batch")?;
        stream.outstanding = narrow(number(&self.outstanding, 1)?, "outstanding")?;
        stream.count = number(&self.count, 0)?;
        stream.start_ns = number(&self.start_us, 0)?.saturating_mul(1000);
        stream.scheduling = match self.queue.as_ref().map(text).transpose()?.as_deref() {
            None => Scheduling::Fixed(0),
            Some("round-robin") => Scheduling::RoundRobin,
            Some("least-outstanding") => Scheduling::LeastOutstanding,
            Some(queue) => Scheduling::Fixed(queue.parse().map_err(|_| {
                format!(
                    "queue = `{queue}` is neither a number nor round-robin nor least-outstanding"
                )
            })?),
        };
        stream.memory = match self.memory.as_ref().map(text).transpose()?.as_deref() {
            None | Some("main") => Memory::Main,
            Some("on-chip") => Memory::OnChip,
            Some(other) => return Err(format!("memory = `{other}` is neither main nor on-chip")),
        };
        let every = number(&self.every_ns, 0)?;
        stream.arrival = match (&self.random_ns, &self.burst, every) {
            (Some(mean), ..) => Arrival::Random {
                mean_gap_ns: mean.number(words)?,
            },
            (None, Some(count), gap_ns) => Arrival::Burst {
                count: narrow(count.number(words)?, "burst")?,
                gap_ns,
            },
            (None, None, 0) => Arrival::Closed,
            (None, None, gap_ns) => Arrival::Every { gap_ns },
        };
        Ok(Some(stream))
    }
}
