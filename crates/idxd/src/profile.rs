//! A profile: where it came from and the devices that it describes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use dray_device::DeviceConfig;

use crate::driver::Personality;
use crate::{DeviceProfile, Finding, ProfileError};
use crate::{configure, names, read, shape, unmodelled, validate, write};

/// Longest profile that is read, in bytes. A machine with 16 devices takes a fiftieth of it.
pub const MAX_PROFILE_BYTES: u64 = 4 << 20;

/// A configuration of one or more devices, in the terms of accel-config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// File that the profile was read from; none if it came from a name.
    pub(crate) origin: Option<String>,
    pub(crate) devices: Vec<DeviceProfile>,
    /// Names of the IAAs that the file describes beside the DSAs.
    pub(crate) iaa: Vec<String>,
}

impl Profile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is longer than [`MAX_PROFILE_BYTES`], or is not a profile.
    pub fn load(path: &Path) -> Result<Self, ProfileError> {
        let origin = path.display().to_string();
        let failed = |source| ProfileError::Read {
            path: origin.clone(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        // One byte more than allowed shows that a file is too long; /dev/zero has no length.
        file.take(MAX_PROFILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if bytes.len() as u64 > MAX_PROFILE_BYTES {
            return Err(ProfileError::TooLong {
                origin,
                limit_bytes: MAX_PROFILE_BYTES,
            });
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::parse(text, &origin),
            Err(error) => Err(ProfileError::NotText {
                origin,
                offset: error.valid_up_to(),
            }),
        }
    }

    /// Reads the text of a profile; `origin` stands for it in messages.
    ///
    /// # Errors
    ///
    /// The text is too long, not JSON, or says something that accel-config does not know.
    /// Values that are known but cannot be are left to [`validate`](Self::validate).
    pub fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let (devices, iaa) = read::devices(text, origin)?;
        Ok(Self {
            devices,
            iaa,
            origin: Some(origin.to_owned()),
        })
    }

    /// Builds the profile that a name such as `1e1w-d` or `4e1w-s-wqsz16` describes.
    ///
    /// The names are those of dsa-perf-micros's setup script; [`GRAMMAR`](crate::GRAMMAR) is all
    /// of them. Engines and work queues are in group 0, entries are shared equally
    /// (128 divided by W), the threshold of a shared queue is its size, the priority is 10,
    /// transfers go up to 2 MiB. Batches go up to 1024, the device's limit, where the driver's
    /// own default is 32, so that experiments with larger batches run.
    ///
    /// # Errors
    ///
    /// The name is not built like that, or asks for more than the device has.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        names::build(name)
    }

    /// A profile of devices that were found or made up.
    pub fn of(devices: Vec<DeviceProfile>) -> Self {
        Self {
            origin: None,
            devices,
            iaa: Vec::new(),
        }
    }

    /// Reads a file or builds a named profile.
    ///
    /// It is a file if one exists there, if there is a `/` in it, or if it ends in `.json` or `.conf`.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load) or [`named`](Self::named).
    pub fn resolve(file_or_name: &str) -> Result<Self, ProfileError> {
        let path = Path::new(file_or_name);
        let like_a_file = file_or_name.contains('/')
            || file_or_name.ends_with(".json")
            || file_or_name.ends_with(".conf");
        match like_a_file || path.exists() {
            true => Self::load(path),
            false => Self::named(file_or_name),
        }
    }

    /// All that the driver of a kernel or the hardware would refuse; empty if nothing.
    pub fn validate(&self, kernel: Personality) -> Vec<Finding> {
        validate::profile(&self.devices, kernel)
    }

    /// Names of the IAAs (analytics accelerators) in the file, as `iax1`. They are left alone.
    pub fn iaa(&self) -> &[String] {
        &self.iaa
    }

    /// Settings that a device would follow and the modelled one does not; worth a warning.
    pub fn unmodelled(&self) -> Vec<Finding> {
        unmodelled::profile(&self.devices)
    }

    /// As [`devices_on`](Self::devices_on), on the newest kernel.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn devices(&self) -> Result<Vec<DeviceConfig>, ProfileError> {
        self.devices_on(Personality::NEWEST)
    }

    /// Each device as it is when it is enabled, all its grouped work queues with it.
    ///
    /// Limits of a work queue are rounded up to a power of two, as the driver does.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Invalid`] with everything that [`validate`](Self::validate) finds.
    pub fn devices_on(&self, kernel: Personality) -> Result<Vec<DeviceConfig>, ProfileError> {
        let findings = self.validate(kernel);
        if findings.is_empty() {
            return Ok(self.devices.iter().map(configure::device).collect());
        }
        Err(ProfileError::Invalid {
            title: self.title(),
            findings,
        })
    }

    /// What the profile says of each device, as it stands.
    pub fn device_profiles(&self) -> &[DeviceProfile] {
        &self.devices
    }

    /// The text that `accel-config list` prints, keys in its order; older names are replaced.
    pub fn to_json(&self) -> String {
        write::to_json(&self.devices)
    }

    /// A short name: `4e1w-s-wqsz16` where one describes the profile, with the file if there is one.
    pub fn title(&self) -> String {
        let shape = shape::of(&self.devices);
        match &self.origin {
            Some(origin) => format!("{origin} ({shape})"),
            None => shape,
        }
    }
}
