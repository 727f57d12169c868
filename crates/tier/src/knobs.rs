//! The controls: those of kernels-with-dsa by their names, and ours.

use dray_placement::kernel;
use thiserror::Error;

use crate::mechanism::{BASE_SLOTS, HUGE_SLOTS};

/// Pages of the longest list that is copied at once.
const LONGEST_LIST: u64 = BASE_SLOTS + HUGE_SLOTS * 512;

/// A control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Knob {
    /// The device is set up.
    DsaState,
    /// The device copies.
    UseDsaCopyPages,
    /// Several cores copy.
    CpuMultiCopyPages,
    /// Base pages, too, go to the device or to several cores, as one list with the huge ones.
    UseConcurToDemote,
    /// Compaction is the kernel's.
    UseConcurToCompact,
    /// Channels of the device.
    LimitChans,
    /// Threads that copy.
    LimitMtNum,
    /// Lists of fewer pages are copied by a core.
    DsaCopyThreshold,
    /// Room kept free in the fast tier, in ten-thousandths of it.
    DemoteScaleFactor,
    /// MB/s that are promoted at most.
    PromoteRateLimit,
    /// Percent of a core that tracking may cost.
    Overhead,
    /// Milliseconds between two decisions.
    IntervalMs,
    /// Milliseconds in which a block that moved does not move back.
    PingPongMs,
    /// Milliseconds after which access counts are halved.
    CoolingMs,
    /// The histograms are recorded.
    Timer,
    /// Base pages of a call at most.
    BatchPages,
}

/// What a control can be.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// Which.
    pub knob: Knob,
    /// Its name.
    pub name: &'static str,
    /// Its first value.
    pub default: u64,
    /// Least and most.
    pub range: (u64, u64),
    /// What it does.
    pub help: &'static str,
}

const fn define(
    knob: Knob,
    name: &'static str,
    default: u64,
    range: (u64, u64),
    help: &'static str,
) -> Definition {
    Definition {
        knob,
        name,
        default,
        range,
        help,
    }
}

/// All controls, in the order of [`Knob`]. Defaults of the first eight are those of kernels-with-dsa
/// where it names them; `demote_scale_factor` is the TPP kernel's.
pub const KNOBS: [Definition; 16] = [
    define(
        Knob::DsaState,
        "dsa_state",
        0,
        (0, 1),
        "1 sets the device up, 0 releases it",
    ),
    define(
        Knob::UseDsaCopyPages,
        "use_dsa_copy_pages",
        0,
        (0, 1),
        "the device copies pages; after dsa_state=1",
    ),
    define(
        Knob::CpuMultiCopyPages,
        "cpu_multi_copy_pages",
        0,
        (0, 1),
        "limit_mt_num threads copy pages",
    ),
    define(
        Knob::UseConcurToDemote,
        "use_concur_to_demote",
        1,
        (0, 1),
        "0: the device and threads copy huge pages alone, base pages a core",
    ),
    define(
        Knob::UseConcurToCompact,
        "use_concur_to_compact",
        0,
        (0, 0),
        "compaction is the kernel's: it has no meaning here",
    ),
    define(
        Knob::LimitChans,
        kernel::LIMIT_CHANS,
        kernel::DEFAULT_CHANS,
        (1, 8),
        "channels of the device; not while use_dsa_copy_pages is 1",
    ),
    define(
        Knob::LimitMtNum,
        kernel::LIMIT_MT_NUM,
        kernel::DEFAULT_MT_NUM,
        (1, 64),
        "threads that copy pages",
    ),
    define(
        Knob::DsaCopyThreshold,
        kernel::DSA_COPY_THRESHOLD,
        kernel::DEFAULT_THRESHOLD,
        (1, LONGEST_LIST),
        "lists of fewer pages are copied by a core",
    ),
    define(
        Knob::DemoteScaleFactor,
        "demote_scale_factor",
        200,
        (1, 5000),
        "room kept free in the fast tier, in ten-thousandths of it",
    ),
    define(
        Knob::PromoteRateLimit,
        "promote_rate_limit_MBps",
        65536,
        (0, 1 << 20),
        "MB/s that are promoted at most",
    ),
    define(
        Knob::Overhead,
        "overhead",
        1,
        (0, 100),
        "percent of a core that tracking may cost",
    ),
    define(
        Knob::IntervalMs,
        "interval_ms",
        100,
        (1, 60_000),
        "milliseconds between two decisions",
    ),
    define(
        Knob::PingPongMs,
        "ping_pong_ms",
        2000,
        (0, 3_600_000),
        "milliseconds in which a block that moved does not move back",
    ),
    define(
        Knob::CoolingMs,
        "cooling_ms",
        2000,
        (1, 3_600_000),
        "milliseconds after which access counts are halved",
    ),
    define(
        Knob::Timer,
        "timer",
        0,
        (0, 1),
        "1 clears the histograms and records, 0 stops recording",
    ),
    define(
        Knob::BatchPages,
        "batch_pages",
        0,
        (0, BASE_SLOTS),
        "4 KiB pages of a call at most, who touches one waits; 0: four times the knee",
    ),
];

/// Why a control cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KnobError {
    /// There is none of that name.
    #[error("there is no knob `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
    /// Not `NAME=NUMBER`.
    #[error("`{text}` is not NAME=NUMBER")]
    Syntax {
        /// What was written.
        text: String,
    },
    /// Out of range.
    #[error("{name}={value} is out of range: {least} to {most}")]
    Range {
        /// The name.
        name: &'static str,
        /// The value.
        value: u64,
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
    /// It belongs to the kernel.
    #[error("{name} has no meaning outside a kernel: compaction is the kernel's")]
    NoMeaning {
        /// The name.
        name: &'static str,
    },
    /// Another control excludes it.
    #[error("{name}={value} cannot be set while {other}={is}")]
    Order {
        /// The name.
        name: &'static str,
        /// The value.
        value: u64,
        /// The control that excludes it.
        other: &'static str,
        /// What that is.
        is: u64,
    },
}

#[cfg(feature = "command")]
impl KnobError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { name } => dray_suggest::suggest(name, KNOBS.map(|knob| knob.name)),
            Self::Syntax { .. } => "for example limit_mt_num=4".to_owned(),
            Self::Range { .. } | Self::NoMeaning { .. } => {
                "`dray tier set` lists all knobs".to_owned()
            }
            Self::Order { other, is, .. } => {
                format!("dray tier set {other}={} first", 1 - is.min(&1))
            }
        }
    }
}

/// One control by its name.
pub fn find(name: &str) -> Option<&'static Definition> {
    KNOBS.iter().find(|knob| knob.name == name)
}

/// `NAME=NUMBER`.
///
/// # Errors
/// [`KnobError`]: no such knob, no number, out of range.
pub fn parse(text: &str) -> Result<(&'static Definition, u64), KnobError> {
    let syntax = || KnobError::Syntax {
        text: text.to_owned(),
    };
    let (name, value) = text.split_once('=').ok_or_else(syntax)?;
    let definition = find(name.trim()).ok_or_else(|| KnobError::Unknown {
        name: name.trim().to_owned(),
    })?;
    let value: u64 = value.trim().parse().map_err(|_| syntax())?;
    let (least, most) = definition.range;
    if value < least || value > most {
        if definition.knob == Knob::UseConcurToCompact {
            return Err(KnobError::NoMeaning {
                name: definition.name,
            });
        }
        return Err(KnobError::Range {
            name: definition.name,
            value,
            least,
            most,
        });
    }
    Ok((definition, value))
}

/// The rules of order: what must be set before what.
///
/// # Errors
/// [`KnobError::Order`].
pub fn check_order(
    definition: &Definition,
    value: u64,
    current: impl Fn(Knob) -> u64,
) -> Result<(), KnobError> {
    let against = |other: Knob, is: u64| {
        let name = KNOBS[other as usize].name;
        match current(other) == is {
            true => Err(KnobError::Order {
                name: definition.name,
                value,
                other: name,
                is,
            }),
            false => Ok(()),
        }
    };
    match (definition.knob, value) {
        (Knob::UseDsaCopyPages, 1) => {
            against(Knob::DsaState, 0)?;
            against(Knob::CpuMultiCopyPages, 1)
        }
        (Knob::CpuMultiCopyPages, 1) => against(Knob::UseDsaCopyPages, 1),
        (Knob::DsaState, 0) => against(Knob::UseDsaCopyPages, 1),
        (Knob::LimitChans, value) if value != current(Knob::LimitChans) => {
            against(Knob::UseDsaCopyPages, 1)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_in_the_order_of_knobs() {
        for (index, definition) in KNOBS.iter().enumerate() {
            assert_eq!(definition.knob as usize, index);
            let (least, most) = definition.range;
            assert!((least..=most).contains(&definition.default));
        }
    }

    #[test]
    fn unknown_knobs_and_bad_values_are_named() {
        let error = |text: &str| parse(text).expect_err(text).to_string();
        assert_eq!(error("x=1"), "there is no knob `x`");
        assert_eq!(error("limit_chans"), "`limit_chans` is not NAME=NUMBER");
        assert_eq!(
            error("limit_chans=9"),
            "limit_chans=9 is out of range: 1 to 8"
        );
        assert_eq!(
            error("limit_chans=-1"),
            "`limit_chans=-1` is not NAME=NUMBER"
        );
        assert_eq!(
            error("dsa_copy_threshold=99999"),
            "dsa_copy_threshold=99999 is out of range: 1 to 13312"
        );
        assert!(error("use_concur_to_compact=1").contains("no meaning outside a kernel"));
    }

    #[cfg(feature = "command")]
    #[test]
    fn unknown_knobs_have_a_suggestion() {
        let hint = |text: &str| parse(text).expect_err(text).hint();
        assert_eq!(hint("limit_chan=1"), "did you mean `limit_chans`?");
        assert_eq!(hint("ovrhead=1"), "did you mean `overhead`?");
        assert!(hint("x=1").starts_with("known: dsa_state, use_dsa_copy_pages, "));
    }

    #[test]
    fn knobs_that_need_another_first_are_refused() {
        let mut values: Vec<u64> = KNOBS.iter().map(|knob| knob.default).collect();
        let mut set = |text: &str| {
            let (definition, value) = parse(text).expect("well written");
            check_order(definition, value, |knob| values[knob as usize])?;
            values[definition.knob as usize] = value;
            Ok::<(), KnobError>(())
        };
        let message = |result: Result<(), KnobError>| result.expect_err("refused").to_string();
        assert_eq!(
            message(set("use_dsa_copy_pages=1")),
            "use_dsa_copy_pages=1 cannot be set while dsa_state=0"
        );
        assert_eq!(set("limit_chans=4"), Ok(()));
        assert_eq!(set("dsa_state=1"), Ok(()));
        assert_eq!(set("use_dsa_copy_pages=1"), Ok(()));
        assert_eq!(
            message(set("limit_chans=2")),
            "limit_chans=2 cannot be set while use_dsa_copy_pages=1"
        );
        assert_eq!(
            message(set("dsa_state=0")),
            "dsa_state=0 cannot be set while use_dsa_copy_pages=1"
        );
        assert!(set("cpu_multi_copy_pages=1").is_err());
        assert_eq!(set("use_dsa_copy_pages=0"), Ok(()));
        assert_eq!(set("dsa_state=0"), Ok(()));
    }
}
