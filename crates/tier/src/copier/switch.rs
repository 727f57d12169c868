//! The copier that the knobs choose.

use dray_placement::Threshold;

use super::{Copied, Copy, CopyError, Cores, HwCopier, PageCopier, VirtualCopier};
use crate::knobs::Knob;
use crate::session::{HW, Session};
use crate::sys::HUGE;

/// A core, several cores or a device, as the session's knobs say at each list.
#[derive(Debug)]
pub struct Switch {
    session: Session,
    core: Cores,
    cores: Option<(u64, Cores)>,
    device: Option<Device>,
}

impl Switch {
    /// For a session's knobs.
    pub fn new(session: Session) -> Switch {
        Switch {
            session,
            core: Cores::new(1),
            cores: None,
            device: None,
        }
    }

    fn on(&self, knob: Knob) -> bool {
        self.session.knob(knob) == 1
    }
}

/// A device that was started, with the number of its channels.
#[derive(Debug)]
enum Device {
    Virtual(u64, VirtualCopier),
    Hw(u64, HwCopier),
}

impl Device {
    fn start(setup: u64, channels: u64) -> Result<Device, CopyError> {
        let failed = |error: crate::TierError| CopyError {
            copier: "the device",
            cause: error.to_string(),
        };
        match setup {
            HW => HwCopier::open(channels as usize)
                .map(|device| Device::Hw(channels, device))
                .map_err(failed),
            _ => VirtualCopier::start(channels as usize)
                .map(|device| Device::Virtual(channels, device))
                .map_err(failed),
        }
    }

    fn channels(&self) -> u64 {
        match self {
            Device::Virtual(channels, _) | Device::Hw(channels, _) => *channels,
        }
    }
}

impl PageCopier for Switch {
    fn name(&self) -> &'static str {
        // The device is refused in the order that only cores can copy in.
        "cpu"
    }

    fn prepare(&mut self) -> Result<(), CopyError> {
        if !self.on(Knob::DsaState) {
            self.device = None;
        } else if self.on(Knob::UseDsaCopyPages) {
            let channels = self.session.knob(Knob::LimitChans);
            if self
                .device
                .as_ref()
                .is_none_or(|device| device.channels() != channels)
            {
                self.device = None;
                let setup = self.session.setup().device;
                self.device = Some(Device::start(setup, channels)?);
            }
        }
        if self.on(Knob::CpuMultiCopyPages) {
            let threads = self.session.knob(Knob::LimitMtNum);
            if self
                .cores
                .as_ref()
                .is_none_or(|(count, _)| *count != threads)
            {
                self.cores = Some((threads, Cores::new(threads as usize)));
            }
        }
        Ok(())
    }

    unsafe fn copy(&mut self, list: &[Copy]) -> Result<Copied, CopyError> {
        let by_device = self.on(Knob::DsaState) && self.on(Knob::UseDsaCopyPages);
        let by_cores = self.on(Knob::CpuMultiCopyPages);
        let threshold = Threshold::pages(self.session.knob(Knob::DsaCopyThreshold));
        let short = threshold.reason(super::bytes(list)).is_some();
        let concurrent = self.on(Knob::UseConcurToDemote);
        // A knob that was turned since `prepare` counts from the next list on.
        let other: Option<&mut dyn PageCopier> = match (&mut self.device, &mut self.cores) {
            _ if short => None,
            (Some(Device::Virtual(_, device)), _) if by_device => Some(device),
            (Some(Device::Hw(_, device)), _) if by_device => Some(device),
            (_, Some((_, cores))) if by_cores => Some(cores),
            _ => None,
        };
        let Some(other) = other else {
            // SAFETY: the caller's promise.
            return unsafe { self.core.copy(list) };
        };
        // Without concurrent migration only huge pages are copied so (kernels-with-dsa).
        let (others, base): (Vec<Copy>, Vec<Copy>) = match concurrent {
            true => (list.to_vec(), Vec::new()),
            false => list.iter().partition(|copy| copy.len >= HUGE),
        };
        // SAFETY: the caller's promise.
        let mut copied = unsafe { self.core.copy(&base) }?;
        if others.is_empty() {
            return Ok(copied);
        }
        // SAFETY: the caller's promise.
        let by_others = unsafe { other.copy(&others) }?;
        copied.core += by_others.core;
        copied.cores += by_others.cores;
        copied.device += by_others.device;
        Ok(copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Setup;
    use crate::sys::{PAGE, memory};
    use crate::tracking::Choice;

    #[test]
    fn knobs_select_core_or_device() {
        let setup = Setup {
            bytes: [0; 2],
            nodes: [None; 2],
            policy: 0,
            shared_read: false,
            release: crate::Release::Kernel,
            device: 1,
            tracking: Choice::Best,
            filters: 0,
        };
        let session = Session::private(&setup).expect("memory");
        let base = memory::reserve(4 * HUGE, HUGE).expect("memory");
        let list = [
            Copy {
                src: base,
                dst: base + 2 * HUGE,
                len: HUGE,
            },
            Copy {
                src: base + HUGE,
                dst: base + 3 * HUGE,
                len: 64 * PAGE,
            },
        ];
        let mut switch = Switch::new(session);
        let mut copy = |list: &[Copy]| {
            switch.prepare().expect("it starts");
            // SAFETY: all of it is ours.
            let copied = unsafe { switch.copy(list) }.expect("it copies");
            [copied.core, copied.cores, copied.device].map(|bytes| bytes / PAGE)
        };
        let set = |text: &str| session.set(text).expect(text);
        assert_eq!(copy(&list), [576, 0, 0]);
        set("cpu_multi_copy_pages=1");
        assert_eq!(copy(&list), [0, 576, 0]);
        set("cpu_multi_copy_pages=0");
        set("limit_chans=3");
        set("dsa_state=1");
        assert_eq!(copy(&list), [576, 0, 0]);
        set("use_dsa_copy_pages=1");
        assert_eq!(copy(&list), [0, 0, 576]);
        set("use_concur_to_demote=0");
        assert_eq!(copy(&list), [64, 0, 512]);
        set("use_concur_to_demote=1");
        set("dsa_copy_threshold=65");
        assert_eq!(copy(&list[1..]), [64, 0, 0]);
        // SAFETY: ours.
        unsafe { memory::unmap(base, 4 * HUGE) };
    }
}
