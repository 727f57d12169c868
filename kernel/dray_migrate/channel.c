// SPDX-License-Identifier: GPL-2.0
/* The idxd sub-driver: work queues with driver_name=dray_migrate. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/wait.h>

#include "channel.h"
#include "counters.h"

/* Of a queue that is not used any more, a descriptor is waited for no longer than this. */
#define REMOVING_MS 1000
/* A completion is polled for without sleeping for so long. */
#define SPIN_US 50

static unsigned int timeout_ms = 5000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "a descriptor that takes longer is given up, and its queue with it");

/* A folio that must not be used again while the device may write to it. */
struct lost {
	struct list_head list;
	struct folio *folio;
};

static struct idxd_device_driver *driver;
static DEFINE_SPINLOCK(table_lock);
static struct channel *table[MAX_CHANNELS];
static unsigned int table_count;
static DECLARE_WAIT_QUEUE_HEAD(released);

static bool usable(const struct channel *channel)
{
	return !channel->removing && !channel->failed && device_is_enabled(channel->idxd) &&
	       wq_is_enabled(channel->wq);
}

unsigned int channels_usable(void)
{
	unsigned int n, count = 0;

	spin_lock(&table_lock);
	for (n = 0; n < table_count; n++)
		count += usable(table[n]);
	spin_unlock(&table_lock);
	return count;
}

unsigned int channels_hold(struct channel **channels, unsigned int limit)
{
	unsigned int n, count = 0;

	spin_lock(&table_lock);
	for (n = 0; n < table_count && count < limit; n++)
		if (usable(table[n])) {
			table[n]->users++;
			channels[count++] = table[n];
		}
	spin_unlock(&table_lock);
	return count;
}

void channel_release(struct channel *channel)
{
	bool last;

	spin_lock(&table_lock);
	last = --channel->users == 0 && channel->removing;
	spin_unlock(&table_lock);
	if (last)
		wake_up_all(&released);
}

static bool is_released(struct channel *channel)
{
	bool is;

	spin_lock(&table_lock);
	is = channel->users == 0;
	spin_unlock(&table_lock);
	return is;
}

static void fail(struct channel *channel)
{
	bool first;

	spin_lock(&table_lock);
	first = !channel->failed;
	channel->failed = true;
	spin_unlock(&table_lock);
	if (first) {
		count_one(queues_failed);
		pr_warn("wq%d.%d: a descriptor was not completed (device %s): the queue is not used until it is enabled anew\n",
			device_id(channel->idxd), wq_id(channel->wq),
			device_is_enabled(channel->idxd) ? "enabled" : "not enabled");
	}
}

int channel_submit(struct channel *channel, struct area *area, unsigned int first, unsigned int count,
		   struct flight *flight)
{
	struct idxd_desc *desc = idxd_alloc_desc(channel->wq, IDXD_OP_NONBLOCK);
	struct dsa_hw_desc *hw;
	u32 pasid;
	int result;

	if (IS_ERR(desc))
		return PTR_ERR(desc);
	hw = desc_hw(desc);
	if (count == 1) {
		pasid = hw->pasid;
		*hw = area->list[first];
		hw->pasid = pasid;
	} else {
		hw->opcode = DSA_OPCODE_BATCH;
		hw->flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
		hw->desc_list_addr = area->list_address + first * sizeof(*area->list);
		hw->desc_count = count;
	}
	hw->completion_addr = desc_completion_address(desc);
	*flight = (struct flight){ channel, desc, area, first, count };
	result = idxd_submit_desc(channel->wq, desc);
	if (result < 0) {
		idxd_free_desc(channel->wq, desc);
		return result == -EAGAIN ? -EAGAIN : -EIO;
	}
	count_one(submissions);
	count_add(descriptors, count);
	return 0;
}

int channel_wait(struct flight *flight)
{
	struct channel *channel = flight->channel;
	volatile u8 *status = &desc_completion(flight->desc)->status;
	ktime_t begin = ktime_get();
	s64 us;

	while (!READ_ONCE(*status)) {
		unsigned int limit = READ_ONCE(timeout_ms);

		us = ktime_us_delta(ktime_get(), begin);
		if (READ_ONCE(channel->removing) || !device_is_enabled(channel->idxd) ||
		    !wq_is_enabled(channel->wq))
			limit = min(limit, REMOVING_MS);
		if (us > (s64)limit * USEC_PER_MSEC) {
			/* Its descriptor stays taken: the device may still write the record. */
			fail(channel);
			return -ETIMEDOUT;
		}
		if (us < SPIN_US)
			cpu_relax();
		else
			usleep_range(20, 100);
	}
	/* The status is written last. */
	dma_rmb();
	return *status & 0x7f;
}

u8 channel_status(const struct flight *flight, unsigned int entry, int status)
{
	if (status == DSA_COMP_SUCCESS || flight->count == 1)
		return status;
	return READ_ONCE(flight->area->records[entry].status) & 0x7f;
}

void channel_keep(struct channel *channel, struct folio *folio)
{
	struct lost *lost = kmalloc(sizeof(*lost), GFP_NOWAIT | __GFP_NOWARN);

	/* Without memory for the note the folio is kept for good. */
	folio_get(folio);
	if (!lost)
		return;
	lost->folio = folio;
	spin_lock(&table_lock);
	list_add(&lost->list, &channel->lost);
	spin_unlock(&table_lock);
}

static void free_channel(struct channel *channel)
{
	struct lost *lost, *next;
	unsigned int n;

	list_for_each_entry_safe(lost, next, &channel->lost, list) {
		folio_put(lost->folio);
		kfree(lost);
	}
	for (n = 0; n < nr_cpu_ids; n++) {
		struct area *area = &channel->areas[n];

		if (area->list)
			dma_free_coherent(channel->dma, AREA_ENTRIES * (sizeof(*area->list) + sizeof(*area->records)),
					  area->list, area->list_address);
	}
	kvfree(channel);
}

static struct channel *new_channel(struct idxd_wq *wq)
{
	struct channel *channel = kvzalloc(struct_size(channel, areas, nr_cpu_ids), GFP_KERNEL);
	unsigned int n;

	if (!channel)
		return NULL;
	channel->wq = wq;
	channel->idxd = wq_device(wq);
	channel->dma = device_dma(channel->idxd);
	channel->max_batch = wq_max_batch(wq);
	channel->max_transfer = wq_max_transfer(wq);
	INIT_LIST_HEAD(&channel->lost);
	for (n = 0; n < nr_cpu_ids; n++) {
		struct area *area = &channel->areas[n];

		if (!cpu_possible(n))
			continue;
		area->list = dma_alloc_coherent(channel->dma,
						AREA_ENTRIES * (sizeof(*area->list) + sizeof(*area->records)),
						&area->list_address, GFP_KERNEL);
		if (!area->list) {
			free_channel(channel);
			return NULL;
		}
		area->records = (void *)(area->list + AREA_ENTRIES);
		area->records_address = area->list_address + AREA_ENTRIES * sizeof(*area->list);
	}
	return channel;
}

/* Puts a channel into the table: first one queue of each device, then the second of each. */
static bool insert(struct channel *channel)
{
	unsigned int n, at;

	spin_lock(&table_lock);
	if (table_count == MAX_CHANNELS) {
		spin_unlock(&table_lock);
		return false;
	}
	for (n = 0; n < table_count; n++)
		channel->rank += table[n]->idxd == channel->idxd;
	for (at = table_count; at > 0 && table[at - 1]->rank > channel->rank; at--)
		table[at] = table[at - 1];
	table[at] = channel;
	table_count++;
	spin_unlock(&table_lock);
	return true;
}

static struct channel *remove_from_table(struct idxd_wq *wq)
{
	struct channel *channel = NULL;
	unsigned int n;

	spin_lock(&table_lock);
	for (n = 0; n < table_count; n++)
		if (channel)
			table[n - 1] = table[n];
		else if (table[n]->wq == wq)
			channel = table[n];
	if (channel) {
		table_count--;
		channel->removing = true;
	}
	spin_unlock(&table_lock);
	return channel;
}

static int probe(struct idxd_dev *idxd_dev)
{
	struct idxd_wq *wq = layout_wq(idxd_dev);
	struct idxd_device *idxd = wq_device(wq);
	struct channel *channel;
	int result;

	if (!device_is_enabled(idxd))
		return -ENXIO;
	if (!device_is_dsa(idxd))
		return -ENODEV;
	mutex_lock(wq_lock(wq));
	if (strcmp(wq_driver_name(wq), KBUILD_MODNAME)) {
		device_set_status(idxd, IDXD_SCMD_WQ_NO_DRV_NAME);
		mutex_unlock(wq_lock(wq));
		return -ENODEV;
	}
	if (wq_type(wq) == IDXD_WQT_NONE) {
		/* Not configured: a driver that is registered is offered every queue. */
		mutex_unlock(wq_lock(wq));
		return -ENODEV;
	}
	if (wq_type(wq) != IDXD_WQT_KERNEL) {
		pr_err("wq%d.%d: its type is not kernel\n", device_id(idxd), wq_id(wq));
		mutex_unlock(wq_lock(wq));
		return -EINVAL;
	}
	result = idxd_drv_enable_wq(wq);
	if (result < 0)
		goto no;
	channel = new_channel(wq);
	result = channel ? 0 : -ENOMEM;
	if (!result && !insert(channel)) {
		pr_err("wq%d.%d: %u queues are in use already\n", device_id(idxd), wq_id(wq), MAX_CHANNELS);
		free_channel(channel);
		result = -ENOSPC;
	}
	if (result) {
		idxd_drv_disable_wq(wq);
		goto no;
	}
	device_set_status(idxd, 0);
	mutex_unlock(wq_lock(wq));
	pr_info("wq%d.%d: batches of %u, transfers of %llu bytes\n", device_id(idxd), wq_id(wq),
		channel->max_batch, channel->max_transfer);
	return 0;
no:
	/* Freed resources have taken its type with them. */
	wq_set_type(wq, IDXD_WQT_KERNEL);
	mutex_unlock(wq_lock(wq));
	return result;
}

static void remove(struct idxd_dev *idxd_dev)
{
	struct idxd_wq *wq = layout_wq(idxd_dev);
	struct channel *channel = remove_from_table(wq);

	/* Whoever polls reads memory of the queue: they end first, soon or by their time limit. */
	if (channel)
		wait_event(released, is_released(channel));
	mutex_lock(wq_lock(wq));
	__idxd_wq_quiesce(wq);
	idxd_drv_disable_wq(wq);
	mutex_unlock(wq_lock(wq));
	/* From here on the device writes nothing of this queue. */
	if (channel)
		free_channel(channel);
}

int channels_start(void)
{
	int result;

	driver = layout_new_driver(KBUILD_MODNAME, probe, remove);
	if (IS_ERR(driver))
		return PTR_ERR(driver);
	result = __idxd_driver_register(driver, THIS_MODULE, KBUILD_MODNAME);
	if (result)
		kfree(driver);
	return result;
}

void channels_stop(void)
{
	idxd_driver_unregister(driver);
	kfree(driver);
}

/* Until 6.12 a name, from 6.13 on a string. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS(IDXD);
#else
MODULE_IMPORT_NS("IDXD");
#endif
