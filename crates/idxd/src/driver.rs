//! The Linux driver idxd: what its files in sysfs show, take and refuse, and what that does to the
//! registers of the devices below.
//!
//! Paths are those of sysfs; links are followed. What write(2) would return comes back as an
//! [`Errno`]. Nothing is read from a machine, and nothing happens by itself.

mod attribute;
mod attributes;
mod bar;
mod clients;
mod copy;
mod enable;
mod errno;
mod function;
mod parse;
mod personality;
mod registers;
mod show;
mod state;
mod status;
mod store;
mod tree;

use dray_device::Function;

pub use attribute::{Attribute, Field, Format, Needs, Refusal, When};
pub use attributes::{
    DEVICE as DEVICE_ATTRIBUTES, ENGINE as ENGINE_ATTRIBUTES, GROUP as GROUP_ATTRIBUTES,
    WORK_QUEUE as WORK_QUEUE_ATTRIBUTES,
};
pub use bar::Registers;
pub use clients::ClientId;
pub use enable::Bound;
pub use errno::Errno;
pub use personality::{Personality, UnknownKernel};
pub use state::Part;
pub use status::CommandStatus;
pub use tree::{Entry, EntryKind};

use state::{Device, WorkQueueType};
use tree::{BusDriver, Object, PathTarget};

/// What the driver finds beside the devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which kernel.
    pub personality: Personality,
    /// The module's parameter: traffic classes can be written whatever the version.
    pub tc_override: bool,
    /// The CPU has ENQCMD.
    pub enqcmd: bool,
    /// Major number of the character devices.
    pub cdev_major: u32,
}

impl Options {
    /// A machine that has all of it.
    pub fn new(personality: Personality) -> Options {
        Options {
            personality,
            tc_override: false,
            enqcmd: true,
            cdev_major: 237,
        }
    }
}

/// Something that processes beside the writer see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `/dev/dsa/wqD.Q` is there.
    NodeAppears {
        /// Number of the device.
        device: u32,
        /// Number of the work queue.
        wq: u16,
        /// Minor number.
        minor: u32,
    },
    /// `/dev/dsa/wqD.Q` is gone; what is open stays open.
    NodeDisappears {
        /// Number of the device.
        device: u32,
        /// Number of the work queue.
        wq: u16,
    },
}

/// Why a write failed, for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// What write(2) returns.
    pub errno: Errno,
    /// The rule of the attribute, where one refused.
    pub when: Option<When>,
    /// What `cmd_status` holds then, after a bind or an unbind.
    pub status: Option<CommandStatus>,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure {
            errno,
            when: None,
            status: None,
        }
    }
}

/// The loaded driver and its devices.
#[derive(Debug, Clone)]
pub struct Driver<R = Function> {
    options: Options,
    devices: Vec<Device<R>>,
    events: Vec<Event>,
}

impl Driver {
    /// Loads the driver on a machine with these virtual devices: each is reset and disabled. Of parts with
    /// the same number the first one counts.
    pub fn new(options: Options, parts: Vec<Part>) -> Driver {
        let with_function = |part: Part| {
            let function = part.function();
            (part, function)
        };
        Driver::over(options, parts.into_iter().map(with_function))
    }

    /// The function of a device, by its number.
    pub fn function(&self, device: u32) -> Option<&Function> {
        self.registers(device)
    }
}

impl<R: Registers> Driver<R> {
    /// Loads the driver on a machine with devices behind these registers: each is reset and disabled. Of parts with
    /// the same number the first one counts.
    pub fn over(options: Options, parts: impl IntoIterator<Item = (Part, R)>) -> Driver<R> {
        let mut driver = Driver {
            options,
            devices: Vec::new(),
            events: Vec::new(),
        };
        for (part, registers) in parts {
            if driver.index_of(part.id).is_some() {
                continue;
            }
            let options = &driver.options;
            let mut device = Device::new(part, registers, options.personality, options.tc_override);
            device.probe();
            driver.devices.push(device);
        }
        driver
    }

    /// The same driver with its devices behind other registers: those of functions that have been
    /// started, say.
    ///
    /// # Errors
    /// The first of `replace`.
    pub fn with_registers<S, E>(
        self,
        mut replace: impl FnMut(&Part, R) -> Result<S, E>,
    ) -> Result<Driver<S>, E> {
        let devices: Result<Vec<Device<S>>, E> = self
            .devices
            .into_iter()
            .map(|device| device.with_registers(&mut replace))
            .collect();
        let devices = devices?;
        Ok(Driver {
            options: self.options,
            devices,
            events: self.events,
        })
    }

    /// The registers of a device, by its number.
    pub fn registers(&self, device: u32) -> Option<&R> {
        let index = self.index_of(device)?;
        Some(&self.devices[index].registers)
    }

    /// Which kernel, and what else the driver has found.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The devices, as they were found.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.devices.iter().map(|device| &device.part)
    }

    fn index_of(&self, id: u32) -> Option<usize> {
        self.devices.iter().position(|device| device.part.id == id)
    }

    /// Character devices that have come and gone since the last call, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// What reading a file gives.
    ///
    /// # Errors
    /// As read(2): `ENOENT`, `EISDIR`, `EACCES` for files that can only be written, and what the
    /// attribute has (`cdev_minor` of a disabled queue: `ENXIO`).
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        match self.locate(path)? {
            PathTarget::Attribute(at, object, attribute) => {
                let device = &self.devices[at];
                let field = attribute.field;
                match object {
                    Object::Device => show::device(field, device, &self.options),
                    Object::Group(index) => show::group(field, device, index),
                    Object::Engine(index) => show::engine(field, device, index),
                    Object::Queue(index) => show::queue(field, device, index),
                }
            }
            PathTarget::Bind(_)
            | PathTarget::Unbind(_)
            | PathTarget::BindFunction
            | PathTarget::UnbindFunction => Err(Errno::EACCES),
            PathTarget::Directory(_) | PathTarget::Object(..) => Err(Errno::EISDIR),
        }
    }

    /// What writing a file does.
    ///
    /// # Errors
    /// As write(2) by root. `EAGAIN` means that the kernel would sleep until descriptors in flight
    /// have ended: let the engines work, and write the same again.
    pub fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), Errno> {
        self.try_write(path, bytes).map_err(|failure| failure.errno)
    }

    /// As [`write`](Self::write), and says which rule refused.
    ///
    /// # Errors
    /// As there.
    pub fn try_write(&mut self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        match self.locate(path)? {
            PathTarget::Attribute(at, object, attribute) => {
                let mut place = store::AttributeOwner {
                    device: &mut self.devices[at],
                    index: object.index(),
                    options: &self.options,
                };
                let result = store::write(attribute, &mut place, bytes);
                result.map_err(|refused| Failure {
                    errno: refused.errno,
                    when: refused.when,
                    status: None,
                })
            }
            PathTarget::Bind(driver) => self.bind(driver, bytes),
            PathTarget::Unbind(driver) => self.unbind(driver, bytes),
            PathTarget::BindFunction => Ok(self.bind_function(bytes)?),
            PathTarget::UnbindFunction => Ok(self.unbind_function(bytes)?),
            PathTarget::Directory(_) | PathTarget::Object(..) => Err(Errno::EISDIR.into()),
        }
    }

    /// The device that reading or writing a file concerns; `None` where it concerns none.
    pub fn device_of(&self, path: &str, written: &[u8]) -> Option<u32> {
        let at = match self.locate(path).ok()? {
            PathTarget::Attribute(at, ..) | PathTarget::Object(at, _) => at,
            PathTarget::Bind(_) | PathTarget::Unbind(_) => self.named(written).ok()?.0,
            PathTarget::BindFunction | PathTarget::UnbindFunction => {
                self.addressed(written).ok()?
            }
            PathTarget::Directory(_) => return None,
        };
        Some(self.devices[at].part.id)
    }

    /// The object that was written to `bind` or `unbind` (`bus_find_device_by_name`).
    fn named(&self, bytes: &[u8]) -> Result<(usize, Object), Errno> {
        let name = std::str::from_utf8(parse::line(bytes)).map_err(|_| Errno::ENODEV)?;
        self.object(name).ok_or(Errno::ENODEV)
    }

    fn bind(&mut self, driver: BusDriver, bytes: &[u8]) -> Result<(), Failure> {
        let (at, object) = self.named(bytes)?;
        let matches = matches!(
            (driver, object),
            (BusDriver::Idxd, Object::Device) | (BusDriver::Queue(_), Object::Queue(_))
        );
        if !matches {
            return Err(Errno::ENODEV.into());
        }
        if self.bound_driver(at, object).is_some() {
            return Err(Errno::EBUSY.into());
        }
        let device = &mut self.devices[at];
        let result = match (driver, object) {
            (BusDriver::Queue(bound), Object::Queue(wq)) => {
                device.bind_queue(wq.into(), bound, &self.options)
            }
            _ => device.bind(&self.options),
        };
        let status = device.status;
        result.map_err(|errno| Failure {
            errno,
            when: None,
            status: Some(status),
        })?;
        if let (BusDriver::Queue(Bound::User), Object::Queue(wq)) = (driver, object) {
            self.add_node(at, wq);
        }
        Ok(())
    }

    fn unbind(&mut self, driver: BusDriver, bytes: &[u8]) -> Result<(), Failure> {
        let (at, object) = self.named(bytes)?;
        if self.bound_driver(at, object) != Some(driver) {
            return Err(Errno::ENODEV.into());
        }
        match object {
            Object::Queue(wq) => self.unbind_queue(at, wq)?,
            _ => self.disable(at)?,
        }
        Ok(())
    }

    /// Unbinds a device and its work queues from their drivers.
    fn disable(&mut self, at: usize) -> Result<(), Errno> {
        for wq in 0..self.devices[at].queues.len() {
            if self.devices[at].queues[wq].enabled {
                self.unbind_queue(at, wq as u16)?;
            }
        }
        self.devices[at].unbind()
    }

    fn unbind_queue(&mut self, at: usize, wq: u16) -> Result<(), Errno> {
        let device = &mut self.devices[at];
        if device.queues[usize::from(wq)].minor.take().is_some() {
            self.events.push(Event::NodeDisappears {
                device: device.part.id,
                wq,
            });
        }
        device.unbind_queue(wq.into())
    }

    /// The lowest minor number that is free (`ida_alloc`).
    fn add_node(&mut self, at: usize, wq: u16) {
        let queues = self.devices.iter().flat_map(|device| &device.queues);
        let taken: Vec<u32> = queues.filter_map(|queue| queue.minor).collect();
        let minor = (0..).find(|minor| !taken.contains(minor)).unwrap_or(0);
        let device = &mut self.devices[at];
        device.queues[usize::from(wq)].minor = Some(minor);
        self.events.push(Event::NodeAppears {
            device: device.part.id,
            wq,
            minor,
        });
    }
}
