//! Lists and ranges of values as people type them.

use std::collections::HashSet;

use crate::value::{SizeError, Value, clip, parse_bytes};

/// Values that one sweep may expand to.
pub const MAX_VALUES: usize = 100_000;

/// The notation of sweeps: parts between commas, each a value or a range.
///
/// | part | values |
/// |---|---|
/// | `256`, `4k`, `sync` | itself |
/// | `0-3`, `0..3` | 0, 1, 2, 3 |
/// | `8..64+8` | 8, 16, ... up to 64 |
/// | `256..1M*4` | 256, 1024, ... up to 1M |
///
/// The end of a range belongs to it where a step reaches it.
pub struct Sweep;

/// Why a text is not a sweep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// Nothing between two commas, or nothing at all.
    #[error(
        "sweep `{text}` expands to nothing at its part {position}; \
         write values as 1,4,16 or a range as 256..1M*4"
    )]
    Empty {
        /// The whole sweep.
        text: String,
        /// Which part is empty, counted from 1.
        position: usize,
    },
    /// An end or a step of a range that is not a number.
    #[error(
        "sweep `{text}`: `{value}` in `{part}` is not a number; \
         write ranges as 0..3, 8..64+8 or 256..1M*4"
    )]
    NotANumber {
        /// The whole sweep.
        text: String,
        /// The part that is wrong.
        part: String,
        /// What stands where a number should.
        value: String,
    },
    /// A step without a range, as in `256*4`.
    #[error("sweep `{text}`: `{part}` has a step and no end; write it as `{fix}`")]
    NoEnd {
        /// The whole sweep.
        text: String,
        /// The part that is wrong.
        part: String,
        /// An example of what may have been meant.
        fix: String,
    },
    /// A range whose step never reaches its end.
    #[error("sweep `{text}`: `{part}` never reaches its end; {fix}")]
    NeverReaches {
        /// The whole sweep.
        text: String,
        /// The part that is wrong.
        part: String,
        /// What to write.
        fix: &'static str,
    },
    /// A range that starts above its end.
    #[error(
        "sweep `{text}`: `{part}` starts at {start}, above its end {end}, \
         and so expands to nothing; write the smaller one first"
    )]
    Backwards {
        /// The whole sweep.
        text: String,
        /// The part that is wrong.
        part: String,
        /// Its first number.
        start: u64,
        /// Its last number.
        end: u64,
    },
    /// More values than [`MAX_VALUES`].
    #[error(
        "sweep `{text}`: with `{part}` it has more than {limit} values; \
         take a larger step, as in 256..1M*4"
    )]
    TooMany {
        /// The whole sweep.
        text: String,
        /// The part that passed the limit.
        part: String,
        /// The limit.
        limit: usize,
    },
    /// A number above 2^64 - 1, or one with a suffix of two meanings.
    #[error("sweep `{text}`: in `{part}`, {reason}")]
    Size {
        /// The whole sweep.
        text: String,
        /// The part that is wrong.
        part: String,
        /// What is wrong with the number.
        reason: SizeError,
    },
    /// The same value twice: the same point would be run twice.
    #[error("sweep `{text}` has {value} twice; name each value once")]
    Repeated {
        /// The whole sweep.
        text: String,
        /// The value.
        value: Value,
    },
}

impl Sweep {
    /// The values that `text` stands for, in the order written.
    pub fn parse(text: &str) -> Result<Vec<Value>, SweepError> {
        let mut values = Vec::new();
        for (index, part) in text.split(',').enumerate() {
            let part = part.trim();
            if part.is_empty() {
                return Err(SweepError::Empty {
                    text: clip(text),
                    position: index + 1,
                });
            }
            let part = Part { text, part };
            part.expand(&mut values)?;
        }
        match first_repeat(&values) {
            Some(value) => Err(SweepError::Repeated {
                text: clip(text),
                value: value.clone(),
            }),
            None => Ok(values),
        }
    }
}

/// The first value that stood earlier in the list.
pub(crate) fn first_repeat(values: &[Value]) -> Option<&Value> {
    let mut seen = HashSet::with_capacity(values.len());
    values.iter().find(|value| !seen.insert(*value))
}

/// How a range goes on.
#[derive(Clone, Copy)]
enum Step {
    Add(u64),
    Multiply(u64),
}

/// One part of a sweep, with the whole for messages.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    part: &'a str,
}

impl Part<'_> {
    fn expand(self, values: &mut Vec<Value>) -> Result<(), SweepError> {
        if let Some((start, rest)) = self.part.split_once("..") {
            let start = self.number(start)?;
            let (end, step) = match rest.split_once(['*', '+']) {
                None => (self.number(rest)?, Step::Add(1)),
                Some((end, step)) => {
                    let multiply = rest[end.len()..].starts_with('*');
                    let step = self.number(step)?;
                    let step = if multiply {
                        Step::Multiply(step)
                    } else {
                        Step::Add(step)
                    };
                    (self.number(end)?, step)
                }
            };
            return self.range(start, end, step, values);
        }
        if let Some((start, end)) = self.part.split_once('-') {
            // `1e1w-d` is a name with a dash, not a range.
            if looks_like_number(start) && looks_like_number(end) {
                let (start, end) = (self.number(start)?, self.number(end)?);
                return self.range(start, end, Step::Add(1), values);
            }
        }
        if let Some((start, _)) = self.part.split_once(['*', '+'])
            && looks_like_number(start)
        {
            let fix = format!("{}..END{}", clip(start), clip(&self.part[start.len()..]));
            return Err(SweepError::NoEnd {
                text: clip(self.text),
                part: clip(self.part),
                fix,
            });
        }
        let value = if looks_like_number(self.part) {
            Value::Integer(self.number(self.part)?)
        } else {
            Value::from(self.part)
        };
        self.push(value, values)
    }

    fn range(
        self,
        start: u64,
        end: u64,
        step: Step,
        values: &mut Vec<Value>,
    ) -> Result<(), SweepError> {
        let (text, part) = (clip(self.text), clip(self.part));
        if start > end {
            return Err(SweepError::Backwards {
                text,
                part,
                start,
                end,
            });
        }
        let fix = match step {
            Step::Add(0) => Some("write a step of 1 or more, as in 8..64+8"),
            Step::Multiply(0 | 1) => Some("write a factor of 2 or more, as in 256..1M*4"),
            Step::Multiply(_) if start == 0 => {
                Some("start at 1 or more, since 0 times anything is 0, and write 0 as its own part")
            }
            _ => None,
        };
        if let Some(fix) = fix {
            return Err(SweepError::NeverReaches { text, part, fix });
        }
        let mut next = Some(start);
        while let Some(number) = next.filter(|number| *number <= end) {
            self.push(Value::Integer(number), values)?;
            next = match step {
                Step::Add(step) => number.checked_add(step),
                Step::Multiply(factor) => number.checked_mul(factor),
            };
        }
        Ok(())
    }

    fn push(self, value: Value, values: &mut Vec<Value>) -> Result<(), SweepError> {
        if values.len() == MAX_VALUES {
            let (text, part) = (clip(self.text), clip(self.part));
            return Err(SweepError::TooMany {
                text,
                part,
                limit: MAX_VALUES,
            });
        }
        values.push(value);
        Ok(())
    }

    fn number(self, value: &str) -> Result<u64, SweepError> {
        parse_bytes(value).map_err(|reason| {
            let (text, part) = (clip(self.text), clip(self.part));
            match reason {
                SizeError::NotASize { .. } => SweepError::NotANumber {
                    text,
                    part,
                    value: clip(value.trim()),
                },
                reason => SweepError::Size { text, part, reason },
            }
        })
    }
}

/// Whether it was meant as a number, be it too large or of two meanings.
fn looks_like_number(text: &str) -> bool {
    !matches!(parse_bytes(text), Err(SizeError::NotASize { .. }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(text: &str) -> Vec<u64> {
        let values = Sweep::parse(text).unwrap();
        values
            .iter()
            .map(|value| value.integer().unwrap())
            .collect()
    }

    #[test]
    fn lists_and_ranges_are_expanded() {
        assert_eq!(numbers("1,4,16"), [1, 4, 16]);
        assert_eq!(numbers("0-3,5"), [0, 1, 2, 3, 5]);
        assert_eq!(numbers("0..3"), [0, 1, 2, 3]);
        assert_eq!(numbers("7..7"), [7]);
        assert_eq!(numbers("8..64+8"), [8, 16, 24, 32, 40, 48, 56, 64]);
        assert_eq!(numbers("1..10+4"), [1, 5, 9]);
        let sizes = [256, 1024, 4096, 16384, 65536, 262_144, 1_048_576];
        assert_eq!(numbers("256..1M*4"), sizes);
        assert_eq!(numbers(" 256 .. 1M * 4 "), sizes);
        assert_eq!(numbers("0,1..100*2"), [0, 1, 2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn words_and_names_with_dashes_are_single_values() {
        assert_eq!(
            Sweep::parse("sync, async").unwrap(),
            ["sync".into(), "async".into()]
        );
        assert_eq!(Sweep::parse("1e1w-d").unwrap(), ["1e1w-d".into()]);
        assert_eq!(
            Sweep::parse("4k,none").unwrap(),
            [4096.into(), "none".into()]
        );
    }

    #[test]
    fn ranges_up_to_the_largest_number_end() {
        assert_eq!(
            numbers("18446744073709551614..18446744073709551615").len(),
            2
        );
        assert_eq!(numbers("1..18446744073709551615*2").len(), 64);
    }

    #[test]
    fn each_error_names_the_part_and_the_fix() {
        let cases = [
            ("", "expands to nothing at its part 1"),
            ("1,,2", "part 2"),
            ("1,4,", "part 3"),
            ("5..1", "starts at 5, above its end 1"),
            ("5-1", "write the smaller one first"),
            ("256..1M*1", "factor of 2 or more"),
            ("256..1M*0", "factor of 2 or more"),
            ("0..1M*4", "start at 1 or more"),
            ("8..64+0", "step of 1 or more"),
            ("0..100000", "more than 100000 values"),
            ("0..18446744073709551615", "more than 100000 values"),
            ("1,a..b", "`a` in `a..b` is not a number"),
            ("1..4*", "`` in `1..4*` is not a number"),
            ("256*4", "`256..END*4`"),
            ("99999999999999999999", "above the limit of 2^64 - 1"),
            ("1-99999999999999999999", "above the limit of 2^64 - 1"),
            ("4KB", "write `4K`"),
            ("1,4,1", "has 1 twice"),
            ("4k,4096", "has 4096 twice"),
        ];
        for (text, expected) in cases {
            let message = Sweep::parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
        assert_eq!(numbers("1..100000").len(), MAX_VALUES);
    }

    proptest! {
        #[test]
        fn random_text_is_expanded_or_refused(text in "\\PC*") {
            let _ = Sweep::parse(&text);
        }

        #[test]
        fn random_sweeps_are_expanded_or_refused(
            text in "([0-9]{1,6}[kMG]?(\\.\\.|-|\\*|\\+|,)?){1,5}"
        ) {
            if let Ok(values) = Sweep::parse(&text) {
                prop_assert!(!values.is_empty() && values.len() <= MAX_VALUES);
            }
        }

        #[test]
        fn ranges_stay_within_their_ends(
            start in 1u64..10_000, length in 0u64..10_000, step in 2u64..50, multiply in any::<bool>()
        ) {
            let (end, sign) = (start + length, if multiply { '*' } else { '+' });
            let values = numbers(&format!("{start}..{end}{sign}{step}"));
            prop_assert_eq!(values[0], start);
            let next = |number: u64| if multiply { number * step } else { number + step };
            for pair in values.windows(2) {
                prop_assert_eq!(pair[1], next(pair[0]));
            }
            let last = values[values.len() - 1];
            prop_assert!(last <= end && next(last) > end);
        }
    }
}
