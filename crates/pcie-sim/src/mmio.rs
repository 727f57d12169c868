//! Loads and stores of a core in device memory.

use super::Memory;
use super::network::Draft;
use super::simulation::Simulation;
use super::stream_state::LINE;
use super::tlp::TlpKind;

impl Simulation<'_> {
    /// Stores go out one after the other.
    pub(super) fn store_lines(&mut self, id: u32) {
        let transfer = &self.transfers[id as usize];
        let state = &self.streams[transfer.stream as usize];
        let on_chip = state.stream.memory == Memory::OnChip;
        let (port, route) = (state.port, state.to_device);
        let mut left = transfer.left;
        while left > 0 {
            let line = left.min(LINE);
            left -= line;
            let mut draft = Draft::new(TlpKind::MmioWrite, line as u32, id);
            draft.on_chip = on_chip;
            self.network.inject(port, route, draft);
        }
    }

    /// Loads from uncached memory go one line at a time.
    pub(super) fn load_line(&mut self, id: u32) {
        let transfer = &self.transfers[id as usize];
        let state = &self.streams[transfer.stream as usize];
        let mut draft = Draft::new(TlpKind::MmioRead, 0, id);
        draft.asks = transfer.left.min(LINE) as u16;
        draft.reply = state.to_host;
        draft.on_chip = state.stream.memory == Memory::OnChip;
        self.network.inject(state.port, state.to_device, draft);
    }

    /// Data of a load have come; the next line is asked for.
    pub(super) fn mmio_data(&mut self, id: u32) {
        if let Some(owner) = self.mmio_taken(id) {
            self.load_line(owner);
        }
    }

    /// Stored data have come.
    pub(super) fn mmio_written(&mut self, id: u32) {
        self.mmio_taken(id);
    }

    /// Counts what a TLP has brought. The transfer, if it is not done yet.
    fn mmio_taken(&mut self, id: u32) -> Option<u32> {
        let now = self.network.now;
        let tlp = self.network.consume(id, now);
        let transfer = &mut self.transfers[tlp.owner as usize];
        transfer.left -= u64::from(tlp.payload);
        let (left, stream) = (transfer.left, transfer.stream);
        self.count_payload(stream, u64::from(tlp.payload));
        if left == 0 {
            self.mmio_done(tlp.owner);
            return None;
        }
        Some(tlp.owner)
    }

    /// All of an MMIO operation is fabric transit.
    fn mmio_done(&mut self, id: u32) {
        let now = self.network.now;
        let transfer = &mut self.transfers[id as usize];
        let sent = transfer.stamps[1];
        transfer.stamps[2..].copy_from_slice(&[sent, sent, now, now]);
        self.complete(id);
    }
}
