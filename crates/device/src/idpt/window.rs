//! Update window (spec 3.14.5, 8.3.27).

use dray_spec::{Descriptor, Status};

use super::Idpt;
use crate::job::Submitter;

impl Idpt {
    /// Replaces window and permissions of an entry at once.
    ///
    /// The fields of the descriptor have been checked. The status names the rule that the entry, or
    /// its owner, breaks.
    pub(crate) fn update(&mut self, d: &Descriptor, submitter: Submitter) -> Result<(), Status> {
        let cap = self.cap;
        let index = self.index(d.destination_handle());
        let entry = index.and_then(|index| self.get_mut(index));
        let entry = entry.ok_or(Status::UPDATE_WINDOW_ENTRY)?;
        let owner = entry.access.access_pasid() == submitter.pasid;
        if !entry.control.allow_update() || !owner || !entry.is_sound(cap) {
            return Err(Status::UPDATE_WINDOW_ENTRY);
        }
        let flags = d.window_flags();
        entry.access = entry
            .access
            .with_read(flags.read())
            .with_write(flags.write())
            .with_window_enable(flags.window_enable())
            .with_offset_mode(flags.offset_mode());
        entry.window_base = d.address1;
        entry.window_size = d.window_size();
        Ok(())
    }
}
