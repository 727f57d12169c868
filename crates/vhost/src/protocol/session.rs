//! What a connection has agreed on.

use super::features as f;
use super::request::Request;
use crate::VhostError;

/// What a port offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Virtio features: a subset of [`f::ALL`].
    pub features: u64,
    /// Protocol features: a subset of [`f::PROTOCOL_ALL`].
    pub protocol_features: u64,
    /// Queue pairs: 1 to 128.
    pub queue_pairs: u16,
    /// Memory regions: 8 to 509 with CONFIGURE_MEM_SLOTS.
    pub memory_slots: u16,
    /// Address space that the memory regions may take, in bytes. All ports of a process share 128 TiB.
    pub address_space: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            features: f::ALL,
            protocol_features: f::PROTOCOL_ALL,
            queue_pairs: 1,
            memory_slots: 509,
            address_space: 16 << 40,
        }
    }
}

/// Bit of the device status: the driver is ready.
const DRIVER_OK: u64 = 4;
/// Bit of the device status: the features are settled.
const FEATURES_OK: u64 = 8;

/// What a connection has agreed on.
#[derive(Debug, Clone)]
pub struct Session {
    options: Options,
    features: u64,
    protocol_features: u64,
    status: u64,
    features_refused: bool,
    mtu: Option<u16>,
}

impl Session {
    /// Nothing agreed yet.
    pub fn new(options: Options) -> Session {
        Session {
            options,
            features: 0,
            protocol_features: 0,
            status: 0,
            features_refused: false,
            mtu: None,
        }
    }

    /// What the port offers.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Features in force.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Protocol features in force.
    pub fn protocol_features(&self) -> u64 {
        self.protocol_features
    }

    /// Whether the front end's need-reply bit counts.
    pub fn has_reply_ack(&self) -> bool {
        self.protocol_features & f::PROTOCOL_REPLY_ACK != 0
    }

    /// MTU that the guest has taken from the device: the largest packet without Ethernet header, in bytes.
    pub fn mtu(&self) -> Option<u16> {
        self.mtu
    }

    /// The device status that GET_STATUS answers.
    pub fn status(&self) -> u64 {
        self.status
    }

    /// Whether the driver is ready. Without STATUS this is always true: a kick is the only sign of it.
    pub fn driver_ok(&self) -> bool {
        self.protocol_features & f::PROTOCOL_STATUS == 0 || self.status & DRIVER_OK != 0
    }

    /// SET_FEATURES. Returns whether rings begin enabled (no PROTOCOL_FEATURES).
    ///
    /// # Errors
    /// A feature that was not offered, or a change while rings run.
    pub fn set_features(&mut self, features: u64, running: bool) -> Result<bool, VhostError> {
        let refused = |reason| VhostError::Refused {
            request: Request::SetFeatures,
            reason,
        };
        // Logging begins and ends while rings run.
        let changed = (features ^ self.features) & !f::LOG_ALL != 0;
        let reason = if features & !self.options.features != 0 {
            Some("a feature was not offered")
        } else if running && changed {
            Some("a ring is running")
        } else if features & f::RING_PACKED != 0 && features & f::VERSION_1 == 0 {
            Some("packed rings need version 1")
        } else {
            None
        };
        self.features_refused = reason.is_some();
        match reason {
            Some(reason) => Err(refused(reason)),
            None => {
                self.features = features;
                Ok(features & f::PROTOCOL_FEATURES == 0)
            }
        }
    }

    /// SET_PROTOCOL_FEATURES.
    ///
    /// # Errors
    /// A feature that was not offered.
    pub fn set_protocol_features(&mut self, features: u64) -> Result<(), VhostError> {
        if features & !self.options.protocol_features != 0 {
            return Err(VhostError::Refused {
                request: Request::SetProtocolFeatures,
                reason: "a feature was not offered",
            });
        }
        self.protocol_features = features;
        Ok(())
    }

    /// SET_STATUS. FEATURES_OK stays clear if the features were refused.
    pub fn set_status(&mut self, status: u64) {
        self.status = status & 0xff;
        if self.features_refused {
            self.status &= !FEATURES_OK;
        }
    }

    /// NET_SET_MTU.
    ///
    /// # Errors
    /// Outside 68 to 65535 (RFC 791 and the header's width).
    pub fn set_mtu(&mut self, mtu: u64) -> Result<(), VhostError> {
        match u16::try_from(mtu) {
            Ok(mtu) if mtu >= 68 => {
                self.mtu = Some(mtu);
                Ok(())
            }
            _ => Err(VhostError::Refused {
                request: Request::NetSetMtu,
                reason: "the MTU is outside 68 to 65535",
            }),
        }
    }
}
