//! What is offloaded, and how: the environment variables of DTO, with the defaults that its code has
//! (its README says otherwise in places), and a few more.

use std::time::Duration;

pub use dray_placement::dto;
use thiserror::Error;

/// Least and most bytes that a threshold can have.
pub const MIN_BYTES_RANGE: [u64; 2] = [1, 1 << 40];
/// Percent of a call that the core can take at most.
pub const MOST_CORE_PERCENT: usize = 99;

/// Most seconds that a deadline can have: a day.
pub const MOST_SECONDS: f64 = 86400.0;

/// Variables of this library's own.
pub const MOVER: &str = "DRAY_OFFLOAD_MOVER";
/// What is done about page faults.
pub const FAULTS: &str = "DRAY_OFFLOAD_FAULTS";
/// Seconds that a call waits for a completion; 0: for ever.
pub const DEADLINE: &str = "DRAY_OFFLOAD_DEADLINE";
/// Whether calls below the threshold are counted.
pub const COUNT_SMALL: &str = "DRAY_OFFLOAD_COUNT_SMALL";
/// File with the counters of a session.
pub const SESSION: &str = "DRAY_OFFLOAD_SESSION";

/// File of a survey: calls are counted by place, and none is offloaded.
pub const SURVEY: &str = "DRAY_OFFLOAD_SURVEY";

/// File of a recording: calls are recorded, and none is offloaded.
pub const RECORD: &str = "DRAY_OFFLOAD_RECORD";

/// Who executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mover {
    /// The work queues of this machine; the core if there are none, as DTO has it.
    #[default]
    HwOrCpu,
    /// The work queues of this machine.
    Hw,
    /// The virtual device, on a thread of the program.
    Virtual,
    /// The core: calls are counted.
    Cpu,
}

impl Mover {
    /// As in the variable.
    pub const fn name(self) -> &'static str {
        match self {
            Mover::HwOrCpu => "hw-or-cpu",
            Mover::Hw => "hw",
            Mover::Virtual => "virtual",
            Mover::Cpu => "cpu",
        }
    }
}

/// How a thread waits for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// PAUSE between looks.
    #[default]
    Busypoll,
    /// UMWAIT on the completion record.
    Umwait,
    /// Other threads run between looks.
    Yield,
    /// TPAUSE between looks.
    Tpause,
}

/// Which work queue a call goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numa {
    /// One after the other.
    #[default]
    Any,
    /// On the node of the destination, or of the second operand of a comparison.
    Buffer,
    /// On the node of the core.
    Core,
}

/// What is done about a page fault of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Faults {
    /// The pages are made present and the device goes on, once; the core does what is left then.
    #[default]
    Resume,
    /// The core does what is left, as in DTO.
    Core,
}

/// What is offloaded, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Who executes.
    pub mover: Mover,
    /// Everything goes to the C library (`DTO_USESTDC_CALLS`).
    pub use_stdc: bool,
    /// The library itself prints a histogram at exit (`DTO_COLLECT_STATS`).
    pub collect_stats: bool,
    /// `DTO_WAIT_METHOD`
    pub wait: Wait,
    /// The variable has named it: DTO adapts otherwise where nothing has.
    pub wait_is_stated: bool,
    /// Bytes from which on calls are offloaded (`DTO_MIN_BYTES`).
    pub min_bytes: u64,
    /// Percent of a call that the core does meanwhile (`DTO_CPU_SIZE_FRACTION`).
    pub core_percent: usize,
    /// The two above follow the load (`DTO_AUTO_ADJUST_KNOBS`).
    pub adapt: bool,
    /// `DTO_IS_NUMA_AWARE`
    pub numa: Numa,
    /// Names of work queues (`DTO_WQ_LIST`); empty: all shared ones, or else the dedicated ones.
    pub queues: Vec<String>,
    /// Which calls are taken (`DTO_DSA_MEMCPY` and so on), by [`Call`](crate::calls::Call).
    pub calls: [bool; 4],
    /// Destinations go to the cache, where the device can (`DTO_DSA_CC`).
    pub cache_control: bool,
    /// Moves whose buffers overlap go to the device (`DTO_OVERLAPPING_MEMMOVE_ACTION`).
    pub overlap_on_device: bool,
    /// Cycles of one UMWAIT (`DTO_UMWAIT_DELAY`).
    pub umwait_cycles: u64,
    /// Beginning of the name of the file with the histogram (`DTO_LOG_FILE`).
    pub log_file: Option<String>,
    /// 0: silent but for what is fatal; 1: errors; 2: all (`DTO_LOG_LEVEL`).
    pub log_level: u8,
    /// What is done about page faults.
    pub faults: Faults,
    /// How long a call waits for a completion; zero: for ever. Then the core finishes a comparison. After a
    /// copy or a fill, whose destination the device may still write to, the program is aborted.
    pub deadline: Duration,
    /// Calls below the threshold are counted, too.
    pub count_small: bool,
    /// File with the counters of a session.
    pub session: Option<String>,
    /// File of a survey.
    pub survey: Option<String>,
    /// File of a recording.
    pub record: Option<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mover: Mover::default(),
            use_stdc: false,
            collect_stats: false,
            wait: Wait::default(),
            wait_is_stated: false,
            min_bytes: dto::DEFAULT_MIN_BYTES,
            core_percent: 0,
            adapt: true,
            numa: Numa::default(),
            queues: Vec::new(),
            calls: [true; 4],
            cache_control: true,
            overlap_on_device: false,
            umwait_cycles: 100_000,
            log_file: None,
            log_level: 0,
            faults: Faults::default(),
            deadline: Duration::from_secs(60),
            count_small: false,
            session: None,
            survey: None,
            record: None,
        }
    }
}

/// A variable that cannot be what it says.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name}={value:?}: {expected}")]
pub struct SettingError {
    /// The variable.
    pub name: &'static str,
    /// What it says.
    pub value: String,
    /// What it can be.
    pub expected: &'static str,
}

impl Settings {
    /// The settings that variables ask for; each variable that makes no sense is left at its
    /// default, and said.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> (Settings, Vec<SettingError>) {
        let mut read = Reader {
            variable,
            errors: Vec::new(),
        };
        let default = Settings::default();
        let calls = dto::CALLS.map(|name| read.switch(name, true));
        let settings = Settings {
            mover: read.word(
                MOVER,
                "one of hw-or-cpu, hw, virtual, cpu",
                &[Mover::HwOrCpu, Mover::Hw, Mover::Virtual, Mover::Cpu].map(|m| (m.name(), m)),
            ),
            use_stdc: read.switch(dto::USESTDC_CALLS, false),
            collect_stats: read.switch(dto::COLLECT_STATS, false),
            wait: read.word(
                dto::WAIT_METHOD,
                "one of busypoll, umwait, yield, tpause",
                &[
                    ("busypoll", Wait::Busypoll),
                    ("umwait", Wait::Umwait),
                    ("yield", Wait::Yield),
                    ("tpause", Wait::Tpause),
                ],
            ),
            wait_is_stated: read.text(dto::WAIT_METHOD).is_some_and(|text| {
                ["busypoll", "umwait", "yield", "tpause"].contains(&text.trim())
            }),
            min_bytes: read.number(dto::MIN_BYTES, default.min_bytes, MIN_BYTES_RANGE),
            core_percent: read.percent(dto::CPU_SIZE_FRACTION),
            adapt: read.switch(dto::AUTO_ADJUST_KNOBS, true),
            numa: match read.number(dto::IS_NUMA_AWARE, 0, [0, 2]) {
                1 => Numa::Buffer,
                2 => Numa::Core,
                _ => Numa::Any,
            },
            queues: read.list(dto::WQ_LIST),
            calls,
            cache_control: read.switch(dto::CACHE_CONTROL, true),
            overlap_on_device: read.switch(dto::OVERLAPPING_MEMMOVE_ACTION, false),
            umwait_cycles: read.number(dto::UMWAIT_DELAY, default.umwait_cycles, [1, 1 << 32]),
            log_file: read.text(dto::LOG_FILE),
            log_level: read
                .number(dto::LOG_LEVEL, 0, [0, u64::from(u32::MAX)])
                .min(2) as u8,
            faults: read.word(
                FAULTS,
                "one of resume, core",
                &[("resume", Faults::Resume), ("core", Faults::Core)],
            ),
            deadline: read.seconds(DEADLINE, default.deadline),
            count_small: read.switch(COUNT_SMALL, false),
            session: read.text(SESSION),
            survey: read.text(SURVEY),
            record: read.text(RECORD),
        };
        (settings, read.errors)
    }

    /// How long one TPAUSE lasts at most.
    #[cfg(feature = "preload")]
    pub(crate) const TPAUSE: Duration = Duration::from_micros(6);
}

struct Reader<F> {
    variable: F,
    errors: Vec<SettingError>,
}

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|text| !text.is_empty())
    }

    fn wrong<T>(&mut self, name: &'static str, value: String, expected: &'static str, or: T) -> T {
        self.errors.push(SettingError {
            name,
            value,
            expected,
        });
        or
    }

    fn switch(&mut self, name: &'static str, default: bool) -> bool {
        let Some(text) = self.text(name) else {
            return default;
        };
        match text.trim().parse::<u64>() {
            Ok(number) => number != 0,
            Err(_) => self.wrong(name, text, "0 or 1", default),
        }
    }

    fn number(&mut self, name: &'static str, default: u64, [least, most]: [u64; 2]) -> u64 {
        let Some(text) = self.text(name) else {
            return default;
        };
        match text.trim().parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => number,
            Ok(_) => self.wrong(name, text, "a number that is out of range", default),
            Err(_) => self.wrong(name, text, "a number is expected", default),
        }
    }

    fn percent(&mut self, name: &'static str) -> usize {
        let Some(text) = self.text(name) else {
            return 0;
        };
        match text.trim().parse::<f64>() {
            Ok(part) if (0.0..1.0).contains(&part) => {
                ((part * 100.0) as usize).min(MOST_CORE_PERCENT)
            }
            _ => self.wrong(name, text, "a fraction of 0 or more and below 1", 0),
        }
    }

    fn seconds(&mut self, name: &'static str, default: Duration) -> Duration {
        let Some(text) = self.text(name) else {
            return default;
        };
        let number = text.trim().parse::<f64>().ok();
        let seconds = number.filter(|number| (0.0..=MOST_SECONDS).contains(number));
        match seconds.map(Duration::from_secs_f64) {
            Some(seconds) => seconds,
            None => self.wrong(name, text, "seconds are expected, 0 to 86400", default),
        }
    }

    fn word<T: Copy + Default>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        words: &[(&str, T)],
    ) -> T {
        let Some(text) = self.text(name) else {
            return T::default();
        };
        match words.iter().find(|(word, _)| *word == text.trim()) {
            Some((_, value)) => *value,
            None => self.wrong(name, text, expected, T::default()),
        }
    }

    fn list(&mut self, name: &'static str) -> Vec<String> {
        let Some(text) = self.text(name) else {
            return Vec::new();
        };
        let names = text.split(';').map(str::trim);
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        match names.iter().all(|name| is_queue(name)) {
            true => names.into_iter().map(str::to_owned).collect(),
            false => {
                let expected = "names of work queues are expected, such as wq0.0;wq2.0";
                self.wrong(name, text, expected, Vec::new())
            }
        }
    }
}

/// Whether it is the name of a work queue: `wq0.1`.
pub fn is_queue(name: &str) -> bool {
    let numbers = name
        .strip_prefix("wq")
        .and_then(|rest| rest.split_once('.'));
    numbers.is_some_and(|(device, queue)| {
        device.parse::<u16>().is_ok() && queue.parse::<u16>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> (Settings, Vec<SettingError>) {
        Settings::from_variables(|name| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_variables_the_defaults_are_those_of_the_code_of_dto() {
        let (settings, errors) = of(&[]);
        assert_eq!((settings, errors), (Settings::default(), vec![]));
        let settings = Settings::default();
        // dto.c: DTO_DEFAULT_MIN_SIZE, WAIT_BUSYPOLL, auto_adjust_knobs, UMWAIT_DELAY_DEFAULT.
        assert_eq!(settings.min_bytes, 65536);
        assert_eq!(settings.wait, Wait::Busypoll);
        assert_eq!((settings.core_percent, settings.adapt), (0, true));
        assert_eq!(settings.umwait_cycles, 100_000);
        assert!(settings.cache_control && !settings.overlap_on_device);
    }

    #[test]
    fn each_variable_is_honoured() {
        let (settings, errors) = of(&[
            ("DTO_USESTDC_CALLS", "1"),
            ("DTO_COLLECT_STATS", "1"),
            ("DTO_WAIT_METHOD", "yield"),
            ("DTO_MIN_BYTES", "8192"),
            ("DTO_CPU_SIZE_FRACTION", "0.33"),
            ("DTO_AUTO_ADJUST_KNOBS", "0"),
            ("DTO_IS_NUMA_AWARE", "2"),
            ("DTO_WQ_LIST", "wq0.0;wq2.1;"),
            ("DTO_DSA_MEMSET", "0"),
            ("DTO_DSA_CC", "0"),
            ("DTO_OVERLAPPING_MEMMOVE_ACTION", "1"),
            ("DTO_UMWAIT_DELAY", "5000"),
            ("DTO_LOG_FILE", "/tmp/dto"),
            ("DTO_LOG_LEVEL", "7"),
            (MOVER, "virtual"),
            (FAULTS, "core"),
            (DEADLINE, "0.5"),
            (COUNT_SMALL, "1"),
            (SESSION, "/tmp/session"),
            (SURVEY, "/tmp/survey"),
            (RECORD, "/tmp/recording"),
        ]);
        assert_eq!(errors, vec![]);
        let expected = Settings {
            mover: Mover::Virtual,
            use_stdc: true,
            collect_stats: true,
            wait: Wait::Yield,
            wait_is_stated: true,
            min_bytes: 8192,
            core_percent: 33,
            adapt: false,
            numa: Numa::Core,
            queues: vec!["wq0.0".to_owned(), "wq2.1".to_owned()],
            calls: [true, true, false, true],
            cache_control: false,
            overlap_on_device: true,
            umwait_cycles: 5000,
            log_file: Some("/tmp/dto".to_owned()),
            log_level: 2,
            faults: Faults::Core,
            deadline: Duration::from_millis(500),
            count_small: true,
            session: Some("/tmp/session".to_owned()),
            survey: Some("/tmp/survey".to_owned()),
            record: Some("/tmp/recording".to_owned()),
        };
        assert_eq!(settings, expected);
    }

    #[test]
    fn invalid_variables_are_reported_and_keep_their_default() {
        let wrong = [
            ("DTO_MIN_BYTES", "much"),
            ("DTO_MIN_BYTES", "0"),
            ("DTO_MIN_BYTES", "-1"),
            ("DTO_MIN_BYTES", "99999999999999999999"),
            ("DTO_CPU_SIZE_FRACTION", "1.0"),
            ("DTO_CPU_SIZE_FRACTION", "NaN"),
            ("DTO_WAIT_METHOD", "sleep"),
            ("DTO_WQ_LIST", "wq0"),
            ("DTO_WQ_LIST", "../../etc/passwd"),
            ("DTO_IS_NUMA_AWARE", "3"),
            ("DTO_DSA_CC", "yes"),
            (MOVER, "gpu"),
            (DEADLINE, "-1"),
            (DEADLINE, "NaN"),
            (DEADLINE, "86401"),
            (DEADLINE, "1 minute"),
        ];
        for (name, value) in wrong {
            let (settings, errors) = of(&[(name, value)]);
            assert_eq!(settings, Settings::default(), "{name}={value}");
            assert_eq!(errors.len(), 1, "{name}={value}");
            assert_eq!(errors[0].name, name);
        }
    }
}
