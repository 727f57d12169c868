//! `--mover` and `--dmas`: which channel copies for which queue.

use std::collections::BTreeMap;
use std::str::FromStr;

use dray_vhost::affinity::unbound;
use dray_vhost::copy::{Channel, Channels, CopyEngine, open_cpu, open_hw, open_virtual};

use super::MoverKind;
use crate::complain::Usage;

/// Work queues that a virtual device can have.
const QUEUES: u16 = 8;

/// A work queue copies for one direction of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dma {
    /// The thread that uses it; none: they are dealt out.
    thread: Option<usize>,
    to_guest: bool,
    port: usize,
    queue: String,
}

/// What `--dmas` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dmas(Vec<Dma>);

impl FromStr for Dmas {
    type Err = String;

    fn from_str(text: &str) -> Result<Dmas, String> {
        let inner = text.trim();
        let inner = inner.strip_prefix('[').unwrap_or(inner);
        let inner = inner.strip_suffix(']').unwrap_or(inner);
        let parts = inner.split([',', ';']).map(str::trim);
        let dmas: Vec<Dma> = parts
            .filter(|part| !part.is_empty())
            .map(dma)
            .collect::<Result<_, _>>()?;
        match dmas.is_empty() {
            true => Err("it names no work queue; an example: [txd0@wq0.0,rxd0@wq0.1]".into()),
            false => Ok(Dmas(dmas)),
        }
    }
}

fn dma(part: &str) -> Result<Dma, String> {
    let error = || format!("{part:?} is not of the form txd0@wq0.0 or rxd0@wq0.0");
    let (left, queue) = part.split_once('@').ok_or_else(error)?;
    let (to_guest, number) = match (left.strip_prefix("txd"), left.strip_prefix("rxd")) {
        (Some(number), _) => (true, number),
        (_, Some(number)) => (false, number),
        _ => return Err(error()),
    };
    let port = number.parse().map_err(|_| error())?;
    parse_queue(queue).ok_or_else(error)?;
    Ok(Dma {
        thread: None,
        to_guest,
        port,
        queue: queue.to_owned(),
    })
}

/// Device and queue of a name such as `wq0.1`.
fn parse_queue(name: &str) -> Option<(u16, u16)> {
    let (device, queue) = name.strip_prefix("wq")?.split_once('.')?;
    Some((device.parse().ok()?, queue.parse().ok()?))
}

/// Channels of one port on one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Wire {
    pub(super) to_guest: Vec<usize>,
    pub(super) from_guest: Vec<usize>,
}

/// All channels by thread, and those of each port by thread.
pub(super) struct Wiring {
    pub(super) channels: Vec<Channels>,
    pub(super) ports: Vec<Vec<Wire>>,
}

/// Opens the movers. A work queue is used by one thread: no lock is taken to submit. Without `--dmas` each port
/// has a work queue of each thread for each direction, as far as a device has them.
pub(super) fn open(
    mover: MoverKind,
    dmas: Option<&Dmas>,
    ports: usize,
    threads: usize,
) -> anyhow::Result<Wiring> {
    let mut wiring = Wiring {
        channels: (0..threads).map(|_| Channels::new()).collect(),
        ports: vec![vec![Wire::default(); threads]; ports],
    };
    if mover == MoverKind::Sync {
        if dmas.is_some() {
            return Err(Usage::error(
                "--dmas needs a mover that copies asynchronously",
                "add --mover virtual, --mover hw or --mover cpu",
            ));
        }
        return Ok(wiring);
    }
    let dmas = match dmas {
        Some(dmas) => dmas.0.clone(),
        None => default_dmas(ports, threads),
    };
    if let Some(dma) = dmas.iter().find(|dma| dma.port >= ports) {
        return Err(Usage::error(
            format!("--dmas names port {}; there are {ports}", dma.port),
            "ports are counted from 0, in the order of --port",
        ));
    }
    let mut names: Vec<String> = dmas.iter().map(|dma| dma.queue.clone()).collect();
    names.sort();
    names.dedup();
    if names.len() < threads {
        return Err(Usage::error(
            format!(
                "--dmas names {} work queues; {threads} threads need one each",
                names.len()
            ),
            "name more of them, or fewer cores",
        ));
    }
    // Where each lies: the thread, and the number among its channels.
    let mut places: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (at, channel) in open_movers(mover, &names)?.into_iter().enumerate() {
        let name = channel.name().to_owned();
        let of_thread = dmas.iter().find(|dma| dma.queue == name);
        let thread = of_thread.and_then(|dma| dma.thread).unwrap_or(at % threads);
        let list = &mut wiring.channels[thread];
        list.push(channel.of_thread(thread));
        places.insert(name, (thread, list.len() - 1));
    }
    for dma in &dmas {
        let (thread, channel) = places[&dma.queue];
        let wire = &mut wiring.ports[dma.port][thread];
        let list = match dma.to_guest {
            true => &mut wire.to_guest,
            false => &mut wire.from_guest,
        };
        if !list.contains(&channel) {
            list.push(channel);
        }
    }
    Ok(wiring)
}

/// Each thread has as many work queues of its own as there are for it.
fn default_dmas(ports: usize, threads: usize) -> Vec<Dma> {
    let most = usize::from(QUEUES);
    let each = (most / threads).max(1);
    let both = (0..ports).flat_map(|port| [(port, true), (port, false)]);
    let all = (0..threads).flat_map(|thread| both.clone().enumerate().map(move |at| (thread, at)));
    all.map(|(thread, (at, (port, to_guest)))| {
        let number = thread * each + at % each;
        Dma {
            thread: Some(thread),
            to_guest,
            port,
            queue: format!("wq{}.{}", number / most, number % most),
        }
    })
    .collect()
}

/// A channel of its own for a work queue.
pub(super) fn open_one(mover: MoverKind, name: &str) -> anyhow::Result<Channel> {
    let error = |message: String| Usage::error(message, "an example: wq0.4");
    if mover == MoverKind::Sync {
        let message = "the core copies within the call; start the switch with --mover";
        return Err(error(message.to_owned()));
    }
    if parse_queue(name).is_none() {
        return Err(error(format!("{name:?} is not of the form wq0.0")));
    }
    let engine = match mover {
        MoverKind::Sync | MoverKind::Cpu => open_cpu(),
        MoverKind::Hw => open_hw(Some(name))?,
        // A device of its own: the others have their work queues already.
        MoverKind::Virtual => unbound(|| open_virtual(1))??.remove(0),
    };
    Ok(Channel::new(name, engine))
}

fn open_movers(mover: MoverKind, names: &[String]) -> anyhow::Result<Channels> {
    let channel = |name: &String, engine| Channel::new(name.clone(), engine);
    match mover {
        MoverKind::Sync => Ok(Channels::new()),
        MoverKind::Cpu => Ok(names.iter().map(|n| channel(n, open_cpu())).collect()),
        MoverKind::Hw => names
            .iter()
            .map(|name| Ok(channel(name, open_hw(Some(name))?)))
            .collect(),
        MoverKind::Virtual => {
            // A device for each number, with as many work queues as the highest named one needs.
            let mut devices: BTreeMap<u16, u16> = BTreeMap::new();
            for (device, queue) in names.iter().filter_map(|name| parse_queue(name)) {
                if queue >= QUEUES {
                    return Err(Usage::error(
                        format!("wq{device}.{queue}: a virtual device has {QUEUES} work queues"),
                        "their numbers are 0 to 7; other devices are wq1.0, wq2.0",
                    ));
                }
                let count = devices.entry(device).or_default();
                *count = (*count).max(queue + 1);
            }
            let mut engines: BTreeMap<String, Box<dyn CopyEngine>> = BTreeMap::new();
            for (device, count) in devices {
                for (queue, engine) in open_virtual(count)?.into_iter().enumerate() {
                    engines.insert(format!("wq{device}.{queue}"), engine);
                }
            }
            let named = names.iter();
            Ok(named
                .filter_map(|name| Some(channel(name, engines.remove(name)?)))
                .collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dmas_are_parsed_in_the_form_of_dpdks_example() {
        let dmas: Dmas = "[txd0@wq0.0,rxd0@wq0.1]".parse().expect("two");
        assert_eq!(dmas.0.len(), 2);
        assert!(dmas.0[0].to_guest && !dmas.0[1].to_guest);
        let many: Dmas = "txd0@wq0.0;txd0@wq0.1; rxd1@wq1.0".parse().expect("three");
        assert_eq!(many.0[2].port, 1);
        for text in [
            "",
            "[]",
            "txd0",
            "txd0@",
            "txdx@wq0.0",
            "abc0@wq0.0",
            "txd0@wq0",
        ] {
            assert!(text.parse::<Dmas>().is_err(), "{text}");
        }
    }

    #[test]
    fn vhost_queues_share_work_queues_and_use_several() {
        let dmas: Dmas = "[txd0@wq0.0,txd0@wq0.1,rxd0@wq0.1,rxd0@wq0.1]"
            .parse()
            .expect("it");
        let wiring = open(MoverKind::Cpu, Some(&dmas), 1, 1).expect("channels");
        assert_eq!(wiring.channels[0].len(), 2);
        assert_eq!(wiring.ports[0][0].to_guest, [0, 1]);
        assert_eq!(wiring.ports[0][0].from_guest, [1], "named twice, used once");
        let one = "txd1@wq0.0".parse().expect("one");
        assert!(open(MoverKind::Cpu, Some(&one), 1, 1).is_err());
        assert!(open(MoverKind::Sync, Some(&dmas), 1, 1).is_err());
    }

    #[test]
    fn a_work_queue_is_used_by_one_thread() {
        let dmas: Dmas = "[txd0@wq0.0,txd0@wq0.1,rxd0@wq0.1]".parse().expect("it");
        let wiring = open(MoverKind::Cpu, Some(&dmas), 1, 2).expect("channels");
        let lens: Vec<usize> = wiring.channels.iter().map(Vec::len).collect();
        assert_eq!(lens, [1, 1]);
        let [first, second] = &wiring.ports[0][..] else {
            panic!("a wire for each thread");
        };
        assert_eq!(
            (&first.to_guest[..], &first.from_guest[..]),
            (&[0][..], &[][..])
        );
        assert_eq!(
            (&second.to_guest[..], &second.from_guest[..]),
            (&[0][..], &[0][..])
        );
        let Err(error) = open(MoverKind::Cpu, Some(&dmas), 1, 3) else {
            panic!("a thread without a work queue");
        };
        assert!(error.to_string().contains("3 threads need one each"));
        for threads in [1, 2, 3, 8, 20] {
            let wiring = open(MoverKind::Cpu, None, 3, threads).expect("channels");
            let wires = wiring.ports.iter().flatten();
            for wire in wires {
                assert_eq!((wire.to_guest.len(), wire.from_guest.len()), (1, 1));
            }
            let names = wiring
                .channels
                .iter()
                .flatten()
                .map(|c| c.name().to_owned());
            let mut names: Vec<String> = names.collect();
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count, "{threads}");
        }
    }
}
