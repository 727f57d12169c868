//! How true the virtual device is to the specification, by operation.

use dray_spec::Opcode;

/// How true something is to the specification, or to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fidelity {
    /// It does what is specified; its time is that of the runner.
    Exact,
    /// It ends as is specified; something that it should do beside that is missing.
    Approximate,
    /// It is refused, or does nothing.
    Unsupported,
}

impl Fidelity {
    /// All of them.
    pub const ALL: [Fidelity; 3] = [
        Fidelity::Exact,
        Fidelity::Approximate,
        Fidelity::Unsupported,
    ];

    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Fidelity::Exact => "exact",
            Fidelity::Approximate => "approximate",
            Fidelity::Unsupported => "unsupported",
        }
    }

    /// That of the operation with this code; what is missing, if something is.
    pub fn of_operation(code: u8) -> (Fidelity, Option<&'static str>) {
        match Opcode::try_from(code) {
            Err(_) => (
                Fidelity::Unsupported,
                Some("refused with 0x10, as by a device without it"),
            ),
            Ok(Opcode::CacheFlush) => (
                Fidelity::Approximate,
                Some(
                    "lines leave the caches where the memory is the process's own; elsewhere it only ends",
                ),
            ),
            Ok(Opcode::TranslationFetch) => (
                Fidelity::Approximate,
                Some("addresses are looked at; there is no translation cache that it would fill"),
            ),
            Ok(_) => (Fidelity::Exact, None),
        }
    }
}

/// Descriptors by how true their execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FidelityCounts {
    counts: [u64; 3],
}

impl FidelityCounts {
    /// Adds descriptors with this operation code.
    pub fn add(&mut self, code: u8, descriptors: u64) {
        let (fidelity, _) = Fidelity::of_operation(code);
        self.counts[fidelity as usize] += descriptors;
    }

    /// Descriptors that are so true.
    pub const fn of(&self, fidelity: Fidelity) -> u64 {
        self.counts[fidelity as usize]
    }
}

impl std::fmt::Display for FidelityCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [exact, approximate, unsupported] = self.counts;
        let all = exact + approximate + unsupported;
        write!(
            f,
            "of {all} descriptors {exact} exact, {approximate} approximate, {unsupported} unsupported"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_counted_by_their_operations() {
        let mut counts = FidelityCounts::default();
        counts.add(Opcode::Memmove.into(), 7);
        counts.add(Opcode::CacheFlush.into(), 2);
        counts.add(0x18, 1);
        assert_eq!(
            counts.to_string(),
            "of 10 descriptors 7 exact, 2 approximate, 1 unsupported"
        );
        assert_eq!(counts.of(Fidelity::Approximate), 2);
    }
}
