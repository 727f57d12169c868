//! Plain sources of writes, and of reads.

use super::Source;
use super::edge::{limit, span};
use super::network::{AgentEvent, Draft, Network};
use super::simulation::Simulation;
use super::tlp::{NONE, TlpKind};
use dray_topology::PcieError;
use dray_topology::Topology;

#[derive(Debug)]
pub(super) struct SourceState {
    pub(super) name: String,
    pub(super) port: u32,
    pub(super) sent: u64,
    pub(super) delivered: u64,
    /// Delivered after the warm-up.
    pub(super) counted: u64,
    /// When the last byte arrived, ps.
    pub(super) ended: Option<u64>,
    route: u32,
    /// Way of the data of a read.
    reply: u32,
    packet: u32,
    payload: u32,
    request: u32,
    is_halved: bool,
    /// Whether the next request is answered in TLPs of half the payload.
    is_half: bool,
    total: u64,
    window: u64,
    ps_per_byte: u64,
    next_at: u64,
    scheduled: bool,
}

impl SourceState {
    pub(super) fn new(
        topology: &Topology,
        network: &mut Network,
        source: &Source,
        port: u32,
    ) -> Result<Self, PcieError> {
        let fail = |rule: String| PcieError::Transfer {
            transfer: format!("source `{}`", source.name),
            rule,
        };
        if source.packet == 0 || source.packet > 1 << 20 {
            return Err(fail(format!(
                "packet = {} is not from 1 to 1 MiB",
                source.packet
            )));
        }
        if let Some(rate) = source.rate_gib_s
            && !(rate.is_finite() && rate >= 1e-3)
        {
            return Err(fail(format!(
                "a rate of {rate:e} GiB/s; a source sends at least 0.001"
            )));
        }
        if source
            .window_bytes
            .is_some_and(|window| window < u64::from(source.packet))
        {
            return Err(fail("the window is smaller than a packet".to_owned()));
        }
        if source.request > 0 && source.window_bytes.is_none() {
            return Err(fail("reads without a window".to_owned()));
        }
        if source.request > 4096 {
            let rule = format!("request = {} is above 4096", source.request);
            return Err(fail(rule));
        }
        let data = network.route_between(topology, source.from, source.to)?;
        let (route, reply) = match source.request {
            0 => (data, NONE),
            _ => (
                network.route_between(topology, source.to, source.from)?,
                data,
            ),
        };
        Ok(Self {
            name: source.name.clone(),
            port,
            sent: 0,
            delivered: 0,
            counted: 0,
            ended: None,
            route,
            reply,
            packet: source.packet,
            payload: source.payload,
            request: source.request,
            is_halved: source.is_halved,
            is_half: false,
            total: if source.total_bytes == 0 {
                u64::MAX
            } else {
                source.total_bytes
            },
            window: source.window_bytes.unwrap_or(u64::MAX),
            ps_per_byte: source.rate_gib_s.map_or(0, limit),
            next_at: 0,
            scheduled: true,
        })
    }

    /// Payload of a TLP at most, where the way allows `mps`.
    pub(super) fn largest(&self, mps: u32) -> u32 {
        match self.payload {
            0 => mps,
            own => own.min(mps),
        }
    }

    /// Payload of the TLPs that answer a request, where the way allows `mps`.
    pub(super) fn answers(&mut self, mps: u32) -> u32 {
        let largest = self.largest(mps);
        if !self.is_halved {
            return largest;
        }
        self.is_half = !self.is_half;
        match self.is_half {
            true => (largest / 2).max(1),
            false => largest,
        }
    }

    /// Whether all that was to be sent has arrived; without an end, always.
    pub(super) fn is_done(&self) -> bool {
        self.total == u64::MAX || self.delivered == self.total
    }
}

impl Simulation<'_> {
    /// Sends packets while rate, window and port allow it.
    pub(super) fn source_send(&mut self, index: u32) {
        let now = self.network.now;
        let source = &mut self.sources[index as usize];
        // A call by the clock; others find the port or the window open earlier.
        if now >= source.next_at {
            source.scheduled = false;
        }
        let route = self.network.route(source.route);
        loop {
            let bytes = u64::from(source.packet).min(source.total - source.sent);
            if bytes == 0 || source.sent - source.delivered + bytes > source.window {
                return;
            }
            if source.next_at > now {
                if !source.scheduled {
                    source.scheduled = true;
                    let at = source.next_at;
                    self.network.schedule(at, AgentEvent::SourceSend, index);
                }
                return;
            }
            if self.network.waiting(source.port) >= 2 * u64::from(source.packet.max(route.mps)) {
                let port = source.port;
                self.network.watch(port);
                return;
            }
            let gap = span(bytes, source.ps_per_byte);
            // A source that was held up catches up by four packets at most.
            source.next_at = source.next_at.max(now.saturating_sub(4 * gap)) + gap;
            source.sent += bytes;
            let mut left = bytes as u32;
            while left > 0 {
                let (part, draft) = if source.request > 0 {
                    let asks = left.min(source.request);
                    let mut draft = Draft::new(TlpKind::SourceRead, 0, index);
                    draft.asks = asks as u16;
                    draft.reply = source.reply;
                    (asks, draft)
                } else {
                    let payload = left.min(source.largest(route.mps));
                    (payload, Draft::new(TlpKind::Source, payload, index))
                };
                left -= part;
                self.network.inject(source.port, source.route, draft);
            }
        }
    }

    pub(super) fn source_delivered(&mut self, id: u32) {
        let now = self.network.now;
        let tlp = self.network.consume(id, now);
        let source = &mut self.sources[tlp.owner as usize];
        source.delivered += u64::from(tlp.payload);
        if source.delivered == source.total {
            source.ended = Some(now);
        }
        if now >= self.warmup {
            source.counted += u64::from(tlp.payload);
        }
        if source.window != u64::MAX {
            self.source_send(tlp.owner);
        }
    }
}
