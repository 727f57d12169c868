// SPDX-License-Identifier: GPL-2.0
/* Copies by several threads of the core. */
#include <linux/workqueue.h>

#include "copy.h"
#include "knobs.h"

/* One thread's share: pages of the pairs taken together, from first on. */
struct share {
	struct work_struct work;
	struct pair *pairs;
	unsigned int count;
	unsigned long first;
	unsigned long pages;
};

static struct workqueue_struct *workers;

static void copy_share(struct share *share)
{
	unsigned long at = 0, end = share->first + share->pages;
	unsigned int n;

	for (n = 0; n < share->count && at < end; n++) {
		struct pair *pair = &share->pairs[n];
		unsigned long pages = folio_nr_pages(pair->src);
		unsigned long from = max(at, share->first), to = min(at + pages, end);

		if (from < to && !core_copy(pair, from - at, to - from))
			WRITE_ONCE(pair->state, PAIR_POISONED);
		at += pages;
	}
}

static void run(struct work_struct *work)
{
	copy_share(container_of(work, struct share, work));
}

void threads_copy(struct pair *pairs, unsigned int count, unsigned int threads)
{
	struct share shares[MAX_THREADS];
	unsigned long pages = pages_of(pairs, count), first = 0;
	unsigned int n;

	threads = min3(threads, (unsigned int)MAX_THREADS, (unsigned int)pages);
	for (n = 0; n < count; n++)
		pairs[n].state = PAIR_COPIED;
	for (n = 0; n < threads; n++) {
		struct share *share = &shares[n];

		share->pairs = pairs;
		share->count = count;
		share->first = first;
		share->pages = pages * (n + 1) / threads - first;
		first += share->pages;
		if (n) {
			INIT_WORK_ONSTACK(&share->work, run);
			queue_work(workers, &share->work);
		}
	}
	/* The caller is one of them. */
	copy_share(&shares[0]);
	for (n = 1; n < threads; n++) {
		flush_work(&shares[n].work);
		destroy_work_on_stack(&shares[n].work);
	}
}

int threads_start(void)
{
	/* Reclaim may wait for a copy. */
	workers = alloc_workqueue("dray_migrate", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return workers ? 0 : -ENOMEM;
}

void threads_stop(void)
{
	destroy_workqueue(workers);
}
