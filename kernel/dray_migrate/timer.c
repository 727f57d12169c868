// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/timer: 1 clears and starts it, 0 stops it, reading prints it.
 *
 * Histograms are by powers of two: a line "A-B N" says that N values were from A to B.
 */
#include <linux/log2.h>
#include <linux/migrate_mode.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "timer.h"

#define MODES (MIGRATE_SYNC + 1)
/* Pages of one call: 0, 1, 2-3, up to 2^20 and more. */
#define PAGE_BUCKETS 22
/* Orders of copies, 0 to 9, and more. */
#define ORDERS 11
#define NS_BUCKETS 40

struct calls {
	atomic64_t calls;
	atomic64_t pages;
	atomic64_t failed;
	atomic64_t histogram[PAGE_BUCKETS];
};

struct copies {
	atomic64_t copies;
	atomic64_t pages;
	atomic64_t ns;
	atomic64_t histogram[NS_BUCKETS];
};

static struct calls calls[MR_TYPES][MODES];
static struct copies copies[COPIERS][ORDERS];
static DEFINE_MUTEX(lock);
static bool running;
static ktime_t started, stopped;

static const char *const reasons[MR_TYPES] = {
	[MR_COMPACTION] = "compaction",
	[MR_MEMORY_FAILURE] = "memory_failure",
	[MR_MEMORY_HOTPLUG] = "memory_hotplug",
	[MR_SYSCALL] = "syscall_or_cpuset",
	[MR_MEMPOLICY_MBIND] = "mempolicy_mbind",
	[MR_NUMA_MISPLACED] = "numa_misplaced",
	[MR_CONTIG_RANGE] = "contig_range",
	[MR_LONGTERM_PIN] = "longterm_pin",
	[MR_DEMOTION] = "demotion",
	[MR_DAMON] = "damon",
};
static const char *const modes[MODES] = {
	[MIGRATE_ASYNC] = "async",
	[MIGRATE_SYNC_LIGHT] = "sync_light",
	[MIGRATE_SYNC] = "sync",
};
static const char *const copiers[COPIERS] = {
	[BY_CORE] = "core",
	[BY_THREADS] = "threads",
	[BY_DEVICE] = "device",
};

/* 0, then 1 + floor(log2). */
static unsigned int bucket(u64 value, unsigned int buckets)
{
	return value ? min(1 + (unsigned int)ilog2(value), buckets - 1) : 0;
}

void timer_call(int reason, int mode, unsigned long succeeded, unsigned long failed)
{
	struct calls *c;

	if (!READ_ONCE(running) || reason < 0 || reason >= MR_TYPES || mode < 0 || mode >= MODES)
		return;
	c = &calls[reason][mode];
	atomic64_inc(&c->calls);
	atomic64_add(succeeded, &c->pages);
	atomic64_add(failed, &c->failed);
	atomic64_inc(&c->histogram[bucket(succeeded, PAGE_BUCKETS)]);
}

void timer_copy(enum copier by, unsigned long pages, u64 ns)
{
	struct copies *c;

	if (!READ_ONCE(running))
		return;
	c = &copies[by][min_t(unsigned int, order_base_2(pages), ORDERS - 1)];
	atomic64_inc(&c->copies);
	atomic64_add(pages, &c->pages);
	atomic64_add(ns, &c->ns);
	atomic64_inc(&c->histogram[bucket(ns, NS_BUCKETS)]);
}

static void show_histogram(struct seq_file *file, atomic64_t *histogram, unsigned int buckets)
{
	unsigned int n;

	for (n = 0; n < buckets; n++) {
		s64 count = atomic64_read(&histogram[n]);

		if (!count)
			continue;
		if (n < 2)
			seq_printf(file, "  %u %lld\n", n, count);
		else if (n == buckets - 1)
			seq_printf(file, "  %llu- %lld\n", 1ULL << (n - 1), count);
		else
			seq_printf(file, "  %llu-%llu %lld\n", 1ULL << (n - 1), (1ULL << n) - 1, count);
	}
}

static int show(struct seq_file *file, void *nothing)
{
	unsigned int r, m;

	mutex_lock(&lock);
	seq_printf(file, "state %s\n", running ? "running" : "stopped");
	seq_printf(file, "ran_ns %lld\n", ktime_to_ns(ktime_sub(running ? ktime_get() : stopped, started)));
	for (r = 0; r < MR_TYPES; r++)
		for (m = 0; m < MODES; m++) {
			struct calls *c = &calls[r][m];

			if (!atomic64_read(&c->calls))
				continue;
			seq_printf(file, "migrate_pages reason=%s mode=%s calls=%lld pages=%lld failed=%lld\n",
				   reasons[r] ?: "other", modes[m], atomic64_read(&c->calls),
				   atomic64_read(&c->pages), atomic64_read(&c->failed));
			seq_puts(file, " pages of a call:\n");
			show_histogram(file, c->histogram, PAGE_BUCKETS);
		}
	for (r = 0; r < COPIERS; r++)
		for (m = 0; m < ORDERS; m++) {
			struct copies *c = &copies[r][m];

			if (!atomic64_read(&c->copies))
				continue;
			seq_printf(file, "copy by=%s order=%u copies=%lld pages=%lld ns=%lld\n", copiers[r], m,
				   atomic64_read(&c->copies), atomic64_read(&c->pages), atomic64_read(&c->ns));
			seq_puts(file, " ns of a copy:\n");
			show_histogram(file, c->histogram, NS_BUCKETS);
		}
	mutex_unlock(&lock);
	return 0;
}

static int open(struct inode *inode, struct file *file)
{
	return single_open(file, show, NULL);
}

static ssize_t write(struct file *file, const char __user *text, size_t length, loff_t *at)
{
	unsigned int value;
	int result = kstrtouint_from_user(text, length, 0, &value);

	if (result)
		return result;
	if (value > 1)
		return -EINVAL;
	mutex_lock(&lock);
	if (value == running) {
		/* What runs is stopped first, and what has stopped cannot be stopped again. */
		result = value ? -EBUSY : -EINVAL;
	} else if (value) {
		memset(calls, 0, sizeof(calls));
		memset(copies, 0, sizeof(copies));
		started = ktime_get();
		WRITE_ONCE(running, true);
	} else {
		WRITE_ONCE(running, false);
		stopped = ktime_get();
	}
	mutex_unlock(&lock);
	return result ?: length;
}

static const struct proc_ops operations = {
	.proc_open = open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = write,
};

int timer_start(void)
{
	return proc_create("timer", 0644, NULL, &operations) ? 0 : -ENOMEM;
}

void timer_stop(void)
{
	remove_proc_entry("timer", NULL);
}
