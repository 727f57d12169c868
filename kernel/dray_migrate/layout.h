/* SPDX-License-Identifier: GPL-2.0 */
/* What drivers/dma/idxd/idxd.h keeps to itself, by offsets from BTF. */
#ifndef DRAY_MIGRATE_LAYOUT_H
#define DRAY_MIGRATE_LAYOUT_H

#include <linux/device.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <uapi/linux/idxd.h>

struct idxd_dev;
struct idxd_wq;
struct idxd_device;
struct idxd_desc;
struct idxd_device_driver;

/* Values of idxd's enumerations, checked when the module is loaded. */
enum { IDXD_DEV_NONE = -1, IDXD_DEV_WQ = 2 };
enum { IDXD_TYPE_DSA = 0 };
enum { IDXD_DEV_ENABLED = 1 };
enum { IDXD_WQ_ENABLED = 1 };
enum { IDXD_WQT_NONE = 0, IDXD_WQT_KERNEL = 1 };
enum { IDXD_OP_NONBLOCK = 1 };

/* Finds all offsets; what differs from the known layouts is logged. */
int layout_find(void);

struct idxd_wq *layout_wq(struct idxd_dev *idxd_dev);
struct device *layout_conf_dev(struct idxd_dev *idxd_dev);

struct idxd_device *wq_device(struct idxd_wq *wq);
int wq_id(struct idxd_wq *wq);
bool wq_is_enabled(struct idxd_wq *wq);
int wq_type(struct idxd_wq *wq);
void wq_set_type(struct idxd_wq *wq, int type);
struct mutex *wq_lock(struct idxd_wq *wq);
const char *wq_driver_name(struct idxd_wq *wq);
u64 wq_max_transfer(struct idxd_wq *wq);
u32 wq_max_batch(struct idxd_wq *wq);

bool device_is_dsa(struct idxd_device *idxd);
bool device_is_enabled(struct idxd_device *idxd);
struct device *device_dma(struct idxd_device *idxd);
int device_id(struct idxd_device *idxd);
void device_set_status(struct idxd_device *idxd, u32 status);

struct dsa_hw_desc *desc_hw(struct idxd_desc *desc);
struct dsa_completion_record *desc_completion(struct idxd_desc *desc);
dma_addr_t desc_completion_address(struct idxd_desc *desc);

typedef int idxd_probe_t(struct idxd_dev *idxd_dev);
typedef void idxd_remove_t(struct idxd_dev *idxd_dev);
/* A driver of work queues, in idxd's layout; an error pointer without memory. */
struct idxd_device_driver *layout_new_driver(const char *name, idxd_probe_t *probe, idxd_remove_t *remove);

/* Exported by idxd. */
int __idxd_driver_register(struct idxd_device_driver *driver, struct module *module, const char *name);
void idxd_driver_unregister(struct idxd_device_driver *driver);
int idxd_drv_enable_wq(struct idxd_wq *wq);
void idxd_drv_disable_wq(struct idxd_wq *wq);
void __idxd_wq_quiesce(struct idxd_wq *wq);
struct idxd_desc *idxd_alloc_desc(struct idxd_wq *wq, int optype);
int idxd_submit_desc(struct idxd_wq *wq, struct idxd_desc *desc);
void idxd_free_desc(struct idxd_wq *wq, struct idxd_desc *desc);

#endif
