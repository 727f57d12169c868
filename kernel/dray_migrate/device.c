// SPDX-License-Identifier: GPL-2.0
/* Copies of folios as descriptors: pieces, spread over channels, in batches. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "channel.h"
#include "copy.h"
#include "counters.h"
#include "knobs.h"

/* A channel is used for so many pages of a batch at least: as many as a call for demotion has. */
#define PAGES_PER_SUBMISSION 64

static unsigned int fail_every;
module_param(fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "every so many descriptors one is written so that the device refuses it (0: none)");

/* What one CPU's copy needs besides the channels' areas. */
struct slot {
	/* Which pair an entry of a channel's area belongs to. */
	u16 pair[MAX_CHANNELS][AREA_ENTRIES];
	unsigned int used[MAX_CHANNELS];
	struct flight flights[MAX_CHANNELS][AREA_ENTRIES];
};

struct copy {
	struct slot *slot;
	unsigned int slot_number;
	struct pair *pairs;
	struct channel *channels[MAX_CHANNELS];
	unsigned int channel_count;
	unsigned int submissions;
};

static struct slot **slots;
static unsigned long *slots_busy;
static atomic_t entries_written;

/* Own CPU's slot, or whichever is free; negative if none is. */
static int take_slot(void)
{
	unsigned int own = raw_smp_processor_id(), n;

	for (n = 0; n < nr_cpu_ids; n++) {
		unsigned int number = (own + n) % nr_cpu_ids;

		if (slots[number] && !test_and_set_bit_lock(number, slots_busy))
			return number;
	}
	return -EBUSY;
}

/* A pair's outcome is the worst of its pieces'. */
static void worsen(struct pair *pair, enum pair_state state)
{
	if (pair->state != PAIR_LOST)
		pair->state = state;
}

static void end_entry(struct copy *copy, unsigned int c, unsigned int entry, int status)
{
	struct channel *channel = copy->channels[c];
	struct dsa_hw_desc *hw = &channel->areas[copy->slot_number].list[entry];
	struct pair *pair = &copy->pairs[copy->slot->pair[c][entry]];

	if (status == -ETIMEDOUT) {
		/* The mapping stays, too. */
		if (pair->state != PAIR_LOST)
			channel_keep(channel, pair->dst);
		pair->state = PAIR_LOST;
		return;
	}
	dma_unmap_page(channel->dma, hw->src_addr, hw->xfer_size, DMA_TO_DEVICE);
	dma_unmap_page(channel->dma, hw->dst_addr, hw->xfer_size, DMA_FROM_DEVICE);
	if (status != DSA_COMP_SUCCESS)
		worsen(pair, PAIR_FAILED);
	else
		count_add(bytes_by_device, hw->xfer_size);
}

static void end_flight(struct copy *copy, unsigned int c, struct flight *flight)
{
	int status = channel_wait(flight);
	unsigned int n;

	for (n = flight->first; n < flight->first + flight->count; n++)
		end_entry(copy, c, n, status < 0 ? status : channel_status(flight, n, status));
	if (status >= 0)
		idxd_free_desc(flight->channel->wq, flight->desc);
}

/* Submits what has been written for a channel and returns how many flights that are. */
static unsigned int submit_channel(struct copy *copy, unsigned int c, unsigned int *ended)
{
	struct channel *channel = copy->channels[c];
	struct area *area = &channel->areas[copy->slot_number];
	unsigned int first = 0, flights = 0, batch = max(channel->max_batch, 1u);
	unsigned long limit = jiffies + HZ;

	while (first < copy->slot->used[c]) {
		unsigned int count = min(batch, copy->slot->used[c] - first);
		int result = READ_ONCE(channel->failed) ? -EIO :
			     channel_submit(channel, area, first, count, &copy->slot->flights[c][flights]);

		if (!result) {
			copy->submissions++;
			flights++;
			first += count;
			continue;
		}
		/* All descriptors of the queue are taken: wait for one of ours, or for another CPU's. */
		if (result == -EAGAIN && *ended < flights) {
			end_flight(copy, c, &copy->slot->flights[c][*ended]);
			++*ended;
			continue;
		}
		if (result == -EAGAIN && time_before(jiffies, limit)) {
			cond_resched();
			continue;
		}
		for (; first < copy->slot->used[c]; first++)
			end_entry(copy, c, first, DSA_COMP_NONE);
	}
	return flights;
}

/* Submits everything written and waits for it. */
static void flush(struct copy *copy)
{
	unsigned int flights[MAX_CHANNELS], ended[MAX_CHANNELS] = {}, c;

	for (c = 0; c < copy->channel_count; c++)
		flights[c] = submit_channel(copy, c, &ended[c]);
	for (c = 0; c < copy->channel_count; c++) {
		while (ended[c] < flights[c])
			end_flight(copy, c, &copy->slot->flights[c][ended[c]++]);
		copy->slot->used[c] = 0;
	}
}

/* Writes the descriptor of a piece. */
static void write_entry(struct copy *copy, unsigned int c, unsigned int pair_number, size_t offset, size_t bytes)
{
	struct channel *channel = copy->channels[c];
	struct area *area = &channel->areas[copy->slot_number];
	struct pair *pair = &copy->pairs[pair_number];
	dma_addr_t src, dst;
	unsigned int entry, every = READ_ONCE(fail_every);

	if (copy->slot->used[c] == AREA_ENTRIES)
		flush(copy);
	src = dma_map_page(channel->dma, folio_page(pair->src, 0), offset, bytes, DMA_TO_DEVICE);
	if (dma_mapping_error(channel->dma, src)) {
		worsen(pair, PAIR_FAILED);
		return;
	}
	dst = dma_map_page(channel->dma, folio_page(pair->dst, 0), offset, bytes, DMA_FROM_DEVICE);
	if (dma_mapping_error(channel->dma, dst)) {
		dma_unmap_page(channel->dma, src, bytes, DMA_TO_DEVICE);
		worsen(pair, PAIR_FAILED);
		return;
	}
	entry = copy->slot->used[c]++;
	copy->slot->pair[c][entry] = pair_number;
	area->list[entry] = (struct dsa_hw_desc){
		.opcode = DSA_OPCODE_MEMMOVE,
		.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR,
		.completion_addr = area->records_address + entry * sizeof(*area->records),
		.src_addr = src,
		.dst_addr = dst,
		.xfer_size = bytes,
	};
	area->records[entry].status = DSA_COMP_NONE;
	if (every && atomic_inc_return(&entries_written) % every == 0) {
		/* A reserved flag. */
		area->list[entry].flags |= 1 << 23;
		count_one(faults_injected);
	}
}

/* A large folio goes to all channels, in pieces of whole pages. */
static void write_large(struct copy *copy, unsigned int pair_number, unsigned int *c)
{
	size_t size = folio_size(copy->pairs[pair_number].src), offset;
	size_t piece = round_up(DIV_ROUND_UP(size, copy->channel_count), PAGE_SIZE);

	for (offset = 0; offset < size;) {
		size_t bytes = min3(piece, size - offset, (size_t)copy->channels[*c]->max_transfer);

		write_entry(copy, *c, pair_number, offset, bytes);
		offset += bytes;
		*c = (*c + 1) % copy->channel_count;
	}
}

bool device_copy(struct pair *pairs, unsigned int count, unsigned int *submissions)
{
	struct copy copy = { .pairs = pairs };
	unsigned int n, small = 0, share, used, c, next = 0, written = 0;
	int number;

	copy.channel_count = channels_hold(copy.channels, knob(limit_chans));
	if (!copy.channel_count) {
		count_add(fallback_no_queue, pages_of(pairs, count));
		pr_info_once("no queue can be used: the core copies; the counter fallback_no_queue has the number of pages\n");
		return false;
	}
	number = take_slot();
	if (number < 0) {
		count_add(fallback_busy, pages_of(pairs, count));
		goto release;
	}
	copy.slot_number = number;
	copy.slot = slots[number];
	for (n = 0; n < count; n++) {
		pairs[n].state = PAIR_COPIED;
		small += !folio_test_large(pairs[n].src);
	}
	used = clamp(small / PAGES_PER_SUBMISSION, 1u, copy.channel_count);
	share = clamp(DIV_ROUND_UP(small, used), 1u, (unsigned int)AREA_ENTRIES);
	for (n = 0; n < count; n++) {
		if (folio_test_large(pairs[n].src)) {
			write_large(&copy, n, &next);
			continue;
		}
		write_entry(&copy, written++ / share % used, n, 0, PAGE_SIZE);
	}
	flush(&copy);
	*submissions = copy.submissions;
	clear_bit_unlock(number, slots_busy);
release:
	for (c = 0; c < copy.channel_count; c++)
		channel_release(copy.channels[c]);
	return number >= 0;
}

int device_start(void)
{
	unsigned int n;

	slots = kcalloc(nr_cpu_ids, sizeof(*slots), GFP_KERNEL);
	slots_busy = bitmap_zalloc(nr_cpu_ids, GFP_KERNEL);
	if (!slots || !slots_busy)
		goto no;
	for_each_possible_cpu(n) {
		slots[n] = kvzalloc_node(sizeof(**slots), GFP_KERNEL, cpu_to_node(n));
		if (!slots[n])
			goto no;
	}
	return 0;
no:
	device_stop();
	return -ENOMEM;
}

void device_stop(void)
{
	unsigned int n;

	for (n = 0; slots && n < nr_cpu_ids; n++)
		kvfree(slots[n]);
	kfree(slots);
	bitmap_free(slots_busy);
}
