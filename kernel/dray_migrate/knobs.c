// SPDX-License-Identifier: GPL-2.0
/* Knobs, by the names that kernels with DSA copies in page migration have given them, and their rules. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/migrate_mode.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sysctl.h>

#include "channel.h"
#include "knobs.h"

struct knobs knobs = {
	.limit_chans = MAX_CHANNELS,
	.limit_mt_num = 4,
	.dsa_copy_threshold = 12,
};

/* One write at a time: each rule sees the other knobs as they are. */
static DEFINE_MUTEX(lock);

struct knob_rule {
	const char *name;
	int minimum;
	int maximum;
	/* What it reads as, and what a write does: 0 or an error. */
	int (*get)(void);
	int (*set)(int value);
};

#define GETTER(name) static int get_##name(void) { return knobs.name; }
GETTER(dsa_state)
GETTER(use_dsa_copy_pages)
GETTER(cpu_multi_copy_pages)
GETTER(limit_chans)
GETTER(limit_mt_num)
GETTER(dsa_copy_threshold)
GETTER(reason_mask)

static int refuse(int error, const char *why)
{
	pr_warn("%s\n", why);
	return error;
}

static int set_dsa_state(int value)
{
	unsigned int queues = channels_usable();

	if (value && !queues)
		return refuse(-ENODEV, "dsa_state: no enabled work queue has driver_name=dray_migrate");
	if (!value && knobs.use_dsa_copy_pages)
		return refuse(-EBUSY, "dsa_state: use_dsa_copy_pages is 1; set it to 0 first");
	if (value && !knobs.dsa_state)
		pr_info("%u queue%s can be used\n", queues, queues == 1 ? "" : "s");
	WRITE_ONCE(knobs.dsa_state, value);
	return 0;
}

static int set_use_dsa_copy_pages(int value)
{
	if (value && !knobs.dsa_state)
		return refuse(-EINVAL, "use_dsa_copy_pages: dsa_state is 0; set it to 1 first");
	if (value && knobs.cpu_multi_copy_pages)
		return refuse(-EBUSY, "use_dsa_copy_pages: cpu_multi_copy_pages is 1; choose one of the two");
	WRITE_ONCE(knobs.use_dsa_copy_pages, value);
	return 0;
}

static int set_cpu_multi_copy_pages(int value)
{
	if (value && knobs.use_dsa_copy_pages)
		return refuse(-EBUSY, "cpu_multi_copy_pages: use_dsa_copy_pages is 1; choose one of the two");
	WRITE_ONCE(knobs.cpu_multi_copy_pages, value);
	return 0;
}

static int set_limit_chans(int value)
{
	if (knobs.use_dsa_copy_pages)
		return refuse(-EBUSY, "limit_chans: use_dsa_copy_pages is 1; set it to 0 first");
	WRITE_ONCE(knobs.limit_chans, value);
	return 0;
}

static int set_limit_mt_num(int value)
{
	WRITE_ONCE(knobs.limit_mt_num, value);
	return 0;
}

static int set_dsa_copy_threshold(int value)
{
	WRITE_ONCE(knobs.dsa_copy_threshold, value);
	return 0;
}

static int set_reason_mask(int value)
{
	WRITE_ONCE(knobs.reason_mask, value);
	return 0;
}

static int get_concur(int reason)
{
	return !!(knobs.reason_mask & BIT(reason));
}

static int set_concur(int reason, int value)
{
	return set_reason_mask(value ? knobs.reason_mask | BIT(reason) : knobs.reason_mask & ~BIT(reason));
}

static int get_use_concur_to_compact(void) { return get_concur(MR_COMPACTION); }
static int set_use_concur_to_compact(int value) { return set_concur(MR_COMPACTION, value); }
static int get_use_concur_to_demote(void) { return get_concur(MR_DEMOTION); }
static int set_use_concur_to_demote(int value) { return set_concur(MR_DEMOTION, value); }

static int get_min_bytes(void) { return knobs.dsa_copy_threshold << PAGE_SHIFT; }
static int set_min_bytes(int value) { return set_dsa_copy_threshold(DIV_ROUND_UP(value, PAGE_SIZE)); }

/* Thresholds up to what one call of migrate_pages can have at a time, twice. */
#define MAX_THRESHOLD 1024

#define RULE(knob_name, minimum_value, maximum_value) \
	{ #knob_name, minimum_value, maximum_value, get_##knob_name, set_##knob_name }

static struct knob_rule rules[] = {
	RULE(dsa_state, 0, 1),
	RULE(use_dsa_copy_pages, 0, 1),
	RULE(cpu_multi_copy_pages, 0, 1),
	RULE(limit_chans, 1, MAX_CHANNELS),
	RULE(limit_mt_num, 1, MAX_THREADS),
	RULE(dsa_copy_threshold, 1, MAX_THRESHOLD),
	RULE(use_concur_to_compact, 0, 1),
	RULE(use_concur_to_demote, 0, 1),
	/* The names of the public series of 2026 that offload migration to a DMA engine. */
	RULE(reason_mask, 0, BIT(MR_TYPES) - 1),
	{ "nr_dma_chan", 1, MAX_CHANNELS, get_limit_chans, set_limit_chans },
	RULE(min_bytes, 1, MAX_THRESHOLD << PAGE_SHIFT),
};

static int set(const struct knob_rule *rule, int value)
{
	if (value < rule->minimum || value > rule->maximum) {
		pr_warn("%s: %d is not in %d to %d\n", rule->name, value, rule->minimum, rule->maximum);
		return -EINVAL;
	}
	return rule->set(value);
}

static int handle(const struct ctl_table *table, int write, void *buffer, size_t *length, loff_t *at)
{
	struct knob_rule *rule = table->extra1;
	struct ctl_table copy = *table;
	int value, result;

	mutex_lock(&lock);
	value = rule->get();
	copy.data = &value;
	copy.extra1 = NULL;
	result = proc_dointvec(&copy, write, buffer, length, at);
	if (!result && write)
		result = set(rule, value);
	mutex_unlock(&lock);
	return result;
}

static struct ctl_table tables[ARRAY_SIZE(rules)];
static struct ctl_table_header *header;

int knobs_start(void)
{
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(rules); n++)
		tables[n] = (struct ctl_table){
			.procname = rules[n].name,
			.maxlen = sizeof(int),
			.mode = 0644,
			.proc_handler = handle,
			.extra1 = &rules[n],
		};
	header = register_sysctl_sz("vm", tables, ARRAY_SIZE(tables));
	return header ? 0 : -ENOMEM;
}

void knobs_stop(void)
{
	unregister_sysctl_table(header);
}
