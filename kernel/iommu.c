// SPDX-License-Identifier: GPL-2.0
/*
 * What a virtual IOMMU and a virtual device do not tell each other.
 *
 * QEMU's intel-iommu does not announce page-walk coherence in scalable mode (ECAP bit 48), and Linux then
 * refuses shared virtual addressing: the flag that says so is set. And a vfio-user device does not get
 * translations with a PASID: it walks the guest's tables, and is told here where they begin, in its
 * vendor-specific capability.
 *
 * Load this before idxd.
 */
#define pr_fmt(fmt) "dray_iommu: " fmt

#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/version.h>

#include "btf.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0)
#error "known are the kernels 6.12 to 7.3"
#endif

/* drivers/iommu/intel/iommu.h */
#define SVM_CAPABLE (1 << 2)
#define RTADDR 0x20
/* The capability: its ID, "dray", the requester, the root table. */
#define CAPABILITY 0xdaa7
#define SIGNATURE 0x79617264
#define AT_SIGNATURE 8
#define AT_REQUESTER 12
#define AT_ROOT 16
#define REQUESTER_VALID (1u << 31)

static struct btf_member_place places[] = {
	{ .name = "reg", .size = sizeof(void __iomem *) },
	{ .name = "iommu", .size = sizeof(struct iommu_device) },
	{ .name = "flags", .size = sizeof(u32) },
};
enum { REG, IOMMU, FLAGS };

static void *intel_iommu_of(struct device *device)
{
	if (!device->iommu || !device->iommu->iommu_dev)
		return NULL;
	return (void *)device->iommu->iommu_dev - places[IOMMU].offset;
}

static int capability_of(struct pci_dev *pci)
{
	int at = 0;
	u32 header, signature;

	while ((at = pci_find_next_ext_capability(pci, at, PCI_EXT_CAP_ID_VNDR))) {
		pci_read_config_dword(pci, at + PCI_VNDR_HEADER, &header);
		pci_read_config_dword(pci, at + AT_SIGNATURE, &signature);
		if (PCI_VNDR_HEADER_ID(header) == CAPABILITY && signature == SIGNATURE)
			return at;
	}
	return 0;
}

static void tell(struct pci_dev *pci, int at)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&pci->dev);
	void *iommu = intel_iommu_of(&pci->dev);
	void __iomem *registers;
	u32 *flags;
	u64 root;

	if (!iommu) {
		pci_info(pci, "no IOMMU\n");
		return;
	}
	registers = *(void __iomem **)(iommu + places[REG].offset);
	root = readq(registers + RTADDR);
	flags = iommu + places[FLAGS].offset;
	*flags |= SVM_CAPABLE;
	if (!domain || domain->type != IOMMU_DOMAIN_IDENTITY) {
		pci_warn(pci, "not passed through (iommu=pt): no PASID is translated\n");
		return;
	}
	pci_write_config_dword(pci, at + AT_ROOT, lower_32_bits(root));
	pci_write_config_dword(pci, at + AT_ROOT + 4, upper_32_bits(root));
	pci_write_config_dword(pci, at + AT_REQUESTER, REQUESTER_VALID | pci_dev_id(pci));
	pci_info(pci, "root table %#llx, shared virtual addressing allowed\n", root);
}

static int __init start(void)
{
	struct pci_dev *pci = NULL;
	unsigned int found = 0;
	int result = btf_find_members("intel_iommu", places, ARRAY_SIZE(places));

	if (result) {
		pr_err("struct intel_iommu is not as it is known: %d\n", result);
		return result;
	}
	for_each_pci_dev(pci) {
		int at = capability_of(pci);

		if (at) {
			tell(pci, at);
			found++;
		}
	}
	if (!found)
		pr_err("no virtual DSA\n");
	return found ? 0 : -ENODEV;
}

static void __exit stop(void)
{
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Tells a virtual DSA where the guest's IOMMU tables are");
MODULE_LICENSE("GPL");
