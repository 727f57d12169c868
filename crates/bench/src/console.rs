//! The table on the console, as Google Benchmark draws it.

use std::fmt::Write;

use crate::number::{time, with_prefix};
use crate::row::{Row, RowKind};

/// Unit of the time columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeUnit {
    /// Nanoseconds.
    #[default]
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl TimeUnit {
    const ALL: [TimeUnit; 4] = [TimeUnit::Ns, TimeUnit::Us, TimeUnit::Ms, TimeUnit::S];

    /// The unit of this name.
    ///
    /// # Errors
    /// An unknown name, with the one that was meant.
    pub fn named(name: &str) -> Result<TimeUnit, String> {
        let mut all = TimeUnit::ALL.into_iter();
        all.find(|unit| unit.name() == name).ok_or_else(|| {
            let hint = dray_suggest::suggest(name, TimeUnit::ALL.map(TimeUnit::name));
            format!("`{name}` is not a unit of time; {hint}")
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Ns => "ns",
            TimeUnit::Us => "us",
            TimeUnit::Ms => "ms",
            TimeUnit::S => "s",
        }
    }

    /// Nanoseconds in it.
    fn ns(self) -> f64 {
        match self {
            TimeUnit::Ns => 1.0,
            TimeUnit::Us => 1e3,
            TimeUnit::Ms => 1e6,
            TimeUnit::S => 1e9,
        }
    }

    /// A time in ns in this unit.
    pub fn of_ns(self, ns: f64) -> f64 {
        ns / self.ns()
    }

    /// A time in this unit in ns.
    pub fn to_ns(self, time: f64) -> f64 {
        time * self.ns()
    }
}

/// How the table is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Width of the names.
    pub name_width: usize,
    /// Counters in columns instead of after the row.
    pub tabular: bool,
    /// Unit of the times.
    pub unit: TimeUnit,
}

impl Layout {
    /// Wide enough for these names; with repetitions, for their suffixes too.
    pub fn new<'n>(
        names: impl IntoIterator<Item = &'n str>,
        repetitions: u32,
        tabular: bool,
        unit: TimeUnit,
    ) -> Layout {
        let longest = names.into_iter().map(str::len).max().unwrap_or(0);
        let suffix = match repetitions {
            0 | 1 => 0,
            _ => "_stddev".len(),
        };
        Layout {
            name_width: (longest + suffix).max(10),
            tabular,
            unit,
        }
    }

    /// The head, with these counters' names.
    pub fn head(&self, counters: &[&str]) -> String {
        let mut head = format!(
            "{:<width$} {:>13} {:>15} {:>12}",
            "Benchmark",
            "Time",
            "CPU",
            "Iterations",
            width = self.name_width
        );
        if self.tabular {
            for name in counters {
                // Writing to a String cannot fail.
                let _ = write!(head, " {name:>10}");
            }
        } else if !counters.is_empty() {
            head.push_str(" UserCounters...");
        }
        let line = "-".repeat(head.len());
        format!("{line}\n{head}\n{line}\n")
    }

    /// One row.
    pub fn row(&self, row: &Row) -> String {
        let mut text = format!("{:<width$} ", row.name(), width = self.name_width);
        if let RowKind::Failed(reason) = &row.kind {
            return format!("{text}ERROR OCCURRED: '{reason}'\n");
        }
        let share = matches!(row.kind, RowKind::Share(_));
        let column = |value: f64| match share {
            true => (format!("{:.2}", value * 100.0), "%"),
            false => (time(self.unit.of_ns(value)), self.unit.name()),
        };
        let ((real, unit), (cpu, _)) = (column(row.real), column(row.cpu));
        let iterations = row.iterations;
        let _ = write!(
            text,
            "{real:>10} {unit:<4} {cpu:>10} {unit:<4} {iterations:>10}"
        );
        for counter in &row.counters {
            let value = match share {
                true => format!("{:.2}%", counter.value * 100.0),
                false => format!("{}{}", with_prefix(counter.value), counter.unit),
            };
            let _ = match self.tabular {
                true => {
                    let width = counter.name.len().max(10);
                    write!(text, " {value:>width$}")
                }
                false => write!(text, " {}={value}", counter.name),
            };
        }
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exec;
    use crate::case::Case;
    use crate::case::tests::SEED;
    use crate::row::{Position, rows};
    use crate::timing::Timing;

    /// The table in the guide to DML's benchmarks.
    const GUIDE: &str = "\
---------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
Benchmark                                                                                                                       Time             CPU   Iterations UserCounters...
---------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
move/api:c/path:dsa/exec:sync/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/real_time                 833022 ns       831025 ns          503 Latency=833.022us Latency/Op=52.0639us Throughput=20.1402G/s
move/api:c/path:dsa/exec:async/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/real_time/threads:1      763158 ns       760850 ns          549 Latency=763.158us Latency/Op=47.6974us Throughput=21.9839G/s
move/api:c/path:dsa/exec:async/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/real_time/threads:2      361855 ns       722324 ns         1134 Latency=361.855us Latency/Op=45.2319us Throughput=23.1822G/s
move/api:c/path:dsa/exec:async/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/real_time/threads:4      182710 ns       729806 ns         2132 Latency=182.71us Latency/Op=45.6775us Throughput=22.9561G/s
move/api:c/path:dsa/exec:async/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/real_time/threads:8      144228 ns      1151468 ns         2896 Latency=144.228us Latency/Op=72.114us Throughput=14.5405G/s
move/api:c/path:dsa/exec:async/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/real_time/threads:16      81297 ns      1297643 ns         5120 Latency=81.2965us Latency/Op=81.2965us Throughput=12.8982G/s
";

    #[test]
    fn the_table_of_the_guide_is_printed_exactly() {
        let measured = [
            (0, 833_022.0, 831_025.0, 503),
            (1, 763_158.0, 760_850.0, 549),
            (2, 361_855.0, 722_324.0, 1134),
            (4, 182_710.0, 729_806.0, 2132),
            (8, 144_228.0, 1_151_468.0, 2896),
            (16, 81_296.52, 1_297_643.0, 5120),
        ];
        let case = |threads: u32| Case {
            exec: if threads == 0 {
                Exec::Sync
            } else {
                Exec::Async
            },
            threads: threads.max(1),
            ..SEED
        };
        let names: Vec<String> = measured.iter().map(|m| case(m.0).to_string()).collect();
        let names = names.iter().map(String::as_str);
        let layout = Layout::new(names, 1, false, TimeUnit::Ns);
        let mut text = layout.head(&["Latency"]);
        for (threads, real_ns, cpu_ns, iterations) in measured {
            let timing = Timing {
                iterations,
                real_ns,
                cpu_ns,
            };
            let at = Position {
                family: 0,
                instance: 0,
            };
            let case = case(threads);
            for row in rows(&case, at, &[(timing, timing.counters(&case))]) {
                text += &layout.row(&row);
            }
        }
        assert_eq!(text, GUIDE);
    }
}
