//! The instructions that were met: where they are, what they are, what they jump to.
//!
//! Read by the signal handler, hence of fixed size and without a lock. A site is entered once and
//! kept: a thread may be on its way through the stub at any time.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::decode::{Decoded, LONGEST, Mnemonic};
use crate::stub::{JUMP_BYTES, TRAP, jump};

/// So many are patched; others trap each time.
const SITES: usize = 512;

/// What becomes of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Its text is as it was.
    Fresh = 0,
    /// Its text is being changed.
    Changing = 1,
    /// Its text is another.
    Patched = 2,
    /// Its text cannot be changed.
    Refused = 3,
}

/// One instruction.
#[derive(Debug)]
pub(crate) struct Site {
    /// 0 until the rest is there.
    address: AtomicU64,
    claimed: AtomicU8,
    state: AtomicU8,
    /// 0 until there is one.
    stub: AtomicU64,
    text: UnsafeCell<MaybeUninit<Text>>,
}

#[derive(Debug, Clone, Copy)]
struct Text {
    decoded: Decoded,
    bytes: [u8; LONGEST],
}

// SAFETY: the text is written by the one who has claimed the site, before the address is published.
unsafe impl Sync for Site {}

static TABLE: [Site; SITES] = [const {
    Site {
        address: AtomicU64::new(0),
        claimed: AtomicU8::new(0),
        state: AtomicU8::new(State::Fresh as u8),
        stub: AtomicU64::new(0),
        text: UnsafeCell::new(MaybeUninit::uninit()),
    }
}; SITES];

/// Sites in use come first.
fn known() -> impl Iterator<Item = &'static Site> {
    TABLE
        .iter()
        .take_while(|site| site.claimed.load(Ordering::Relaxed) != 0)
        .filter(|site| site.address() != 0)
}

/// The site at `address`.
pub(crate) fn at(address: u64) -> Option<&'static Site> {
    known().find(|site| site.address() == address)
}

/// The site whose stub has trapped at `address`.
pub(crate) fn trapped(address: u64) -> Option<&'static Site> {
    let stub = address.wrapping_sub(TRAP as u64);
    known().find(|site| site.stub() == stub)
}

/// The site at `address`, entered if it was not known. `None` if the table is full, or if there was
/// another instruction at this address before: its stub may still be in use.
pub(crate) fn enter(
    address: u64,
    decoded: &Decoded,
    bytes: &[u8; LONGEST],
) -> Option<&'static Site> {
    if let Some(site) = at(address) {
        return (site.decoded() == decoded).then_some(site);
    }
    let order = Ordering::Relaxed;
    let claim = |site: &&Site| site.claimed.compare_exchange(0, 1, order, order).is_ok();
    let site = TABLE.iter().find(claim)?;
    // Two threads may enter the same site: then one of the two is found first, ever after.
    let text = Text {
        decoded: *decoded,
        bytes: *bytes,
    };
    // SAFETY: this thread alone has claimed it, and no thread reads it before its address is there.
    unsafe { site.text.get().write(MaybeUninit::new(text)) };
    site.address.store(address, Ordering::Release);
    at(address)
}

impl Site {
    /// Where it is.
    pub(crate) fn address(&self) -> u64 {
        self.address.load(Ordering::Acquire)
    }

    fn text(&self) -> &Text {
        // SAFETY: sites are handed out when their address is there, and then the text is.
        let text = unsafe { &*self.text.get() };
        // SAFETY: as above.
        unsafe { text.assume_init_ref() }
    }

    /// What it is.
    pub(crate) fn decoded(&self) -> &Decoded {
        &self.text().decoded
    }

    /// Its bytes, and what came behind them.
    pub(crate) fn bytes(&self) -> &[u8; LONGEST] {
        &self.text().bytes
    }

    /// Where its stub is; 0 if there is none.
    pub(crate) fn stub(&self) -> u64 {
        self.stub.load(Ordering::Acquire)
    }

    /// For the stub itself: where it is, and what the site is.
    #[inline]
    pub(crate) fn entered(&self) -> (u64, &Decoded) {
        (self.stub.load(Ordering::Relaxed), self.decoded())
    }

    /// Gives it a stub.
    pub(crate) fn set_stub(&self, address: u64) {
        self.stub.store(address, Ordering::Release);
    }

    /// What has become of it.
    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Fresh,
            1 => State::Changing,
            2 => State::Patched,
            _ => State::Refused,
        }
    }

    /// Says what has become of it.
    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Address behind it.
    pub(crate) fn next(&self) -> u64 {
        self.address() + u64::from(self.decoded().length)
    }

    /// Whether its text becomes a jump to a stub; a wait is replaced where it is.
    pub(crate) fn needs_stub(&self) -> bool {
        matches!(
            self.decoded().kind,
            Mnemonic::Movdir64b | Mnemonic::Enqcmd | Mnemonic::Enqcmds
        )
    }

    /// What its text becomes; `None` for a jump as long as there is no stub.
    pub(crate) fn replacement(&self) -> Option<Replacement> {
        match (self.needs_stub(), self.stub()) {
            (false, _) => wait(self.decoded()),
            (true, 0) => None,
            (true, stub) => jump(self.address(), stub).map(Replacement::Jump),
        }
    }
}

/// What stands in the place of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// A jump to the stub.
    Jump([u8; JUMP_BYTES]),
    /// Instructions of as many bytes as a short wait has, or a longer one.
    Short([u8; 4]),
    Long([u8; 5]),
}

impl Replacement {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Replacement::Jump(bytes) | Replacement::Long(bytes) => bytes,
            Replacement::Short(bytes) => bytes,
        }
    }
}

/// In the place of a wait. UMWAIT and TPAUSE may end whenever the processor likes (SDM, volume 2): PAUSE, and
/// CLC, for carry says that the time limit of the system has ended them. The other flags, which they clear, are
/// left as they are: nothing is known to look at them. UMONITOR has no effect but on UMWAIT: NOP. `None` for a form with further
/// prefixes.
fn wait(decoded: &Decoded) -> Option<Replacement> {
    let monitors = decoded.kind == Mnemonic::Umonitor;
    match (decoded.length, monitors) {
        (4, false) => Some(Replacement::Short([0xf3, 0x90, 0xf8, 0x90])),
        (4, true) => Some(Replacement::Short([0x0f, 0x1f, 0x40, 0x00])),
        (5, false) => Some(Replacement::Long([0xf3, 0x90, 0xf8, 0x90, 0x90])),
        (5, true) => Some(Replacement::Long([0x0f, 0x1f, 0x44, 0x00, 0x00])),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn site() -> &'static Site {
        let bytes = [0x66, 0x0f, 0x38, 0xf8, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let decoded = Decoded::new(&bytes, 0x40).expect("movdir64b rax, [rdx]");
        enter(0x40, &decoded, &bytes).expect("there is room")
    }

    #[test]
    fn a_site_is_entered_once_and_refuses_another_instruction() {
        let site = site();
        assert!(std::ptr::eq(site, self::site()));
        assert!(at(0x40).is_some_and(|found| std::ptr::eq(found, site)));
        let bytes = [0xf2, 0x0f, 0x38, 0xf8, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let other = Decoded::new(&bytes, 0x40).expect("enqcmd rax, [rdx]");
        assert!(enter(0x40, &other, &bytes).is_none());
        assert_eq!(site.next(), 0x45);
    }
}
