//! Profiles: whatever the text, a profile or an error that names its origin, and never a device that
//! the virtual one refuses.

use dray_device::Device;
use dray_idxd::Profile;
use dray_idxd::driver::Personality;

use crate::draw::Draw;
use crate::text::text;

const GOOD: &[&str] = &[include_str!("../../idxd/tests/data/1e1w-d-batch64.json")];

/// Reads the profile that `bytes` make, and does with it all that can be done.
///
/// # Panics
///
/// If `dray-idxd` violates an invariant.
pub fn profiles(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    if draw.once_in(8) {
        let name = String::from_utf8_lossy(draw.rest()).into_owned();
        if let Ok(profile) = Profile::named(&name) {
            use_profile(&profile);
        }
        return;
    }
    match Profile::parse(&text(draw, GOOD), "hostile") {
        Ok(profile) => use_profile(&profile),
        Err(error) => assert!(error.to_string().starts_with("hostile"), "{error}"),
    }
}

fn use_profile(profile: &Profile) {
    let (_, _) = (profile.title(), profile.unmodelled());
    for kernel in Personality::ALL {
        let _ = profile.validate(kernel);
    }
    for finding in profile.validate(Personality::NEWEST) {
        assert!(!finding.fix.is_empty() && !finding.to_string().is_empty());
    }
    let again = Profile::parse(&profile.to_json(), "again");
    let same = again.is_ok_and(|again| again.to_json() == profile.to_json());
    assert!(same, "what was written is read as something else");
    let changed = [
        profile.with_engines(2),
        profile.with_wq_size(2),
        profile.with_max_batch(2),
    ];
    for profile in changed.iter().flatten().chain([profile]) {
        for device in profile.devices().unwrap_or_default() {
            let refused = Device::new(device).err();
            assert!(refused.is_none(), "valid, but {refused:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unedited_profiles_are_valid() {
        for text in GOOD {
            use_profile(&Profile::parse(text, "good").unwrap());
        }
    }
}
