/* SPDX-License-Identifier: GPL-2.0 */
/* Work queues that were given to this driver, and how a copy uses them. */
#ifndef DRAY_MIGRATE_CHANNEL_H
#define DRAY_MIGRATE_CHANNEL_H

#include <linux/list.h>
#include <linux/mm_types.h>

#include "layout.h"

#define MAX_CHANNELS 8
/* Descriptors of one copy that a channel can have at a time. */
#define AREA_ENTRIES 128

/* Memory of one CPU's copy on one channel: a list of descriptors, and a record for each. */
struct area {
	struct dsa_hw_desc *list;
	dma_addr_t list_address;
	struct dsa_completion_record *records;
	dma_addr_t records_address;
};

struct channel {
	struct idxd_wq *wq;
	struct idxd_device *idxd;
	struct device *dma;
	u32 max_batch;
	u64 max_transfer;
	/* Number of this queue among its device's, to spread copies over devices. */
	unsigned int rank;
	/* The rest is protected by the lock of the table. */
	unsigned int users;
	bool removing;
	/* A descriptor was never completed: not used again until the queue is enabled anew. */
	bool failed;
	struct list_head lost;
	struct area areas[];
};

/* One submission under way. */
struct flight {
	struct channel *channel;
	struct idxd_desc *desc;
	struct area *area;
	unsigned int first;
	unsigned int count;
};

int channels_start(void);
void channels_stop(void);
/* How many queues could be used now. */
unsigned int channels_usable(void);
/* Takes up to `limit` of them; each is given back by channel_release. */
unsigned int channels_hold(struct channel **channels, unsigned int limit);
void channel_release(struct channel *channel);

/* Submits entries of an area; -EAGAIN while the queue has no descriptor to give. */
int channel_submit(struct channel *channel, struct area *area, unsigned int first, unsigned int count,
		   struct flight *flight);
/* The completion status, or -ETIMEDOUT: then the device may still write, and the channel has failed. */
int channel_wait(struct flight *flight);
/* Status of one entry of a flight that has ended. */
u8 channel_status(const struct flight *flight, unsigned int entry, int status);
/* Keeps a folio that the device may still write to until the queue is disabled. */
void channel_keep(struct channel *channel, struct folio *folio);

#endif
