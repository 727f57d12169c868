//! `--port`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use dray_vhost::backend::Role;
use dray_vhost::forward::Switch;
use dray_vhost::port::{Port, Tap, VhostPort, VhostSetup, Xdp};
use dray_vhost::protocol::{Options, features};

use super::assign::Wire;

/// A port as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PortSpec {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Socket {
        path: PathBuf,
        role: Role,
        queues: u16,
        offloads: bool,
    },
    Tap(String),
    Xdp(String),
}

impl FromStr for PortSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<PortSpec, String> {
        let kind = match text.split_once(':') {
            Some(("tap", name)) if !name.is_empty() => Kind::Tap(name.to_owned()),
            Some(("xdp", name)) if !name.is_empty() => Kind::Xdp(name.to_owned()),
            Some(("xdp", _)) => return Err("xdp: needs the name of an interface".into()),
            Some(("tap", _)) => return Err("tap: needs the name of an interface".into()),
            _ => socket(text)?,
        };
        Ok(PortSpec {
            text: text.to_owned(),
            kind,
        })
    }
}

fn socket(text: &str) -> Result<Kind, String> {
    let mut parts = text.split(',');
    let path = parts.next().filter(|path| !path.is_empty());
    let path = path.ok_or("a port needs the path of a socket")?;
    let (mut role, mut queues, mut offloads) = (Role::Server, 1, true);
    for part in parts {
        match part.split_once('=') {
            None if part == "server" => role = Role::Server,
            None if part == "client" => role = Role::Client,
            None if part == "no-offloads" => offloads = false,
            Some(("queues", count)) => {
                let number = count.parse().ok().filter(|n| (1..=128).contains(n));
                queues = number.ok_or(format!("queues={count}: 1 to 128 queue pairs"))?;
            }
            _ => {
                let known = ["server", "client", "queues=N", "no-offloads"];
                let hint = dray_suggest::suggest(part, known);
                return Err(format!("{part:?} is not an option of a port; {hint}"));
            }
        }
    }
    Ok(Kind::Socket {
        path: path.into(),
        role,
        queues,
        offloads,
    })
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PortSpec {
    /// What it is at, without its options: a path, or an interface.
    pub(super) fn target(&self) -> &str {
        self.text.split(',').next().unwrap_or_default()
    }

    /// Whether it means the same in every directory.
    pub(super) fn has_full_path(&self) -> bool {
        match &self.kind {
            Kind::Socket { path, .. } => path.is_absolute(),
            Kind::Tap(_) | Kind::Xdp(_) => true,
        }
    }

    /// Adds the port to a switch; `wires` are its channels by thread.
    pub(super) fn add(
        &self,
        switch: &mut Switch,
        wires: &[Wire],
        copy_threshold: u32,
        address_space: u64,
    ) -> anyhow::Result<()> {
        let port = self.open(copy_threshold, address_space)?;
        if let Port::Vhost(port) = &port {
            for (thread, wire) in wires.iter().enumerate() {
                let wire = (&wire.to_guest[..], &wire.from_guest[..]);
                switch.with_channels(thread, |channels| port.attach(channels, wire));
            }
        }
        switch.add_port(&self.text, port);
        Ok(())
    }

    fn open(&self, copy_threshold: u32, address_space: u64) -> anyhow::Result<Port> {
        match &self.kind {
            Kind::Tap(name) => Ok(Port::tap(Tap::open(name)?)?),
            Kind::Xdp(name) => Ok(Port::xdp(Xdp::open(name)?)?),
            Kind::Socket {
                path,
                role,
                queues,
                offloads,
            } => {
                let mut options = Options {
                    queue_pairs: *queues,
                    address_space,
                    ..Options::default()
                };
                if !offloads {
                    options.features &= !features::OFFLOADS;
                }
                let setup = VhostSetup {
                    role: *role,
                    options,
                    copy_threshold,
                    ..VhostSetup::default()
                };
                let port = VhostPort::open(path, &setup, &mut [])?;
                Ok(Port::Vhost(Box::new(port)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_options_are_parsed_and_malformed_ones_refused() {
        let port: PortSpec = "/tmp/a,client,queues=4".parse().expect("a port");
        let expected = Kind::Socket {
            path: "/tmp/a".into(),
            role: Role::Client,
            queues: 4,
            offloads: true,
        };
        assert_eq!(port.kind, expected);
        let tap: PortSpec = "tap:t0".parse().expect("a port");
        assert_eq!(tap.kind, Kind::Tap("t0".into()));
        let xdp: PortSpec = "xdp:eth0".parse().expect("a port");
        assert_eq!(xdp.kind, Kind::Xdp("eth0".into()));
        for text in [
            "",
            ",server",
            "/a,queues=0",
            "/a,queues=129",
            "/a,what",
            "tap:",
            "xdp:",
        ] {
            assert!(text.parse::<PortSpec>().is_err(), "{text}");
        }
    }
}
