//! What PCI configuration space says, as far as the device depends on it.

use crate::PciConfig;

/// The controls of PCI configuration space (spec appendix C). A door that has such a space keeps it,
/// and says here what software has written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciControls {
    /// Bus master enable.
    pub bus_master: bool,
    /// Enable of the PASID capability.
    pub pasid: bool,
    /// Enable of the page request service.
    pub page_requests: bool,
    /// Outstanding page requests that software allows.
    pub page_request_allocation: u32,
    /// Outstanding page requests that the device can have.
    pub page_request_capacity: u32,
    /// What the platform demands of the address translation service; `None` where both is well.
    pub platform_ats: Option<bool>,
    /// What descriptors depend on.
    pub config: PciConfig,
}

impl Default for PciControls {
    /// As Linux leaves a device that it has probed, on a machine that has all of it.
    fn default() -> PciControls {
        PciControls {
            bus_master: true,
            pasid: true,
            page_requests: true,
            page_request_allocation: 512,
            page_request_capacity: 512,
            platform_ats: None,
            config: PciConfig::default(),
        }
    }
}

impl PciControls {
    /// After a function level reset: everything is off.
    pub fn off(&self) -> PciControls {
        PciControls {
            bus_master: false,
            pasid: false,
            page_requests: false,
            page_request_allocation: 0,
            config: PciConfig {
                ats: false,
                privileged_mode: false,
                ..self.config.clone()
            },
            ..self.clone()
        }
    }
}
