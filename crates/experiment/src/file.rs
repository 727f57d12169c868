//! An experiment as a file.

use std::path::Path;

use crate::error::Result;
use crate::fields::{Fields, read};
use crate::location::Location;
use crate::panel::{Context, Panel};
use crate::point::Point;
use crate::value::Value;
use crate::vocabulary::{BACKEND, Vocabulary};

/// Points that one experiment may have.
pub const MAX_POINTS: usize = 1_000_000;

/// An experiment: what is run, and what is drawn of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name on the command line and of its files.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What it reproduces.
    pub published: String,
    /// What its pictures do otherwise than the published one, and why.
    pub differs: Option<String>,
    /// The backends that it applies to, in the order in which they are run.
    pub backends: Vec<String>,
    /// Paragraphs for the report.
    pub intro: Vec<String>,
    /// What in it is a guess, if anything is.
    pub guess: Option<String>,
    /// The ids of the reference tables shown beside it.
    pub reference: Vec<String>,
    /// Parameters with one value, in the order of the file.
    pub fixed: Vec<(String, Value)>,
    /// Parameters with several values, the outermost loop first.
    pub sweep: Vec<(String, Vec<Value>)>,
    /// The charts.
    pub panels: Vec<Panel>,
    vocabulary: Vocabulary,
}

const KEYS: &[&str] = &[
    "id",
    "title",
    "published",
    "differs",
    "backends",
    "intro",
    "guess",
    "reference",
    "fixed",
    "sweep",
    "panel",
];

impl Experiment {
    /// Reads an experiment from the text of a file; `origin` names the file in errors.
    ///
    /// Errors: not TOML, a key that is unknown or missing, a name, value or backend outside of the
    /// vocabulary, a sweep that expands to nothing, a panel that speaks of what is not there, more
    /// than [`MAX_POINTS`] points.
    pub fn parse(text: &str, origin: &str, vocabulary: &Vocabulary) -> Result<Self> {
        let file = Fields::parse(text, origin, KEYS)?;
        let mut experiment = Self {
            id: file.id("id")?,
            title: file.text("title")?,
            published: file.text("published")?,
            differs: file.optional_text("differs")?,
            backends: backends(&file, vocabulary)?,
            intro: file.texts("intro")?,
            guess: file.optional_text("guess")?,
            reference: file.texts("reference")?,
            fixed: Vec::new(),
            sweep: Vec::new(),
            panels: Vec::new(),
            vocabulary: *vocabulary,
        };
        experiment.read_fixed(&file)?;
        experiment.read_sweep(&file)?;
        experiment.refuse_too_many(Location {
            origin,
            key: "sweep",
        })?;

        let parameters = experiment.parameters();
        let context = Context {
            id: &experiment.id,
            title: &experiment.title,
            parameters: &parameters,
            vocabulary,
        };
        experiment.panels = context.panels(&file)?;
        Ok(experiment)
    }

    /// Reads an experiment from a file.
    ///
    /// Errors: those of [`Experiment::parse`], and a file that cannot be read.
    pub fn load(path: &Path, vocabulary: &Vocabulary) -> Result<Self> {
        Self::parse(&read(path)?, &path.display().to_string(), vocabulary)
    }

    /// The points, without backend: the fixed parameters, then the swept ones, the last of which
    /// changes fastest.
    pub fn points(&self) -> Vec<Point> {
        let mut points = vec![Point::new(self.fixed.iter().cloned())];
        for (name, values) in &self.sweep {
            let longer = points.iter().flat_map(|point| {
                values
                    .iter()
                    .map(move |value| point.with(name, value.clone()))
            });
            points = longer.collect();
        }
        points
    }

    /// Gives a parameter other values, as `--set wq_size=1..128*2` does.
    ///
    /// A swept parameter keeps its place in the order of the loops; a fixed one that gets several
    /// values becomes the outermost loop, and so does one that the experiment did not name.
    /// Panels that did not separate its values get them as series; a panel whose `where` no longer
    /// finds its value has no points. Backends are set by the field.
    ///
    /// Errors: an unknown name, no value, a value outside of the vocabulary or given twice, more
    /// than [`MAX_POINTS`] points. The experiment is then as it was.
    pub fn set(&mut self, name: &str, values: &[Value]) -> Result<()> {
        let location = Location {
            origin: "--set",
            key: name,
        };
        refuse_backend(location, name)?;
        self.vocabulary
            .check_name(name)
            .map_err(|reason| location.parameter(reason))?;
        let values = location.checked(name, values, &self.vocabulary)?;

        let mut changed = self.clone();
        if let Some((_, known)) = changed.sweep.iter_mut().find(|(known, _)| known == name) {
            *known = values;
        } else if let [value] = values.as_slice() {
            match changed.fixed.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = value.clone(),
                None => changed.fixed.push((name.to_owned(), value.clone())),
            }
        } else {
            changed.fixed.retain(|(known, _)| known != name);
            changed.sweep.insert(0, (name.to_owned(), values));
        }
        if changed.values(name).len() > 1 {
            changed
                .panels
                .iter_mut()
                .for_each(|panel| panel.tell_apart(name));
        }
        changed.refuse_too_many(location)?;
        *self = changed;
        Ok(())
    }

    /// All values of a parameter (or of the backend) in their order; empty if it has none.
    pub fn values(&self, name: &str) -> Vec<Value> {
        let mut parameters = self.parameters().into_iter();
        parameters
            .find(|(known, _)| known == name)
            .map(|(_, values)| values)
            .unwrap_or_default()
    }

    /// All parameters with all their values, the backend last.
    fn parameters(&self) -> Vec<(String, Vec<Value>)> {
        let fixed = self
            .fixed
            .iter()
            .map(|(name, value)| (name.clone(), vec![value.clone()]));
        let backends = self
            .backends
            .iter()
            .map(|backend| backend.as_str().into())
            .collect();
        let backend = (BACKEND.to_owned(), backends);
        fixed
            .chain(self.sweep.iter().cloned())
            .chain([backend])
            .collect()
    }

    fn read_fixed(&mut self, file: &Fields<'_>) -> Result<()> {
        for (name, found) in file.pairs("fixed")? {
            let key = format!("fixed.{name}");
            let location = Location {
                origin: file.origin(),
                key: &key,
            };
            refuse_backend(location, &name)?;
            let value = location.value(&found)?;
            let value = self
                .vocabulary
                .check(&name, &value)
                .map_err(|reason| location.parameter(reason))?;
            self.fixed.push((name, value));
        }
        Ok(())
    }

    fn read_sweep(&mut self, file: &Fields<'_>) -> Result<()> {
        for (name, found) in file.pairs("sweep")? {
            let key = format!("sweep.{name}");
            let location = Location {
                origin: file.origin(),
                key: &key,
            };
            refuse_backend(location, &name)?;
            let values = location.values(&name, &found, &self.vocabulary)?;
            if self.fixed.iter().any(|(known, _)| *known == name) {
                let fix = "take it out of one of the two";
                return Err(location.invalid(found, "is under [fixed] already", fix));
            }
            self.sweep.push((name, values));
        }
        Ok(())
    }

    fn refuse_too_many(&self, location: Location<'_>) -> Result<()> {
        let lengths = self.sweep.iter().map(|(_, values)| values.len());
        let points = lengths.fold(1usize, usize::saturating_mul);
        if points <= MAX_POINTS {
            return Ok(());
        }
        let problem = format!("is above the limit of {MAX_POINTS} points");
        Err(location.invalid(format!("{points} points"), problem, "take larger steps"))
    }
}

fn backends(file: &Fields<'_>, vocabulary: &Vocabulary) -> Result<Vec<String>> {
    let backends = file.texts("backends")?;
    if backends.is_empty() {
        let known = vocabulary.backends().first().copied().unwrap_or("model");
        return Err(file.missing("backends", format!("those it applies to, as [\"{known}\"]")));
    }
    let location = Location {
        origin: file.origin(),
        key: "backends",
    };
    let values: Vec<Value> = backends
        .iter()
        .map(|backend| backend.as_str().into())
        .collect();
    location.checked(BACKEND, &values, vocabulary)?;
    Ok(backends)
}

fn refuse_backend(location: Location<'_>, name: &str) -> Result<()> {
    if name != BACKEND {
        return Ok(());
    }
    let problem = "is chosen for each run and is no parameter to set";
    Err(location.invalid(name, problem, "name the backends under `backends`"))
}
