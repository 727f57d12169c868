//! What the Linux driver decides: the files of sysfs ([`driver`]), accel-config profiles and their
//! validation.
//!
//! A [`Profile`] is what `accel-config load-config` reads and `accel-config list` prints. It is
//! read as it stands, checked against the rules of the driver and of the hardware, and turned
//! into the [`DeviceConfig`](dray_device::DeviceConfig) of each device.
//!
//! ```
//! use dray_idxd::Profile;
//!
//! let profile = Profile::named("4e1w-s")?;
//! let devices = profile.devices()?;
//! assert_eq!(devices[0].groups[0].engines, [0, 1, 2, 3]);
//! # Ok::<(), dray_idxd::ProfileError>(())
//! ```

mod capabilities;
mod change;
mod configure;
pub mod driver;
mod error;
mod finding;
mod names;
mod object;
mod parts;
mod profile;
mod read;
mod shape;
mod tree;
mod unmodelled;
mod validate;
mod write;

pub use capabilities::known as known_capabilities;
pub use error::ProfileError;
pub use finding::Finding;
pub use names::GRAMMAR;
pub use parts::{DeviceProfile, EngineProfile, GroupProfile, WorkQueueProfile};
pub use profile::{MAX_PROFILE_BYTES, Profile};
