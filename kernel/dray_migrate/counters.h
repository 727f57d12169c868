/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DRAY_MIGRATE_COUNTERS_H
#define DRAY_MIGRATE_COUNTERS_H

#include <linux/atomic.h>

/* What is counted from the loading of the module on; /sys/module/dray_migrate/parameters/counters shows it. */
#define COUNTERS(X) \
	X(pages_by_device) \
	X(pages_by_threads) \
	X(pages_by_core) \
	X(folios_by_device) \
	X(bytes_by_device) \
	X(submissions) \
	X(descriptors) \
	/* Pages that were copied before the kernel asked, as part of a batch. */ \
	X(pages_batched) \
	X(batches) \
	/* Pairs of a batch that were not copied early, and why. */ \
	X(pairs_given_back) \
	X(pairs_not_anonymous) \
	X(pairs_referenced) \
	X(pairs_too_many) \
	X(calls_without_context) \
	/* Pages that the core copied although the device was asked to. */ \
	X(fallback_no_queue) \
	X(fallback_busy) \
	X(fallback_error) \
	X(fallback_atomic) \
	/* Pages whose copy the device never ended; they stay where they are. */ \
	X(pages_lost) \
	X(queues_failed) \
	X(faults_injected)

#define COUNTER_NAME(name) COUNT_##name,
enum counter { COUNTERS(COUNTER_NAME) COUNTER_NUMBER };
#undef COUNTER_NAME

extern atomic64_t counters[COUNTER_NUMBER];

#define count_add(name, amount) atomic64_add(amount, &counters[COUNT_##name])
#define count_one(name) atomic64_inc(&counters[COUNT_##name])

#endif
