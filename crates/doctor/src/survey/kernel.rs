//! The kernel: version, options, command line, messages.

use super::look::Look;
use crate::machine::{KERNEL_CONFIG, KERNEL_LOG, Reading, Unreadable};

pub(crate) const RELEASE: &str = "/proc/sys/kernel/osrelease";
pub(crate) const COMMAND_LINE: &str = "/proc/cmdline";
const OS_RELEASE: &str = "/etc/os-release";

/// The running kernel.
pub(crate) struct Kernel {
    /// As in `6.8.0-45-generic`.
    pub(crate) release: Reading<String>,
    pub(crate) options: Reading<String>,
    pub(crate) command_line: Reading<String>,
    pub(crate) log: Reading<String>,
    /// `ID` of /etc/os-release, and `ID_LIKE` after it.
    distribution: Vec<String>,
}

/// Major and minor version.
pub(crate) type Version = (u32, u32);

/// The value of a kernel option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    BuiltIn,
    Module,
    Off,
    /// The configuration can be read and does not name it: the version does not have it, or what
    /// it depends on is off.
    Unnamed,
}

impl Kernel {
    pub(super) fn of(look: Look<'_>) -> Self {
        let os = look.lines(OS_RELEASE).unwrap_or_default();
        let value = |name: &str| {
            let line = os.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim_matches('"').to_owned()
        };
        let ids = format!("{} {}", value("ID="), value("ID_LIKE="));
        Self {
            release: look
                .text(RELEASE)
                .and_then(|release| match is_word(&release) {
                    true => Ok(release),
                    false => Err(Unreadable::Garbage(release)),
                }),
            options: look.lines(KERNEL_CONFIG),
            command_line: look.text(COMMAND_LINE),
            log: look.lines(KERNEL_LOG),
            distribution: ids.split_whitespace().map(str::to_owned).collect(),
        }
    }

    pub(crate) fn version(&self) -> Option<Version> {
        let release = self.release.as_ref().ok()?;
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// What an option is set to, if the configuration can be read.
    pub(crate) fn option(&self, name: &str) -> Option<Setting> {
        let options = self.options.as_ref().ok()?;
        for line in options.lines() {
            let line = line.strip_prefix("# ").unwrap_or(line);
            match line
                .strip_prefix("CONFIG_")
                .and_then(|l| l.strip_prefix(name))
            {
                Some("=y") => return Some(Setting::BuiltIn),
                Some("=m") => return Some(Setting::Module),
                Some("=n" | " is not set") => return Some(Setting::Off),
                _ => {}
            }
        }
        Some(Setting::Unnamed)
    }

    /// Whether an option is off for certain.
    pub(crate) fn lacks_option(&self, name: &str) -> bool {
        matches!(self.option(name), Some(Setting::Off | Setting::Unnamed))
    }

    /// Whether a word stands on the command line.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.words().any(|known| known == word)
    }

    /// The words of the command line, without those that mean something to a shell: they are typed again.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        let line = self.command_line.as_deref().unwrap_or_default();
        line.split_whitespace().filter(|word| is_word(word))
    }

    /// The last value of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let values = self.words().filter_map(|word| {
            let (key, value) = word.split_once('=')?;
            (key == name).then_some(value)
        });
        values.last()
    }

    /// All that is said to `intel_iommu=`, in order.
    pub(crate) fn intel_iommu(&self) -> Vec<&str> {
        let values = self
            .words()
            .filter_map(|word| word.strip_prefix("intel_iommu="));
        values.flat_map(|value| value.split(',')).collect()
    }

    /// The messages that contain a text, oldest first.
    pub(crate) fn messages<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let log = self.log.as_deref().unwrap_or_default();
        log.lines().filter(move |line| line.contains(text))
    }

    /// The last message that contains a text.
    pub(crate) fn message(&self, text: &str) -> Option<&str> {
        let log = self.log.as_deref().unwrap_or_default();
        log.lines().rfind(|line| line.contains(text))
    }

    /// Whether the log reaches back to the start of the kernel.
    ///
    /// If it does not, a message that is missing there says nothing.
    pub(crate) fn log_is_whole(&self) -> bool {
        self.messages("Linux version ").next().is_some()
    }

    /// Whether the distribution is one of these, or like one.
    fn is_like(&self, names: &[&str]) -> bool {
        self.distribution
            .iter()
            .any(|id| names.contains(&id.as_str()))
    }

    /// The commands that add to the kernel's command line, reboot included.
    pub(crate) fn add_to_command_line(&self, words: &str) -> Vec<String> {
        let reboot = "sudo reboot".to_owned();
        if self.is_like(&["debian", "ubuntu"]) {
            let edit =
                format!("sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{words} /' /etc/default/grub");
            return vec![edit, "sudo update-grub".to_owned(), reboot];
        }
        if self.is_like(&["rhel", "fedora", "centos"]) {
            let edit = format!("sudo grubby --update-kernel=ALL --args=\"{words}\"");
            return vec![edit, reboot];
        }
        vec![
            format!(
                "# add {words} to GRUB_CMDLINE_LINUX in /etc/default/grub (or to your boot loader's entry)"
            ),
            "sudo grub-mkconfig -o /boot/grub/grub.cfg".to_owned(),
            reboot,
        ]
    }

    /// The commands that take a word from the kernel's command line, reboot included.
    pub(crate) fn remove_from_command_line(&self, word: &str) -> Vec<String> {
        let reboot = "sudo reboot".to_owned();
        if self.is_like(&["rhel", "fedora", "centos"]) {
            let edit = format!("sudo grubby --update-kernel=ALL --remove-args=\"{word}\"");
            return vec![edit, reboot];
        }
        let write = match self.is_like(&["debian", "ubuntu"]) {
            true => "sudo update-grub",
            false => "sudo grub-mkconfig -o /boot/grub/grub.cfg",
        };
        vec![
            format!("# take {word} out of GRUB_CMDLINE_LINUX* in /etc/default/grub"),
            write.to_owned(),
            reboot,
        ]
    }

    /// The command that installs the library of accel-config.
    pub(crate) fn install_library(&self) -> String {
        let command = if self.is_like(&["debian", "ubuntu"]) {
            "sudo apt-get install accel-config libaccel-config1"
        } else if self.is_like(&["rhel", "fedora", "centos"]) {
            "sudo dnf install accel-config accel-config-libs"
        } else if self.is_like(&["suse", "opensuse"]) {
            "sudo zypper install accel-config"
        } else {
            "# install accel-config (https://github.com/intel/idxd-config)"
        };
        command.to_owned()
    }

    /// The command that installs modules which the distribution packs apart, if it does.
    pub(crate) fn install_modules(&self) -> Option<String> {
        let release = self.release.as_ref().ok()?;
        if self.is_like(&["ubuntu"]) {
            return Some(format!(
                "sudo apt-get install linux-modules-extra-{release}"
            ));
        }
        // The kernel of Debian's cloud images has no DMADEVICES at all.
        if self.is_like(&["debian"]) && release.contains("cloud") {
            return Some("sudo apt-get install linux-image-amd64 && sudo reboot".to_owned());
        }
        if self.is_like(&["rhel", "fedora", "centos"]) {
            return Some(format!("sudo dnf install kernel-modules-{release}"));
        }
        None
    }
}

/// Whether a text can be part of a command that is pasted into a shell.
fn is_word(text: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-+~=,:/".contains(c);
    text.chars().all(fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(release: &str, line: &str, distribution: &str) -> Kernel {
        Kernel {
            release: Ok(release.to_owned()),
            options: Ok("CONFIG_INTEL_IDXD=m\n# CONFIG_X86_5LEVEL is not set\n".to_owned()),
            command_line: Ok(line.to_owned()),
            log: Ok(String::new()),
            distribution: vec![distribution.to_owned()],
        }
    }

    #[test]
    fn versions_options_and_parameters_are_parsed() {
        let line = "intel_iommu=on iommu=pt intel_iommu=sm_on,sp_off iommu=nopt";
        let kernel = kernel("5.14.0-427.26.1.el9_4.x86_64", line, "rhel");
        assert_eq!(kernel.version(), Some((5, 14)));
        assert_eq!(kernel.option("INTEL_IDXD"), Some(Setting::Module));
        assert_eq!(kernel.option("X86_5LEVEL"), Some(Setting::Off));
        assert_eq!(kernel.option("INTEL"), Some(Setting::Unnamed));
        assert_eq!(kernel.intel_iommu(), ["on", "sm_on", "sp_off"]);
        assert_eq!(kernel.parameter("iommu"), Some("nopt"));
        assert_eq!(self::kernel("garbage", "", "").version(), None);
    }

    #[test]
    fn command_line_fixes_use_the_tools_of_the_distribution() {
        let commands = |id| kernel("6.8.0", "", id).add_to_command_line("intel_iommu=on,sm_on");
        assert!(commands("ubuntu")[1].contains("update-grub"));
        assert!(commands("rhel")[0].contains("grubby"));
        assert!(commands("void")[1].contains("grub-mkconfig"));
    }
}
