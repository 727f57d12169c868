// SPDX-License-Identifier: GPL-2.0
/* Offsets in idxd's private structs, from its BTF. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/version.h>

#include "../btf.h"
#include "layout.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0)
#error "known are the kernels 6.12 to 7.3"
#endif

#define MEMBER(member, type) { .name = #member, .size = sizeof(type) }

enum { DRIVER_NAME, DRIVER_TYPE, DRIVER_PROBE, DRIVER_REMOVE, DRIVER_DRV };
static struct btf_member_place driver[] = {
	[DRIVER_NAME] = MEMBER(name, char *),
	[DRIVER_TYPE] = MEMBER(type, int *),
	[DRIVER_PROBE] = MEMBER(probe, idxd_probe_t *),
	[DRIVER_REMOVE] = MEMBER(remove, idxd_remove_t *),
	[DRIVER_DRV] = MEMBER(drv, struct device_driver),
};

enum { CONF_DEV };
static struct btf_member_place conf[] = {
	[CONF_DEV] = MEMBER(conf_dev, struct device),
};

enum { WQ_IDXD, WQ_ID, WQ_TYPE, WQ_STATE, WQ_LOCK, WQ_DRIVER_NAME, WQ_MAX_TRANSFER, WQ_MAX_BATCH };
static struct btf_member_place queue[] = {
	[WQ_IDXD] = MEMBER(idxd, void *),
	[WQ_ID] = MEMBER(id, int),
	[WQ_TYPE] = MEMBER(type, int),
	[WQ_STATE] = MEMBER(state, int),
	[WQ_LOCK] = MEMBER(wq_lock, struct mutex),
	[WQ_DRIVER_NAME] = MEMBER(driver_name, char[129]),
	[WQ_MAX_TRANSFER] = MEMBER(max_xfer_bytes, u64),
	[WQ_MAX_BATCH] = MEMBER(max_batch_size, u32),
};
/* The size of this one is its struct's own. */
static struct btf_member_place queue_conf[] = {
	{ .name = "idxd_dev" },
};

enum { DEVICE_STATE, DEVICE_PDEV, DEVICE_ID, DEVICE_STATUS, DEVICE_DATA };
static struct btf_member_place device[] = {
	[DEVICE_STATE] = MEMBER(state, int),
	[DEVICE_PDEV] = MEMBER(pdev, struct pci_dev *),
	[DEVICE_ID] = MEMBER(id, int),
	[DEVICE_STATUS] = MEMBER(cmd_status, u32),
	[DEVICE_DATA] = MEMBER(data, void *),
};

enum { DATA_TYPE };
static struct btf_member_place data[] = {
	[DATA_TYPE] = MEMBER(type, int),
};

enum { DESC_HW, DESC_COMPLETION, DESC_COMPLETION_ADDRESS };
static struct btf_member_place descriptor[] = {
	[DESC_HW] = MEMBER(hw, struct dsa_hw_desc *),
	[DESC_COMPLETION] = MEMBER(completion, struct dsa_completion_record *),
	[DESC_COMPLETION_ADDRESS] = MEMBER(compl_dma, dma_addr_t),
};

#define STRUCTURE(struct_name, places) \
	{ .name = struct_name, .members = places, .count = ARRAY_SIZE(places) }

enum { S_CONF, S_DRIVER, S_QUEUE, S_DEVICE, S_DATA, S_DESCRIPTOR, S_QUEUE_CONF };
static struct btf_structure structures[] = {
	[S_CONF] = STRUCTURE("idxd_dev", conf),
	[S_DRIVER] = STRUCTURE("idxd_device_driver", driver),
	[S_QUEUE] = STRUCTURE("idxd_wq", queue),
	[S_DEVICE] = STRUCTURE("idxd_device", device),
	[S_DATA] = STRUCTURE("idxd_driver_data", data),
	[S_DESCRIPTOR] = STRUCTURE("idxd_desc", descriptor),
	[S_QUEUE_CONF] = STRUCTURE("idxd_wq", queue_conf),
};

static const struct btf_constant constants[] = {
	{ "idxd_dev_type", "IDXD_DEV_NONE", IDXD_DEV_NONE },
	{ "idxd_dev_type", "IDXD_DEV_WQ", IDXD_DEV_WQ },
	{ "idxd_type", "IDXD_TYPE_DSA", IDXD_TYPE_DSA },
	{ "idxd_device_state", "IDXD_DEV_ENABLED", IDXD_DEV_ENABLED },
	{ "idxd_wq_state", "IDXD_WQ_ENABLED", IDXD_WQ_ENABLED },
	{ "idxd_wq_type", "IDXD_WQT_NONE", IDXD_WQT_NONE },
	{ "idxd_wq_type", "IDXD_WQT_KERNEL", IDXD_WQT_KERNEL },
	{ "idxd_op_type", "IDXD_OP_NONBLOCK", IDXD_OP_NONBLOCK },
};

/* The kernel's functions that are hooked, and those of idxd that are called. */
static const struct btf_function functions[] = {
	{ "folio_mc_copy", "dst src" },
	{ "migrate_pages", "from get_new_folio put_new_folio private mode reason ret_succeeded" },
	{ "__idxd_driver_register", "idxd_drv owner mod_name" },
	{ "idxd_drv_enable_wq", "wq" },
	{ "idxd_drv_disable_wq", "wq" },
	{ "__idxd_wq_quiesce", "wq" },
	{ "idxd_alloc_desc", "wq optype" },
	{ "idxd_submit_desc", "wq desc" },
	{ "idxd_free_desc", "wq desc" },
};

/* With the parameter `unknown`, one member more than any kernel has: shows what a refusal looks like. */
static char *unknown;
module_param(unknown, charp, 0444);
MODULE_PARM_DESC(unknown, "a member that struct idxd_wq must have (to try the refusal)");

static int check(const struct btf_types *types, const struct btf_types *bus)
{
	unsigned int n;
	int result = 0, one;

	for (n = 0; n < ARRAY_SIZE(structures); n++) {
		if (n == S_QUEUE_CONF)
			queue_conf[0].size = structures[S_CONF].size;
		one = btf_find_structure(types, &structures[n]);
		result = result ?: one;
	}
	for (n = 0; n < ARRAY_SIZE(constants); n++) {
		one = btf_check_constant(types, &constants[n]);
		result = result ?: one;
	}
	for (n = 0; n < ARRAY_SIZE(functions); n++) {
		bool of_bus = !strcmp(functions[n].name, "__idxd_driver_register");

		one = btf_check_function(of_bus ? bus : types, &functions[n]);
		result = result ?: one;
	}
	if (unknown) {
		struct btf_member_place member = { .name = unknown };
		struct btf_structure structure = { "idxd_wq", &member, 1 };

		one = btf_find_structure(types, &structure);
		result = result ?: one;
	}
	return result;
}

int layout_find(void)
{
	struct btf_types *types = btf_open("idxd");
	struct btf_types *bus;
	int result;

	if (IS_ERR(types))
		return PTR_ERR(types);
	bus = btf_open("idxd_bus");
	if (IS_ERR(bus)) {
		btf_close(types);
		return PTR_ERR(bus);
	}
	result = check(types, bus);
	btf_close(bus);
	btf_close(types);
	return result;
}

/* A member of a struct, as an lvalue. */
#define AT(base, place, type) (*(type *)((void *)(base) + (place).offset))

struct idxd_wq *layout_wq(struct idxd_dev *idxd_dev)
{
	return (void *)idxd_dev - queue_conf[0].offset;
}

struct device *layout_conf_dev(struct idxd_dev *idxd_dev)
{
	return &AT(idxd_dev, conf[CONF_DEV], struct device);
}

struct idxd_device *wq_device(struct idxd_wq *wq)
{
	return AT(wq, queue[WQ_IDXD], struct idxd_device *);
}

int wq_id(struct idxd_wq *wq)
{
	return AT(wq, queue[WQ_ID], int);
}

bool wq_is_enabled(struct idxd_wq *wq)
{
	return READ_ONCE(AT(wq, queue[WQ_STATE], int)) == IDXD_WQ_ENABLED;
}

int wq_type(struct idxd_wq *wq)
{
	return AT(wq, queue[WQ_TYPE], int);
}

void wq_set_type(struct idxd_wq *wq, int type)
{
	AT(wq, queue[WQ_TYPE], int) = type;
}

struct mutex *wq_lock(struct idxd_wq *wq)
{
	return &AT(wq, queue[WQ_LOCK], struct mutex);
}

const char *wq_driver_name(struct idxd_wq *wq)
{
	return &AT(wq, queue[WQ_DRIVER_NAME], char);
}

u64 wq_max_transfer(struct idxd_wq *wq)
{
	return AT(wq, queue[WQ_MAX_TRANSFER], u64);
}

u32 wq_max_batch(struct idxd_wq *wq)
{
	return AT(wq, queue[WQ_MAX_BATCH], u32);
}

bool device_is_dsa(struct idxd_device *idxd)
{
	return AT(AT(idxd, device[DEVICE_DATA], void *), data[DATA_TYPE], int) == IDXD_TYPE_DSA;
}

bool device_is_enabled(struct idxd_device *idxd)
{
	return READ_ONCE(AT(idxd, device[DEVICE_STATE], int)) == IDXD_DEV_ENABLED;
}

struct device *device_dma(struct idxd_device *idxd)
{
	return &AT(idxd, device[DEVICE_PDEV], struct pci_dev *)->dev;
}

int device_id(struct idxd_device *idxd)
{
	return AT(idxd, device[DEVICE_ID], int);
}

void device_set_status(struct idxd_device *idxd, u32 status)
{
	AT(idxd, device[DEVICE_STATUS], u32) = status;
}

struct dsa_hw_desc *desc_hw(struct idxd_desc *desc)
{
	return AT(desc, descriptor[DESC_HW], struct dsa_hw_desc *);
}

struct dsa_completion_record *desc_completion(struct idxd_desc *desc)
{
	return AT(desc, descriptor[DESC_COMPLETION], struct dsa_completion_record *);
}

dma_addr_t desc_completion_address(struct idxd_desc *desc)
{
	return AT(desc, descriptor[DESC_COMPLETION_ADDRESS], dma_addr_t);
}

struct idxd_device_driver *layout_new_driver(const char *name, idxd_probe_t *probe, idxd_remove_t *remove)
{
	static int types[] = { IDXD_DEV_WQ, IDXD_DEV_NONE };
	void *new = kzalloc(structures[S_DRIVER].size, GFP_KERNEL);

	if (!new)
		return ERR_PTR(-ENOMEM);
	AT(new, driver[DRIVER_NAME], const char *) = name;
	AT(new, driver[DRIVER_TYPE], int *) = types;
	AT(new, driver[DRIVER_PROBE], idxd_probe_t *) = probe;
	AT(new, driver[DRIVER_REMOVE], idxd_remove_t *) = remove;
	return new;
}
