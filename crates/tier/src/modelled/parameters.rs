//! Parameters of page migration besides the copy, with their sources.

use std::collections::BTreeMap;

use dray_platform::Unit;
use serde::Deserialize;

/// One parameter as the file states it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// Value in `unit`.
    pub value: f64,
    /// Unit of value and range.
    pub unit: Unit,
    /// Values that are possible.
    pub range: [f64; 2],
    /// Where the number comes from.
    pub source: String,
    /// No published number stands behind the value.
    #[serde(default)]
    pub guess: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "title")]
    _title: String,
    parameters: BTreeMap<String, Stated>,
}

macro_rules! parameters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The values of `platforms/migration.toml`: times in ns, bandwidths in GB/s.
        #[derive(Debug, Clone, PartialEq)]
        pub struct MigrationParameters {
            $($(#[doc = $doc])+ pub $name: f64,)+
            stated: BTreeMap<String, Stated>,
        }

        impl MigrationParameters {
            /// What each parameter is.
            pub const HELP: &'static [(&'static str, &'static str)] =
                &[$((stringify!($name), concat!($($doc),+)),)+];

            fn take(stated: BTreeMap<String, Stated>) -> Result<MigrationParameters, String> {
                if let Some(name) = stated.keys().find(|n| !Self::HELP.iter().any(|h| h.0 == n.as_str())) {
                    return Err(format!("unknown parameter {name}"));
                }
                let value = |name: &str| {
                    let found = stated.get(name).ok_or_else(|| format!("{name} is missing"))?;
                    match found.range[0] <= found.value && found.value <= found.range[1] {
                        true => Ok(found.value),
                        false => Err(format!("{name} is outside of its range")),
                    }
                };
                Ok(MigrationParameters {
                    $($name: value(stringify!($name))?,)+
                    stated,
                })
            }

            fn set(&mut self, name: &str, value: f64) {
                match name {
                    $(stringify!($name) => self.$name = value,)+
                    _ => {}
                }
            }
        }
    };
}

parameters! {
    /// Work of a call of migrate_pages whatever its pages.
    call,
    /// Kernel work for a 4 KiB page, one after another, without the copy.
    page,
    /// The same for pages that are unmapped, copied and mapped together.
    page_together,
    /// Kernel work for each further 4 KiB page of a folio: its page-table entry and reverse mapping.
    page_entry,
    /// Kernel work for a 2 MiB page without the copy.
    huge_page,
    /// Time until kernel threads copy, and until the last has said that it is done.
    thread_start,
    /// Work from user space for a 4 KiB page of a long batch, without the copy.
    move_page,
    /// The same in a batch of fewer than 34 pages.
    move_page_few,
    /// Work from user space for a 2 MiB page without the copy.
    move_huge_page,
    /// Time of a fault that samples an access.
    hint_fault,
    /// Share of the accesses that tracking sees.
    sampled,
    /// Latency of a line of the other socket's DRAM to a core.
    line_dram,
    /// Latency of a line of CXL memory to a core.
    line_cxl,
    /// Latency of a line of persistent memory to a core.
    line_pm,
    /// Read bandwidth of persistent memory.
    pm_read,
    /// Write bandwidth of persistent memory.
    pm_write,
    /// Time of a core's copy with one side in persistent memory, relative to DRAM.
    pm_copy,
}

impl MigrationParameters {
    /// Those that are part of the program.
    pub fn built_in() -> MigrationParameters {
        MigrationParameters::parse(include_str!("../../../../platforms/migration.toml"))
            .expect("the built-in file is well-formed, which a test checks")
    }

    fn parse(text: &str) -> Result<MigrationParameters, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        MigrationParameters::take(file.parameters)
    }

    /// The same where 4 KiB pages come in folios of `pages`: the kernel isolates, allocates and locks
    /// once for each folio, and maps each page.
    #[must_use]
    pub fn in_folios(&self, pages: u64) -> MigrationParameters {
        let further = (pages.max(1) - 1) as f64;
        let each = |single: f64| (single + further * self.page_entry) / (further + 1.0);
        MigrationParameters {
            page: each(self.page),
            page_together: each(self.page_together),
            ..self.clone()
        }
    }

    /// The same with another value for one of them.
    #[must_use]
    pub fn with(&self, name: &str, value: f64) -> MigrationParameters {
        let mut changed = self.clone();
        changed.set(name, value);
        changed
    }

    /// All of them by name, as the file states them.
    pub fn list(&self) -> impl Iterator<Item = (&str, &Stated)> {
        self.stated
            .iter()
            .map(|(name, stated)| (name.as_str(), stated))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_file_is_well_formed_and_complete() {
        let parameters = MigrationParameters::built_in();
        assert_eq!(parameters.list().count(), MigrationParameters::HELP.len());
        assert!((parameters.with("call", 7.0).call - 7.0).abs() < f64::EPSILON);
        for (name, stated) in parameters.list() {
            assert!(!stated.source.is_empty(), "{name}");
        }
    }

    /// move_pages of 1 GB on Zen 3 by folio size, in GB/s, kernels 7.0-rc2 and 7.1-rc1 (linux-mm, page
    /// migration with batch copy, v4 and v5), where a folio is copied with 13.03 GB/s (batch page
    /// copies in folio_copy): the work besides the copy follows from two parameters.
    #[test]
    fn folios_of_any_size_take_what_is_published() {
        let published = [
            (1, [3.55, 3.31]),
            (4, [5.66, 5.61]),
            (16, [6.16, 6.66]),
            (64, [7.12, 7.01]),
            (256, [6.93, 7.13]),
        ];
        for (pages, rates) in published {
            let rest = MigrationParameters::built_in().in_folios(pages).page;
            let rate = 4096.0 / (4096.0 / 13.03 + rest);
            let mean = (rates[0] + rates[1]) / 2.0;
            let error = rate / mean - 1.0;
            assert!(
                error.abs() < 0.05,
                "{pages} pages: {rate} GB/s against {mean}"
            );
        }
        let single = MigrationParameters::built_in();
        assert_eq!(single.in_folios(1), single);
    }

    #[test]
    fn a_broken_file_is_refused() {
        let text = include_str!("../../../../platforms/migration.toml");
        let broken = text.replace("value = 854", "value = 1");
        assert!(MigrationParameters::parse(&broken).is_err());
        let unit = text.replace("GB/s", "GB");
        let error = MigrationParameters::parse(&unit).unwrap_err();
        assert!(error.contains("unknown variant `GB`"), "{error}");
        let unknown = text.replace("pm_copy", "pm_coppy");
        assert!(MigrationParameters::parse(&unknown).is_err());
    }
}
