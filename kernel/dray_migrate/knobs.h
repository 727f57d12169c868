/* SPDX-License-Identifier: GPL-2.0 */
/* The knobs of /proc/sys/vm. */
#ifndef DRAY_MIGRATE_KNOBS_H
#define DRAY_MIGRATE_KNOBS_H

#include <linux/compiler.h>

#define MAX_THREADS 16

struct knobs {
	int dsa_state;
	int use_dsa_copy_pages;
	int cpu_multi_copy_pages;
	int limit_chans;
	int limit_mt_num;
	int dsa_copy_threshold;
	/* Reasons (enum migrate_reason) whose pages are copied in batches, a bit each. */
	int reason_mask;
};

extern struct knobs knobs;

#define knob(name) READ_ONCE(knobs.name)

int knobs_start(void);
void knobs_stop(void);

#endif
