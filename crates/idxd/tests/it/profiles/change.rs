//! Profiles with one setting changed.

use super::common::{TEXT, changed};
use dray_device::WorkQueueMode;
use dray_idxd::{Profile, ProfileError};

fn seed() -> Profile {
    Profile::parse(TEXT, "seed").unwrap()
}

#[track_caller]
fn refused(result: Result<Profile, ProfileError>) {
    let error = result.unwrap_err();
    assert!(matches!(error, ProfileError::Invalid { .. }), "{error}");
}

#[test]
fn wq_size() {
    let smaller = seed().with_wq_size(16).unwrap();
    assert_eq!(smaller.title(), "seed (1e1w-d-wqsz16-bs64)");
    assert_eq!(smaller.devices().unwrap()[0].work_queues[0].size, 16);
    refused(seed().with_wq_size(0));
    refused(seed().with_wq_size(129));
    refused(Profile::named("1e2w-d").unwrap().with_wq_size(65));
}

#[test]
fn threshold_follows_the_size() {
    let full = Profile::named("1e1w-s").unwrap();
    assert_eq!(full.with_wq_size(4).unwrap().title(), "1e1w-s-wqsz4");
    let partial = Profile::named("1e1w-s-thr8").unwrap();
    let title = |entries| partial.with_wq_size(entries).unwrap().title();
    assert_eq!(title(16), "1e1w-s-wqsz16-thr8");
    assert_eq!(title(4), "1e1w-s-wqsz4");
}

#[test]
fn engines() {
    let four = seed().with_engines(4).unwrap();
    let device = four.devices().unwrap().remove(0);
    assert_eq!(device.groups[0].engines, [0, 1, 2, 3]);
    assert_eq!(four.with_engines(1).unwrap(), seed());
    refused(seed().with_engines(0));
    refused(seed().with_engines(5));
    let few = changed(&[("\"read_buffers_allowed\":96", "\"read_buffers_allowed\":8")]);
    let few = Profile::parse(&few, "few").unwrap();
    assert!(few.with_engines(2).is_ok());
    refused(few.with_engines(3));
}

#[test]
fn mode() {
    let shared = seed().with_mode(WorkQueueMode::Shared).unwrap();
    assert_eq!(shared.title(), "seed (1e1w-s-bs64)");
    assert_eq!(shared.with_mode(WorkQueueMode::Shared).unwrap(), shared);
    assert_eq!(shared.with_mode(WorkQueueMode::Dedicated).unwrap(), seed());
    let partial = Profile::named("1e1w-s-thr8").unwrap();
    assert_eq!(partial.with_mode(WorkQueueMode::Shared).unwrap(), partial);
}

#[test]
fn max_batch() {
    let large = seed().with_max_batch(1024).unwrap();
    assert_eq!(large.title(), "seed (1e1w-d)");
    assert_eq!(
        large.devices().unwrap()[0].work_queues[0].max_batch_size,
        1024
    );
    refused(seed().with_max_batch(0));
    refused(seed().with_max_batch(1025));
}
