//! Messages that confirm what a check found.

/// A message of the catalogue that confirms a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Saying(pub(crate) &'static str);

/// Declares the messages, and a list of them.
macro_rules! sayings {
    ($($name:ident $text:literal,)*) => {
        impl Saying {
            $(pub(crate) const $name: Self = Self($text);)*

            /// Every one, for the test that the catalogue has them.
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

sayings! {
    NO_SVA "Unable to turn on user SVA feature.",
    SVA_FORCED_OFF "User forced SVA off via module param.",
    USER_QUEUE_REFUSED "user: probe of wq0.0 failed with error -95",
    NO_MOVDIR64B "idxd driver failed to load without MOVDIR64B.",
    NO_ENQCMD "Platform does not have ENQCMD(S) support.",
    NO_WAITPKG "umwait not supported. Falling back to default wait method",
    NO_SHARED_QUEUES "Error[0x800c0000] dsa0/wq0.0: wq error - no shared wq support",
    SCALABLE_MODE_OFF "DMAR: Scalable mode is disallowed",
    IOMMU_OFF "DMAR: IOMMU disabled",
    NO_DMAR "DMAR: No DMAR devices found",
    DMAR_BROKEN "DMAR: Parse DMAR table failure.",
    MODULE_MISSING "modprobe: FATAL: Module idxd not found",
    MODULE_NOT_LOADED "idxd kernel module not loaded",
    PROBE_FAILED "idxd: probe of 0000:6a:01.0 failed with error -12",
    CRASH "RIP: 0010:idxd_device_evl_free+0x2a/0x60 [idxd]",
    NO_DEVICE "No matching device found",
    NOTHING_ENABLED "enabled 0 wq(s) out of 1",
    SIZES "Error[0x14] dsa0/wq0.0: Sum of WQCFG size fields out of range",
    LAST_COMMAND "Error[0x22] dsa0/wq0.0: WQ size is 0",
    HALTED "idxd halted, need FLR",
    TABLES "DMAR: [DMA Read NO_PASID] Request device [6a:01.0] fault addr 0x1000 [fault reason 0x3a] SM: Non-zero reserved field set in Root Entry",
    WITHOUT_PASID "IOMMU: dmar0: Page request without PASID",
    PROGRAM_FINDS_NONE "no usable wq found",
    NO_NODE "/dev/dsa/wq0.0: No such file or directory",
    NODE_DENIED "/dev/dsa/wq0.0: Permission denied",
    IN_CONTAINER "Insufficient dsa.intel.com/wq-user-dedicated",
    MMAP_DENIED "mmap: Operation not permitted",
    NO_LIBRARY "libaccel-config.so.1: cannot open shared object file",
    NUMA "No more DSA devices available on the local socket: accel_dsa",
    NO_HUGE_PAGES "idxd.c: Failed to allocate DSA descriptor memory",
    NO_PMU "Failed to initialize perfmon. No PMU support: -19",
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Texts;

    #[test]
    fn the_catalogue_has_every_message() {
        for saying in Saying::ALL {
            let mut texts = Texts::new();
            texts.message(saying.0);
            assert!(texts.finish().worst().is_some(), "{saying:?}");
        }
    }
}
