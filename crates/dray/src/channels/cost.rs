//! Whether core or device is faster: by size, operations in flight and batch, given or learned.

use dray_spec::Opcode;

/// What an operation costs on the core and on a device, in nanoseconds.
///
/// The device's time is that until the next operation can complete: with `depth` operations in
/// flight its latency is shared by them, until its bandwidth is reached. The defaults are those of
/// a 4th-generation Xeon as published: an offload pays from about 4 KiB on alone, and from some
/// hundred bytes on with 32 in flight.
///
/// ```
/// let model = dray::channels::CostModel::default();
/// // Alone, a device pays from 8 KiB on; with 32 in flight earlier.
/// assert!(!model.device_is_faster(4096, 1, 1) && model.device_is_faster(8192, 1, 1));
/// assert!(model.device_is_faster(4096, 32, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostModel {
    /// The core: an operation of no bytes.
    pub core_call_ns: f64,
    /// The core: a KiB, not in its caches.
    pub core_kib_ns: f64,
    /// The core: preparing and submitting a descriptor.
    pub submit_ns: f64,
    /// The core: preparing one more operation of a batch.
    pub batched_ns: f64,
    /// The device: from submission to completion, without the bytes.
    pub device_latency_ns: f64,
    /// The device: a KiB.
    pub device_kib_ns: f64,
}

impl Default for CostModel {
    fn default() -> CostModel {
        CostModel {
            core_call_ns: 10.0,
            core_kib_ns: 100.0,
            submit_ns: 60.0,
            batched_ns: 15.0,
            device_latency_ns: 400.0,
            device_kib_ns: 34.0,
        }
    }
}

impl CostModel {
    /// What the core takes for an operation of so many bytes.
    pub fn core_ns(&self, bytes: u32) -> f64 {
        self.core_call_ns + f64::from(bytes) / 1024.0 * self.core_kib_ns
    }

    /// What a device adds to the time until all is done, with `depth` operations in flight, this one
    /// included, and `batch` in its batch.
    pub fn device_ns(&self, bytes: u32, depth: u32, batch: u32) -> f64 {
        let (depth, batch) = (f64::from(depth.max(1)), f64::from(batch.max(1)));
        let core = self.submit_ns / batch + if batch > 1.0 { self.batched_ns } else { 0.0 };
        let engine = f64::from(bytes) / 1024.0 * self.device_kib_ns;
        let alone = self.device_latency_ns + engine;
        core + (alone / depth).max(engine)
    }

    /// Whether a device is faster.
    pub fn device_is_faster(&self, bytes: u32, depth: u32, batch: u32) -> bool {
        self.device_ns(bytes, depth, batch) < self.core_ns(bytes)
    }
}

/// Classes of sizes: powers of two.
const SIZES: usize = 33;
/// Classes of operations: those that read and write, write, read twice, compute.
const KINDS: usize = 4;
/// Classes of depth: 1, 2 to 7, 8 and more.
const DEPTHS: usize = 3;
/// Of so many operations of a class one goes to the other executor.
const TRIED: u32 = 64;
/// Operations of a class on either executor before its times count.
const ENOUGH: u32 = 8;

/// One executor's times for a class.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    count: u32,
    /// Moving average.
    ns: f64,
}

impl Seen {
    fn add(&mut self, ns: f64) {
        self.count = self.count.saturating_add(1);
        let weight = 1.0 / f64::from(self.count.min(32));
        self.ns += (ns - self.ns) * weight;
    }
}

/// Who executes an operation of a class, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Device,
    Core,
    TryCore,
}

#[derive(Debug, Clone, Copy, Default)]
struct Class {
    core: Seen,
    device: Seen,
    decided: u32,
}

/// Times that operations have taken, by kind, size and depth, and what follows from them.
///
/// ```
/// use dray::channels::{CostModel, Learned};
/// use dray_spec::Opcode;
///
/// let learned = Learned::new(CostModel::default());
/// assert_eq!(learned.times(Opcode::Memmove, 4096, 1), (None, None));
/// ```
#[derive(Debug, Clone)]
pub struct Learned {
    classes: Vec<Class>,
    prior: CostModel,
}

/// Where an operation's time is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClassIndex(u16);

impl Learned {
    /// Nothing was seen so far: the model decides.
    pub fn new(prior: CostModel) -> Learned {
        Learned {
            classes: vec![Class::default(); SIZES * KINDS * DEPTHS],
            prior,
        }
    }

    pub(super) fn class(opcode: Opcode, bytes: u32, depth: u32) -> ClassIndex {
        let kind = match opcode {
            Opcode::Memmove | Opcode::Dualcast => 0,
            Opcode::Fill | Opcode::CacheFlush => 1,
            Opcode::Compare | Opcode::ComparePattern => 2,
            _ => 3,
        };
        let size = (u32::BITS - bytes.leading_zeros()) as usize;
        let depth = match depth {
            0 | 1 => 0,
            2..8 => 1,
            _ => 2,
        };
        ClassIndex(((kind * SIZES + size) * DEPTHS + depth) as u16)
    }

    pub(super) fn decide(
        &mut self,
        class: ClassIndex,
        bytes: u32,
        depth: u32,
        batch: u32,
    ) -> Verdict {
        let prior = self.prior.device_is_faster(bytes, depth, batch);
        let class = &mut self.classes[usize::from(class.0)];
        class.decided = class.decided.wrapping_add(1);
        let known = class.core.count >= ENOUGH && class.device.count >= ENOUGH;
        let device = match known {
            true => class.device.ns < class.core.ns,
            false => prior,
        };
        let tried = class.decided.is_multiple_of(TRIED)
            // The first ones of a class measure both.
            || !known && class.decided.is_multiple_of(4);
        match (device, tried) {
            (true, false) => Verdict::Device,
            (true, true) => Verdict::TryCore,
            (false, true) => Verdict::Device,
            (false, false) => Verdict::Core,
        }
    }

    pub(super) fn add(&mut self, class: ClassIndex, by_device: bool, ns: f64) {
        let class = &mut self.classes[usize::from(class.0)];
        match by_device {
            true => class.device.add(ns),
            false => class.core.add(ns),
        }
    }

    /// Nanoseconds of the core and of a device for an operation of this kind, size and depth, as far
    /// as they are known.
    pub fn times(&self, opcode: Opcode, bytes: u32, depth: u32) -> (Option<f64>, Option<f64>) {
        let class = Learned::class(opcode, bytes, depth);
        let class = &self.classes[usize::from(class.0)];
        let known = |seen: &Seen| (seen.count >= ENOUGH).then_some(seen.ns);
        (known(&class.core), known(&class.device))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_pays_from_some_size_on_and_earlier_the_more_is_in_flight() {
        let from = |depth, batch| {
            let model = CostModel::default();
            (6..24)
                .map(|n| 1 << n)
                .find(|bytes| model.device_is_faster(*bytes, depth, batch))
        };
        let (alone, deep) = (from(1, 1).expect("a size"), from(32, 1).expect("a size"));
        let batched = from(32, 32).expect("a size");
        assert!(alone > deep && deep > batched, "{alone} {deep} {batched}");
        assert_eq!(alone, 8192);
    }

    #[test]
    fn what_was_learned_overrules_the_model_and_is_tried_again() {
        let mut learned = Learned::new(CostModel::default());
        let class = Learned::class(Opcode::Memmove, 1 << 20, 1);
        assert_eq!(learned.decide(class, 1 << 20, 1, 1), Verdict::Device);
        for _ in 0..ENOUGH {
            learned.add(class, true, 900.0);
            learned.add(class, false, 100.0);
        }
        let verdicts = (0..128).map(|_| learned.decide(class, 1 << 20, 1, 1));
        let verdicts: Vec<Verdict> = verdicts.collect();
        let on_core = verdicts.iter().filter(|v| **v == Verdict::Core).count();
        assert_eq!(on_core, 126);
        // The device becomes faster: it is noticed.
        for _ in 0..200 {
            learned.add(class, true, 10.0);
        }
        assert_eq!(learned.decide(class, 1 << 20, 1, 1), Verdict::Device);
        assert_eq!(learned.times(Opcode::Memmove, 1 << 20, 1).0, Some(100.0));
        assert_eq!(learned.times(Opcode::Fill, 1 << 20, 1), (None, None));
    }
}
