/* SPDX-License-Identifier: GPL-2.0 */
/* Copies of folios: by the device, by several threads, or by the core that asks. */
#ifndef DRAY_MIGRATE_COPY_H
#define DRAY_MIGRATE_COPY_H

#include <linux/mm.h>

enum pair_state {
	/* Nothing has been done with it. */
	PAIR_NEW,
	PAIR_COPIED,
	/* The source has a memory error. */
	PAIR_POISONED,
	/* The device took it and never ended: the destination must not be used. */
	PAIR_LOST,
	/* The device refused it: the core copies it. Never seen outside copy.c and device.c. */
	PAIR_FAILED,
};

struct pair {
	struct folio *src;
	struct folio *dst;
	enum pair_state state;
};

enum copier { BY_CORE, BY_THREADS, BY_DEVICE, COPIERS };

/* Whose copy it is, for the timer and the trace: what migrate_pages was called with, or -1. */
struct origin {
	int reason;
	int mode;
	bool batch;
};

int copy_start(void);
void copy_stop(void);
/* Who would copy so many pages. */
enum copier copier_for(unsigned long pages);
/* Copies all pairs; each has its outcome in its state. */
void copy_pairs(struct pair *pairs, unsigned int count, const struct origin *origin);

/* device.c: false if the device could not be asked at all; else no pair is new, and some may have failed. */
bool device_copy(struct pair *pairs, unsigned int count, unsigned int *submissions);
int device_start(void);
void device_stop(void);

/* threads.c */
void threads_copy(struct pair *pairs, unsigned int count, unsigned int threads);
int threads_start(void);
void threads_stop(void);
/* Copies pages of a pair, from one and so many; false if the source has a memory error. */
bool core_copy(struct pair *pair, unsigned long first, unsigned long pages);

static inline unsigned long pages_of(const struct pair *pairs, unsigned int count)
{
	unsigned long pages = 0;
	unsigned int n;

	for (n = 0; n < count; n++)
		pages += folio_nr_pages(pairs[n].src);
	return pages;
}

#endif
