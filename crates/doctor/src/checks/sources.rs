//! Where symptoms and rules are documented.

pub(super) const USER_GUIDE: &str = "Intel Data Streaming Accelerator User Guide, document 353216: https://cdrdv2-public.intel.com/759709/353216-data-streaming-accelerator-user-guide-003.pdf";
pub(super) const SPECIFICATION: &str =
    "Intel Data Streaming Accelerator Architecture Specification, document 341204, revision 3.0";
pub(super) const KERNEL_IDXD: &str = "Linux, drivers/dma/idxd and include/uapi/linux/idxd.h: https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/dma/idxd";
pub(super) const KERNEL_IOMMU: &str = "Linux, drivers/iommu/intel: https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/iommu/intel";
pub(super) const KERNEL_PARAMETERS: &str =
    "Linux, kernel-parameters.txt: https://docs.kernel.org/admin-guide/kernel-parameters.html";
pub(super) const SA_01084: &str = "INTEL-SA-01084: https://www.intel.com/content/www/us/en/security-center/advisory/intel-sa-01084.html";

/// Threads of intel/idxd-config, the home of accel-config.
pub(super) const IDXD_CONFIG_5: &str =
    "pasid_enabled stays 0: https://github.com/intel/idxd-config/issues/5";
pub(super) const IDXD_CONFIG_7: &str =
    "unbinding the PCI function crashes before 5.14: https://github.com/intel/idxd-config/issues/7";
pub(super) const IDXD_CONFIG_8: &str =
    "no character devices: https://github.com/intel/idxd-config/issues/8";
pub(super) const IDXD_CONFIG_11: &str =
    "threshold refused on a dedicated queue: https://github.com/intel/idxd-config/issues/11";
pub(super) const IDXD_CONFIG_15: &str =
    "enabled 0 wq(s) out of 1: https://github.com/intel/idxd-config/issues/15";
pub(super) const IDXD_CONFIG_16: &str =
    "use by others than root: https://github.com/intel/idxd-config/issues/16";
pub(super) const IDXD_CONFIG_29: &str =
    "0x800c0000, no shared wq support: https://github.com/intel/idxd-config/issues/29";
pub(super) const IDXD_CONFIG_40: &str =
    "Invalid wq driver name: https://github.com/intel/idxd-config/issues/40";
pub(super) const IDXD_CONFIG_46: &str = "Unable to turn on user SVA feature with intel_iommu=on,sm_on: https://github.com/intel/idxd-config/issues/46";
pub(super) const IDXD_CONFIG_54: &str =
    "accel-config test on Linux 5.10: https://github.com/intel/idxd-config/issues/54";
pub(super) const IDXD_CONFIG_73: &str = "write(2) instead of mmap for unprivileged programs: https://github.com/intel/idxd-config/pull/73";
pub(super) const IDXD_CONFIG_78: &str = "no shared wq support (platform configuration error): https://github.com/intel/idxd-config/issues/78";
pub(super) const IDXD_CONFIG_85: &str =
    "DSA for several virtual machines: https://github.com/intel/idxd-config/issues/85";

pub(super) const PLUGINS_919: &str = "container fails, idxd not loaded: https://github.com/intel/intel-device-plugins-for-kubernetes/issues/919";
pub(super) const PLUGINS_1019: &str = "/sys/bus/dsa for init containers: https://github.com/intel/intel-device-plugins-for-kubernetes/pull/1019";
pub(super) const PLUGINS_1779: &str = "mmap: Operation not permitted: https://github.com/intel/intel-device-plugins-for-kubernetes/issues/1779";
pub(super) const PLUGINS_1836: &str = "pasid_enabled 0 in spite of sm_on: https://github.com/intel/intel-device-plugins-for-kubernetes/issues/1836";

pub(super) const PERF_MICROS_2: &str =
    "SVA off, IOMMU feature pasid inconsistent: https://github.com/intel/dsa-perf-micros/issues/2";
pub(super) const PERF_MICROS_3: &str =
    "idxd halted, need FLR: https://github.com/intel/dsa-perf-micros/issues/3";
pub(super) const PERF_MICROS: &str = "dsa-perf-micros: https://github.com/intel/dsa-perf-micros";
pub(super) const DML_17: &str =
    "status 100 without a cause: https://github.com/intel/DML/issues/17";
pub(super) const DML_25: &str =
    "dsa-perf-micros works, DML does not: https://github.com/intel/DML/issues/25";
pub(super) const DML_33: &str = "devices of several nodes: https://github.com/intel/DML/issues/33";
pub(super) const DML_40: &str =
    "status 100, sum of WQ sizes (0x14): https://github.com/intel/DML/issues/40";
pub(super) const DML_41: &str =
    "libaccel-config.so is not found: https://github.com/intel/DML/issues/41";
pub(super) const DML_48: &str =
    "page faults in spite of block_on_fault: https://github.com/intel/DML/issues/48";
pub(super) const QPL_50: &str =
    "pasid_enabled 0 on a rented machine: https://github.com/intel/qpl/issues/50";
pub(super) const SPDK_2076: &str =
    "spdk setup.sh takes the functions from idxd: https://github.com/spdk/spdk/issues/2076";
pub(super) const SPDK_2329: &str =
    "no available idxd devices, software used: https://github.com/spdk/spdk/issues/2329";
pub(super) const SPDK_2486: &str =
    "functions bound to vfio-pci: https://github.com/spdk/spdk/issues/2486";
pub(super) const CSIT_4068: &str =
    "enabled 0 wq(s) out of 1 after an upgrade: https://github.com/FDio/csit/issues/4068";
pub(super) const LRL: &str = "Introduction to Intel DSA Config and Test (LRL, in Chinese): five-level page tables as the cure of the SVA message, reloading idxd";
