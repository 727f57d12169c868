//! The outcomes of a run that is not finished, so that it can go on where it stopped.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::point::Point;
use crate::result::Outcome;

/// Where the outcomes lie below the output directory.
const DIRECTORY: &str = ".partial";
const FILE: &str = "results.jsonl";

/// An output directory that cannot be used, or an outcome that cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The output directory is a file.
    #[error("{} is not a directory; name another output directory, or move the file away", path.display())]
    NotADirectory {
        /// What was to be the output directory.
        path: PathBuf,
    },
    /// The output directory cannot be made or written.
    #[error("cannot write below {}; name an output directory that you may write to", path.display())]
    NotWritable {
        /// The output directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file of outcomes cannot be read.
    #[error("cannot read {}; remove it to start afresh", path.display())]
    NotReadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A metric that is not a finite number.
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
}

/// One line of the file. The fingerprint stands in each, so that a line is never taken for one of
/// another configuration, whatever else writes to the file.
#[derive(Serialize, Deserialize)]
struct Record {
    fingerprint: String,
    experiment: String,
    outcome: Outcome,
}

struct State {
    file: File,
    /// Whether the file ends in half a line, since a write failed.
    torn: bool,
    outcomes: HashMap<(String, String), Outcome>,
}

/// The outcomes of an unfinished run, by experiment and point; many threads may use it.
pub struct Store {
    directory: PathBuf,
    fingerprint: String,
    resumed: usize,
    state: Mutex<State>,
}

impl Store {
    /// Opens or makes the store below the output directory `dir`.
    ///
    /// The fingerprint says what the outcomes depend on besides their points (platform, profile,
    /// version, protocol): what was stored under another is dropped. So are lines that cannot be
    /// read, such as one that was being written when the program was killed.
    ///
    /// Errors: `dir` is a file, or cannot be made, read or written.
    pub fn open(dir: &Path, fingerprint: &str) -> Result<Self, StoreError> {
        if fs::metadata(dir).is_ok_and(|found| !found.is_dir()) {
            return Err(StoreError::NotADirectory {
                path: dir.to_owned(),
            });
        }
        let not_writable = |source| StoreError::NotWritable {
            path: dir.to_owned(),
            source,
        };
        let directory = dir.join(DIRECTORY);
        fs::create_dir_all(&directory).map_err(not_writable)?;
        let path = directory.join(FILE);
        let mut file = dray_output::growing(&path).map_err(not_writable)?;

        let mut bytes = Vec::new();
        let read = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.read_to_end(&mut bytes));
        read.map_err(|source| StoreError::NotReadable { path, source })?;
        let outcomes = outcomes(&bytes, fingerprint);
        let keep = if outcomes.is_empty() {
            0
        } else {
            whole_lines(&bytes)
        };
        if keep < bytes.len() {
            // A new record must not be glued to half of an old one.
            file.set_len(keep as u64).map_err(not_writable)?;
        }
        Ok(Self {
            directory: dir.to_owned(),
            fingerprint: fingerprint.to_owned(),
            resumed: outcomes.len(),
            state: Mutex::new(State {
                file,
                torn: false,
                outcomes,
            }),
        })
    }

    /// How many outcomes were there when the store was opened.
    pub fn resumed(&self) -> usize {
        self.resumed
    }

    /// The outcome of a point, if it is known.
    pub fn get(&self, experiment: &str, point: &Point) -> Option<Outcome> {
        let key = (experiment.to_owned(), point.key());
        self.state().outcomes.get(&key).cloned()
    }

    /// Keeps an outcome; it survives the end of the program from here on.
    ///
    /// Errors: a metric that is not a finite number; a full disk.
    pub fn put(&self, experiment: &str, outcome: &Outcome) -> Result<(), StoreError> {
        if let Some((metric, value)) = outcome.not_finite() {
            return Err(StoreError::NotFinite {
                experiment: experiment.to_owned(),
                point: outcome.point.to_string(),
                metric: metric.clone(),
                value: *value,
            });
        }
        let record = Record {
            fingerprint: self.fingerprint.clone(),
            experiment: experiment.to_owned(),
            outcome: outcome.clone(),
        };
        let not_writable = |source| StoreError::NotWritable {
            path: self.directory.clone(),
            source,
        };
        let mut line = serde_json::to_vec(&record).map_err(|error| not_writable(error.into()))?;
        line.push(b'\n');
        let mut state = self.state();
        if state.torn {
            // Ends what the disk had no room for, so that only that line is lost.
            line.insert(0, b'\n');
        }
        // One write for the whole line, and no buffer of ours between it and the system.
        let written = state.file.write_all(&line);
        state.torn = written.is_err();
        written.map_err(not_writable)?;
        state.outcomes.insert(
            (record.experiment, record.outcome.point.key()),
            record.outcome,
        );
        Ok(())
    }

    /// Removes what was stored: the run is complete and its results are written.
    ///
    /// Errors: the file cannot be removed.
    pub fn finish(self) -> Result<(), StoreError> {
        let directory = self.directory.join(DIRECTORY);
        match fs::remove_file(directory.join(FILE)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::NotWritable {
                    path: self.directory,
                    source,
                });
            }
            _ => {}
        }
        // Stays where someone else keeps a file in it.
        let _ = fs::remove_dir(directory);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked inside left whole lines and whole entries.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcomes of the lines that can be read and bear the fingerprint.
fn outcomes(bytes: &[u8], fingerprint: &str) -> HashMap<(String, String), Outcome> {
    let lines = bytes[..whole_lines(bytes)].split(|byte| *byte == b'\n');
    let records = lines.filter_map(|line| serde_json::from_slice::<Record>(line).ok());
    let ours = records.filter(|record| record.fingerprint == fingerprint);
    ours.map(|record| {
        (
            (record.experiment, record.outcome.point.key()),
            record.outcome,
        )
    })
    .collect()
}

/// The length up to the last end of a line.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provenance::Provenance;

    fn outcome(size: u64) -> Outcome {
        Outcome {
            point: Point::default().with("mode", "sync").with("size", size),
            metrics: vec![("latency_ns".into(), 0.1 * size as f64)],
            provenance: Provenance::Modelled,
            executor: "model".into(),
        }
    }

    fn file(directory: &Path) -> PathBuf {
        directory.join(DIRECTORY).join(FILE)
    }

    #[test]
    fn a_store_is_resumed_with_its_outcomes() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("new/dray-report");
        let store = Store::open(&output, "spr-2s").unwrap();
        assert_eq!(store.resumed(), 0);
        store.put("fig3", &outcome(256)).unwrap();
        store.put("fig4", &outcome(4096)).unwrap();
        drop(store);

        let store = Store::open(&output, "spr-2s").unwrap();
        assert_eq!(store.resumed(), 2);
        assert_eq!(store.get("fig3", &outcome(256).point), Some(outcome(256)));
        assert_eq!(store.get("fig3", &outcome(4096).point), None);
        let other_order = Point::default().with("size", 4096).with("mode", "sync");
        assert_eq!(store.get("fig4", &other_order), Some(outcome(4096)));

        store.finish().unwrap();
        assert_eq!(fs::read_dir(&output).unwrap().count(), 0);
        assert_eq!(Store::open(&output, "spr-2s").unwrap().resumed(), 0);
    }

    #[test]
    fn a_store_with_another_fingerprint_starts_empty() {
        let directory = tempfile::tempdir().unwrap();
        let first = Store::open(directory.path(), "spr-2s").unwrap();
        first.put("fig3", &outcome(256)).unwrap();
        let second = Store::open(directory.path(), "emr-2s").unwrap();
        assert_eq!(second.get("fig3", &outcome(256).point), None);
        assert_eq!(fs::metadata(file(directory.path())).unwrap().len(), 0);

        // Both programs go on, and neither takes what the other wrote.
        first.put("fig3", &outcome(1024)).unwrap();
        second.put("fig3", &outcome(4096)).unwrap();
        let again = Store::open(directory.path(), "emr-2s").unwrap();
        assert_eq!(again.resumed(), 1);
        assert_eq!(again.get("fig3", &outcome(4096).point), Some(outcome(4096)));
    }

    #[test]
    fn a_store_truncated_at_any_byte_keeps_its_whole_lines() {
        let directory = tempfile::tempdir().unwrap();
        let all = [outcome(256), outcome(1024), outcome(4096)];
        let store = Store::open(directory.path(), "spr-2s").unwrap();
        all.iter()
            .for_each(|outcome| store.put("fig3", outcome).unwrap());
        drop(store);
        let path = file(directory.path());
        let whole = fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let store = Store::open(directory.path(), "spr-2s").unwrap();
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(store.resumed(), lines, "cut at {cut}");
            for (index, outcome) in all.iter().enumerate() {
                let known = store.get("fig3", &outcome.point);
                assert_eq!(
                    known.as_ref(),
                    (index < lines).then_some(outcome),
                    "cut at {cut}"
                );
                if known.is_none() {
                    store.put("fig3", outcome).unwrap();
                }
            }
            drop(store);
            assert_eq!(fs::read(&path).unwrap(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_damaged_line_loses_only_its_outcome() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), "spr-2s").unwrap();
        store.put("fig3", &outcome(256)).unwrap();
        store.put("fig3", &outcome(1024)).unwrap();
        drop(store);
        let path = file(directory.path());
        let whole = fs::read(&path).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
        for at in 0..first {
            let mut damaged = whole.clone();
            damaged[at] = 0;
            fs::write(&path, &damaged).unwrap();
            let store = Store::open(directory.path(), "spr-2s").unwrap();
            assert_eq!(store.get("fig3", &outcome(256).point), None, "byte {at}");
            assert_eq!(
                store.get("fig3", &outcome(1024).point),
                Some(outcome(1024)),
                "byte {at}"
            );
        }
    }

    #[test]
    fn a_failed_write_does_not_damage_the_next_line() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), "spr-2s").unwrap();
        {
            let mut state = store.state();
            state.file.write_all(b"{\"fingerprint\":\"spr").unwrap();
            state.torn = true;
        }
        store.put("fig3", &outcome(256)).unwrap();
        store.put("fig3", &outcome(1024)).unwrap();
        assert_eq!(
            Store::open(directory.path(), "spr-2s").unwrap().resumed(),
            2
        );
    }

    #[test]
    fn outcomes_of_several_threads_are_all_stored() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), "spr-2s").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    (0..50).for_each(|n| store.put("fig3", &outcome(thread * 50 + n)).unwrap());
                });
            }
        });
        assert_eq!(
            Store::open(directory.path(), "spr-2s").unwrap().resumed(),
            200
        );
    }

    #[test]
    fn unusable_directories_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let taken = directory.path().join("taken");
        fs::write(&taken, "").unwrap();
        let error = Store::open(&taken, "").err().unwrap();
        assert!(matches!(error, StoreError::NotADirectory { .. }), "{error}");
        assert!(
            error.to_string().contains("taken is not a directory"),
            "{error}"
        );
        let error = Store::open(&taken.join("below"), "").err().unwrap();
        assert!(matches!(error, StoreError::NotWritable { .. }), "{error}");
        assert!(error.to_string().contains("taken/below"), "{error}");
    }

    #[test]
    fn metrics_that_are_no_finite_numbers_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), "").unwrap();
        let mut outcome = outcome(256);
        outcome.metrics[0].1 = f64::NAN;
        let error = store.put("fig3", &outcome).unwrap_err().to_string();
        assert!(
            error.contains("fig3: latency_ns = NaN at mode=sync, size=256"),
            "{error}"
        );
        assert_eq!(store.get("fig3", &outcome.point), None);
    }
}
