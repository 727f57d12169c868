//! `/proc/cpuinfo`: the processor has the instructions that programs in the session have.

use std::sync::OnceLock;

/// Where it is kept.
pub(crate) const INFO: &str = "/dev/.dray-cpuinfo";
/// Where the kernel shows it.
pub(crate) const CPUINFO: &str = "/proc/cpuinfo";

/// Flags of the instructions that are executed for programs where the processor has none (`dray-portal`).
const FLAGS: [&str; 3] = ["movdir64b", "enqcmd", "waitpkg"];

/// What the session shows. Read once: a machine with many processors takes long to tell their speeds.
pub(crate) fn shown() -> &'static str {
    static SHOWN: OnceLock<String> = OnceLock::new();
    SHOWN.get_or_init(|| info(&std::fs::read_to_string(CPUINFO).unwrap_or_default()))
}

/// The machine's text with these flags.
fn info(machine: &str) -> String {
    let mut text = String::with_capacity(machine.len());
    for line in machine.lines() {
        text.push_str(line);
        // `vmx flags` is another line.
        if line
            .split(':')
            .next()
            .is_some_and(|name| name.trim() == "flags")
        {
            for flag in FLAGS {
                if !line.split_whitespace().any(|word| word == flag) {
                    text.push(' ');
                    text.push_str(flag);
                }
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_are_missing_are_added_once() {
        let machine = "flags\t\t: fpu enqcmd\nvmx flags\t: vnmi\nbugs\t\t:\n";
        let shown = info(machine);
        assert_eq!(
            shown,
            "flags\t\t: fpu enqcmd movdir64b waitpkg\nvmx flags\t: vnmi\nbugs\t\t:\n"
        );
        assert_eq!(info(&shown), shown);
    }
}
