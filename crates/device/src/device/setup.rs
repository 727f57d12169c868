//! A device is enabled, its queues open and close.

use dray_spec::GenCap;

use super::domains::Windows;
use super::ending::abandoned;
use super::{Device, EventLog};
use crate::arbiter::Arbiter;
use crate::batch::Batches;
use crate::check::Checker;
use crate::idpt::Idpt;
use crate::job::Jobs;
use crate::lifecycle::Lifecycle;
use crate::queue::{State, WorkQueue};
use crate::registers::{self, Interrupts};
use crate::{ConfigError, DeviceConfig, Effect, LifecycleEvent, WorkQueueConfig};

impl Device {
    /// An enabled device: the shortcut for who has no use for registers. They are written all the
    /// same, and the commands issued that check them.
    ///
    /// # Errors
    /// What the registers cannot hold, and what the Enable Device and Enable WQ commands refuse
    /// (spec 5.1, 5.2).
    pub fn new(config: DeviceConfig) -> Result<Device, ConfigError> {
        registers::check(&config)?;
        let mut device = Device::disabled(DeviceConfig {
            work_queues: Vec::new(),
            ..config.clone()
        });
        device.enable();
        for queue in &config.work_queues {
            device.open(queue.clone());
        }
        device.config = config;
        Ok(device)
    }

    /// A device without queues, whose engines have nothing to do.
    pub(crate) fn disabled(config: DeviceConfig) -> Device {
        let gen_cap = GenCap::from(config.capabilities.gen_cap);
        Device {
            fault_info: gen_cap.fault_info(),
            batch_continuation: gen_cap.batch_continuation(),
            queues: Vec::new(),
            checkers: Vec::new(),
            by_id: vec![None; config.capabilities.max_work_queues.into()],
            arbiters: Vec::new(),
            group_of_engine: vec![None; config.capabilities.max_engines.into()],
            jobs: Jobs::default(),
            batches: Batches::default(),
            idpt: Idpt::new(config.capabilities.id_cap, config.idpt.clone()),
            windows: Windows::default(),
            drained: Vec::new(),
            held_batches: None,
            read_back: Vec::new(),
            errors: Vec::new(),
            awaited: 0,
            untranslated: false,
            lifecycle: Lifecycle::default(),
            interrupts: None,
            event_log: EventLog::default(),
            config,
        }
    }

    pub(crate) fn set_interrupts(&mut self, interrupts: Interrupts) {
        self.interrupts = Some(interrupts);
    }

    pub(crate) fn interrupts(&mut self) -> Option<&mut Interrupts> {
        self.interrupts.as_mut()
    }

    pub(crate) fn interrupts_ref(&self) -> Option<&Interrupts> {
        self.interrupts.as_ref()
    }

    /// Engines serve the groups of the configuration from now on. There is no queue in them yet.
    fn enable(&mut self) {
        self.arbiters = vec![Arbiter::default(); self.config.groups.len()];
        self.group_of_engine.fill(None);
        for (index, group) in self.config.groups.iter().enumerate() {
            for engine in &group.engines {
                self.group_of_engine[usize::from(*engine)] = Some(index);
            }
        }
    }

    /// The device is enabled with this configuration, and without queues.
    pub(crate) fn reconfigure(&mut self, config: DeviceConfig, event_log: EventLog) {
        self.event_log = event_log;
        self.idpt.set_bitmaps(config.idpt.bitmaps);
        self.untranslated = false;
        self.config = config;
        self.enable();
    }

    /// Reset Device clears the inter-domain permissions (spec Table 9-3).
    pub(crate) fn clear_domains(&mut self) {
        self.idpt.clear();
    }

    /// A queue is enabled that was not; it takes descriptors.
    pub(crate) fn open(&mut self, config: WorkQueueConfig) {
        let id = usize::from(config.id);
        self.untranslated |= config.ats_disable || !self.config.pci.ats;
        let checker = Checker::new(&self.config, &config);
        let queue = WorkQueue::new(config.clone());
        let index = match self.by_id[id] {
            Some(index) => {
                self.queues[index] = queue;
                self.checkers[index] = checker;
                index
            }
            None => {
                self.queues.push(queue);
                self.checkers.push(checker);
                self.queues.len() - 1
            }
        };
        self.by_id[id] = Some(index);
        let groups = &self.config.groups;
        if let Some(group) = groups.iter().position(|group| group.id == config.group) {
            self.arbiters[group].insert(index, config.priority);
        }
        self.config.work_queues.push(config);
        self.config.work_queues.sort_by_key(|queue| queue.id);
    }

    /// A queue takes no more; what is in it goes on.
    pub(crate) fn stop(&mut self, wq: u16) {
        if let Some(index) = self.queue_index(wq) {
            self.queues[index].state = State::Draining;
        }
    }

    /// A queue is disabled, and nothing is in it.
    pub(crate) fn close(&mut self, wq: u16) {
        let Some(index) = self.queue_index(wq) else {
            return;
        };
        debug_assert_eq!(self.queues[index].occupancy(), 0, "{wq}");
        self.queues[index].state = State::Disabled;
        self.config.work_queues.retain(|queue| queue.id != wq);
        for arbiter in &mut self.arbiters {
            arbiter.remove(index);
        }
    }

    /// Changes how far the limited portal goes; that can be done at any time (spec Table 9-7).
    pub(crate) fn set_threshold(&mut self, wq: u16, threshold: u16) {
        if let Some(index) = self.queue_index(wq) {
            self.queues[index].config.threshold = threshold;
            let queues = &mut self.config.work_queues;
            if let Some(queue) = queues.iter_mut().find(|queue| queue.id == wq) {
                queue.threshold = threshold;
            }
        }
    }

    /// PCI's TC/VC map has changed, which software may do at any time.
    pub(crate) fn set_traffic_classes(&mut self, classes: u8) {
        self.config.pci.traffic_classes = classes;
        for (checker, queue) in self.checkers.iter_mut().zip(&self.queues) {
            checker.set_traffic_classes(&self.config, &queue.config);
        }
    }

    /// Everything on its way is gone, and what engines still say of it means nothing.
    pub(crate) fn forget_all(&mut self, effects: &mut Vec<Effect>) {
        for id in self.jobs.ids() {
            if let Some(job) = self.jobs.remove(id) {
                let queue = &self.queues[usize::from(job.job_origin.queue)];
                effects.push(abandoned(queue.config.id, job));
                self.lifecycle
                    .push(|| LifecycleEvent::Ended { id, record: None });
            }
        }
        self.batches = Batches::default();
        self.windows = Windows::default();
        self.idpt.clear();
        self.read_back.clear();
        self.errors.clear();
        self.awaited = 0;
        for queue in &mut self.queues {
            queue.clear();
        }
        for wq in 0..self.by_id.len() {
            self.close(wq as u16);
        }
        debug_assert!(self.invariant());
    }
}
