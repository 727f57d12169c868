// SPDX-License-Identifier: GPL-2.0
/* Who copies, and what is counted of it. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/preempt.h>

#include "channel.h"
#include "copy.h"
#include "counters.h"
#include "knobs.h"
#include "timer.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

atomic64_t counters[COUNTER_NUMBER];

static const char *const counter_names[] = {
#define NAME(name) #name,
	COUNTERS(NAME)
#undef NAME
};

static int show_counters(char *buffer, const struct kernel_param *parameter)
{
	int at = 0;
	unsigned int n;

	for (n = 0; n < COUNTER_NUMBER; n++)
		at += sysfs_emit_at(buffer, at, "%s %lld\n", counter_names[n], atomic64_read(&counters[n]));
	return at;
}

static const struct kernel_param_ops counters_ops = { .get = show_counters };
module_param_cb(counters, &counters_ops, NULL, 0444);
MODULE_PARM_DESC(counters, "what was copied, by whom, and why not by the device");

bool core_copy(struct pair *pair, unsigned long first, unsigned long pages)
{
	unsigned long n;

	for (n = first; n < first + pages; n++) {
		if (copy_mc_highpage(folio_page(pair->dst, n), folio_page(pair->src, n)))
			return false;
		if (n + 1 < first + pages && preemptible())
			cond_resched();
	}
	return true;
}

static void core_copy_pair(struct pair *pair)
{
	unsigned long pages = folio_nr_pages(pair->src);

	pair->state = core_copy(pair, 0, pages) ? PAIR_COPIED : PAIR_POISONED;
	count_add(pages_by_core, pages);
}

enum copier copier_for(unsigned long pages)
{
	if (knob(use_dsa_copy_pages) && pages >= knob(dsa_copy_threshold))
		return BY_DEVICE;
	if (knob(cpu_multi_copy_pages) && knob(limit_mt_num) > 1 && pages > 1)
		return BY_THREADS;
	return BY_CORE;
}

void copy_pairs(struct pair *pairs, unsigned int count, const struct origin *origin)
{
	unsigned long pages = pages_of(pairs, count);
	enum copier by = copier_for(pages);
	unsigned int n, submissions = 0;
	ktime_t begin = ktime_get();
	u64 ns;

	for (n = 0; n < count; n++)
		pairs[n].state = PAIR_NEW;
	/* Both others sleep. */
	if (by != BY_CORE && !preemptible()) {
		if (by == BY_DEVICE)
			count_add(fallback_atomic, pages);
		by = BY_CORE;
	}
	if (by == BY_DEVICE && !device_copy(pairs, count, &submissions))
		by = BY_CORE;
	if (by == BY_THREADS)
		threads_copy(pairs, count, knob(limit_mt_num));
	for (n = 0; n < count; n++) {
		struct pair *pair = &pairs[n];

		switch (pair->state) {
		case PAIR_FAILED:
			count_add(fallback_error, folio_nr_pages(pair->src));
			pr_info_once("a copy by the device has failed: the core makes it; the counter fallback_error has their number\n");
			fallthrough;
		case PAIR_NEW:
			core_copy_pair(pair);
			break;
		case PAIR_COPIED:
			if (by == BY_DEVICE) {
				count_add(pages_by_device, folio_nr_pages(pair->src));
				count_one(folios_by_device);
			} else {
				count_add(pages_by_threads, folio_nr_pages(pair->src));
			}
			break;
		case PAIR_LOST:
			count_add(pages_lost, folio_nr_pages(pair->src));
			break;
		case PAIR_POISONED:
			break;
		}
	}
	ns = ktime_to_ns(ktime_sub(ktime_get(), begin));
	timer_copy(by, pages, ns);
	trace_dray_copy(origin->reason, origin->mode, origin->batch, count, pages, by, submissions, ns);
}

int copy_start(void)
{
	int result = device_start();

	if (result)
		return result;
	result = threads_start();
	if (result)
		device_stop();
	return result;
}

void copy_stop(void)
{
	threads_stop();
	device_stop();
}
