//! Opening work queues by their names, or those that are free.

use super::{HwError, HwMover, HwOptions, Paths, QueueInfo, QueueResult, RefusedQueue};
use crate::channels::{Member, local_node};

/// Opens a work queue by its name (`wq0.1`), or else the first that can be opened: those whose devices are
/// nearest to the memory node of the calling thread come first.
///
/// # Errors
/// There is none, or not that one. Without a name, [`HwError::NoneUsable`] has the reason of each queue that
/// cannot be opened.
pub fn open(name: Option<&str>, options: HwOptions) -> Result<HwMover, HwError> {
    let paths = Paths::from_environment();
    match name {
        Some(name) => open_named(&paths, name, options),
        None => {
            let mut refused = Vec::new();
            for (queue, opened) in open_one_by_one(&paths, options)? {
                match opened {
                    Ok(mover) => return Ok(mover),
                    Err(reason) => refused.push(RefusedQueue { queue, reason }),
                }
            }
            Err(HwError::NoneUsable { refused })
        }
    }
}

fn open_named(paths: &Paths, name: &str, options: HwOptions) -> Result<HwMover, HwError> {
    let mut names = Vec::new();
    for (queue, found) in paths.survey()? {
        if queue == name {
            return HwMover::open(&found?, options);
        }
        names.push(queue);
    }
    match names.is_empty() {
        true => Err(HwError::NoQueues {
            path: paths.dev.clone(),
        }),
        false => Err(HwError::NoSuchQueue {
            name: name.to_owned(),
            available: names.join(", "),
        }),
    }
}

/// Opens all work queues that can be opened, with the nodes of their devices, for
/// [`Channels`](crate::channels::Channels); the nearest first, as [`open`]. [`open_each`] has the reasons of
/// the others.
///
/// # Errors
/// None can be opened: [`HwError::NoneUsable`] has the reason of each.
pub fn open_all(options: HwOptions) -> Result<Vec<Member<HwMover>>, HwError> {
    let mut members = Vec::new();
    let mut refused = Vec::new();
    for (queue, opened) in open_each(options)? {
        match opened {
            Ok(mover) => members.push(Member {
                numa_node: mover.info().numa_node,
                mover,
            }),
            Err(reason) => refused.push(RefusedQueue { queue, reason }),
        }
    }
    match members.is_empty() {
        false => Ok(members),
        true => Err(HwError::NoneUsable { refused }),
    }
}

/// Opens every work queue of this machine, the nearest first: each by its name, with a mover, or why there is
/// none.
///
/// # Errors
/// There are none.
pub fn open_each(options: HwOptions) -> Result<Vec<QueueResult<HwMover>>, HwError> {
    Ok(open_one_by_one(&Paths::from_environment(), options)?.collect())
}

/// As [`open_each`]; each is opened when it is asked for. Those that programs cannot use come last.
fn open_one_by_one(
    paths: &Paths,
    options: HwOptions,
) -> Result<impl Iterator<Item = QueueResult<HwMover>>, HwError> {
    let mut usable = Vec::new();
    let mut refused = Vec::new();
    for (name, found) in paths.survey()? {
        match found {
            Ok(queue) => usable.push(queue),
            Err(reason) => refused.push((name, Err(reason))),
        }
    }
    if usable.is_empty() && refused.is_empty() {
        let path = paths.dev.clone();
        return Err(HwError::NoQueues { path });
    }
    paths.sort_by_distance(&mut usable, local_node());
    let open = move |queue: QueueInfo| (queue.name(), HwMover::open(&queue, options));
    Ok(usable.into_iter().map(open).chain(refused))
}
