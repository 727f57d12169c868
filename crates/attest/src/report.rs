//! What is done, in which order, and the document of it.

use std::time::{Duration, Instant};

use dray::hw::QueueInfo;
use dray_conformance::rules::rules;
use dray_device::DeviceConfig;
use serde::{Deserialize, Serialize};

use crate::AttestError;
use crate::ground::Ground;
use crate::litmus::{self, Litmus, Scene, cases};
use crate::machine::{Machine, Queue};
use crate::points::{self, Calibration, Points};
use crate::rows::{self, Row};
use crate::target::Target;
use crate::wait::Board;
use dray_realtime::Deviation;

/// Bytes of a document at most.
pub const MAX_BYTES: usize = 1 << 20;

/// Which queue is attested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// One of this machine: the first that can be used, or the one of this name.
    Hardware(Option<String>),
    /// One of a virtual device in this process.
    Virtual,
}

impl Source {
    /// Reads what was asked for: `hw`, `hw:wq0.1` or `virtual`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Source, String> {
        match text.split_once(':') {
            None if text == "hw" => Ok(Source::Hardware(None)),
            None if text == "virtual" => Ok(Source::Virtual),
            Some(("hw", queue)) if queue.starts_with("wq") && queue.contains('.') => {
                Ok(Source::Hardware(Some(queue.to_owned())))
            }
            _ => Err("hw, hw: and a work queue such as hw:wq0.1, or virtual".to_owned()),
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How often each case of order is run.
    pub litmus_times: usize,
    /// When no further point is measured.
    pub at_most: Duration,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            litmus_times: 200,
            at_most: Duration::from_secs(600),
        }
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Rules of the table that were tried, and all.
    Rules(usize, usize),
    /// Cases of order that were run, and all.
    Litmus(usize, usize),
    /// Points that were measured, and all.
    Points(usize, usize),
}

impl Plan {
    /// Rules of the table, and cases in them.
    pub fn rules() -> (usize, usize) {
        let rules = rules();
        let cases = rules.iter().map(|rule| rule.cases().count()).sum();
        (rules.len(), cases)
    }

    /// Cases of order.
    pub fn litmus() -> usize {
        cases().len()
    }

    /// Points at most.
    pub const fn points() -> usize {
        points::most()
    }
}

/// All that was found: the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attest {
    /// The kind of document: `attest`.
    pub document: String,
    /// Program and version.
    pub generator: String,
    /// The machine.
    pub machine: Machine,
    /// The device and its queue.
    pub queue: Queue,
    /// Rules of the specification.
    pub rows: Vec<Row>,
    /// Cases of order.
    pub litmus: Vec<Litmus>,
    /// Points of figures; of a virtual device in the process there are none.
    pub points: Option<Points>,
    /// What the points say of the platform's parameters.
    pub calibration: Option<Calibration>,
    /// How long it took.
    pub took_s: f64,
}

impl Attest {
    /// The value of `document`.
    pub const DOCUMENT: &'static str = "attest";

    /// Whether a row failed or an outcome was forbidden.
    pub fn deviates(&self) -> bool {
        self.failed_rows().next().is_some() || self.forbidden().next().is_some()
    }

    /// Cases of rules that were left out.
    pub fn left_out(&self) -> usize {
        let left = self.rows.iter().flat_map(|row| &row.left_out);
        left.map(|left| left.cases).sum()
    }

    /// Rows of which a case failed.
    pub fn failed_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.failed > 0)
    }

    /// Cases of order with an outcome that is not allowed.
    pub fn forbidden(&self) -> impl Iterator<Item = &Litmus> {
        let litmus = self.litmus.iter();
        litmus.filter(|litmus| litmus.forbidden().next().is_some())
    }
}

/// Attests a work queue of this machine. `told` returns false to stop.
///
/// # Errors
/// The queue cannot be used; it does not complete what it must; interrupted.
pub fn attest_hardware(
    queue: &QueueInfo,
    plan: Plan,
    told: &(dyn Fn(Step) -> bool + Sync),
) -> Result<Attest, AttestError> {
    let began = Instant::now();
    let mut attest = {
        let mut target = Target::hardware(queue)?;
        let machine = Machine::here(dray::hw::is_virtual());
        let ground = ground()?;
        let (scene, board) = (Scene::new()?, Board::new()?);
        attest(&mut target, machine, &ground, &scene, &board, plan, told)?
        // A dedicated queue has one client: it is closed before the points open it.
    };
    if plan.at_most.is_zero() {
        return Ok(attest);
    }
    let until = began + plan.at_most;
    let told = |n, of| told(Step::Points(n, of));
    let (points, calibration) = points::measure(&queue.name(), until, &told)?;
    attest.points = Some(points);
    attest.calibration = calibration;
    attest.took_s = began.elapsed().as_secs_f64();
    Ok(attest)
}

/// Attests a virtual device in this process.
///
/// # Errors
/// It cannot be started; interrupted.
pub fn attest_virtual(
    config: DeviceConfig,
    deviation: Option<Deviation>,
    plan: Plan,
    told: &dyn Fn(Step) -> bool,
) -> Result<Attest, AttestError> {
    let ground = ground()?;
    let (scene, board) = (Scene::new()?, Board::new()?);
    let space = ground.space(&[scene.area(), board.area()]);
    let mut target = Target::virtual_device(config, space, deviation)?;
    let machine = Machine::here(true);
    attest(&mut target, machine, &ground, &scene, &board, plan, told)
}

/// The memory of the table.
fn ground() -> Result<Ground, AttestError> {
    let rules = rules();
    let case = rules.first().and_then(|rule| rule.cases().next());
    let case = case.expect("the table has cases");
    Ground::new(&case.memory())
}

fn attest(
    target: &mut Target,
    machine: Machine,
    ground: &Ground,
    scene: &Scene,
    board: &Board,
    plan: Plan,
    told: &dyn Fn(Step) -> bool,
) -> Result<Attest, AttestError> {
    let began = Instant::now();
    board.try_noop(target)?;
    let rows = rows::check(target, ground, board, &|n, of| told(Step::Rules(n, of)))?;
    let all = cases();
    let count = all.len();
    let mut litmus = Vec::with_capacity(count);
    for (n, case) in (1..).zip(&all) {
        litmus.push(litmus::run(case, plan.litmus_times, target, scene, board)?);
        if !told(Step::Litmus(n, count)) {
            return Err(AttestError::Interrupted);
        }
    }
    Ok(Attest {
        document: Attest::DOCUMENT.to_owned(),
        generator: dray_figures::GENERATOR.to_owned(),
        machine,
        queue: Queue::of(target),
        rows,
        litmus,
        points: None,
        calibration: None,
        took_s: began.elapsed().as_secs_f64(),
    })
}
