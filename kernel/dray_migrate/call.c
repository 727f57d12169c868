// SPDX-License-Identifier: GPL-2.0
/*
 * Batches of a call of migrate_pages.
 *
 * migrate_pages asks its caller for a destination of each folio, unmaps them all, flushes the TLBs, and then
 * copies and maps one after the other. The destinations are asked for through here, so the pairs are known.
 * At the first copy of a known pair all pairs that are pending have been unmapped and flushed: they are copied
 * together, and the copies that the kernel asks for next are answered by what has been done.
 *
 * A pair is copied early only if nobody can write to its source any more: it is anonymous, locked, mapped
 * nowhere, not in the swap cache, and has no reference besides those that migration expects (a page that
 * somebody has pinned has one more). What is not so, is copied when the kernel asks, as without this module.
 *
 * Whether a pair was given back is known in one of two ways. With a put function of the caller's, ours is
 * called first. Without one the kernel frees the destination; then the pair holds a reference of its own to
 * it, and a destination that has no other is a pair that was given back.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "call.h"
#include "copy.h"
#include "counters.h"
#include "knobs.h"

/* As many as migrate_pages takes at a time. */
#define MAX_PAIRS 512
#define BUCKETS 64

struct call {
	struct hlist_node node;
	struct task_struct *task;
	new_folio_t *get;
	free_folio_t *put;
	unsigned long private;
	struct origin origin;
	/* Calls in this one, of the same task, for which there was no context. */
	unsigned int nested;
	/* Pairs own a reference to their destination. */
	bool references;
	/* Pairs from here on have not been answered. */
	unsigned int first;
	unsigned int count;
	struct pair pairs[MAX_PAIRS];
};

static struct call *calls;
static unsigned int call_number;
static struct hlist_head free_calls;
static struct hlist_head active[BUCKETS];
static unsigned int active_number;
/* Of all of the above; taken in a hook, where nothing may sleep. */
static DEFINE_RAW_SPINLOCK(lock);
static DECLARE_WAIT_QUEUE_HEAD(ended);

static struct hlist_head *bucket_of(const struct task_struct *task)
{
	return &active[hash_ptr(task, ilog2(BUCKETS))];
}

/* The innermost call of the current task. */
static struct call *innermost(void)
{
	struct call *call;

	hlist_for_each_entry(call, bucket_of(current), node)
		if (call->task == current)
			return call;
	return NULL;
}

static struct call *current_call(void)
{
	struct call *call;
	unsigned long flags;

	if (!READ_ONCE(active_number))
		return NULL;
	raw_spin_lock_irqsave(&lock, flags);
	call = innermost();
	raw_spin_unlock_irqrestore(&lock, flags);
	return call;
}

struct call *call_begin(new_folio_t *get, free_folio_t *put, unsigned long private, int mode, int reason)
{
	bool batch = reason >= 0 && reason < MR_TYPES && knob(reason_mask) & BIT(reason);
	struct call *call;
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	call = hlist_entry_safe(free_calls.first, struct call, node);
	if (call) {
		hlist_del(&call->node);
		call->task = current;
		call->get = get;
		call->put = put;
		call->private = private;
		call->origin = (struct origin){ reason, mode, batch };
		call->nested = 0;
		call->references = !put;
		call->first = 0;
		call->count = 0;
		hlist_add_head(&call->node, bucket_of(current));
		active_number++;
	} else {
		struct call *outer = innermost();

		count_one(calls_without_context);
		if (outer)
			outer->nested++;
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	return call && batch ? call : NULL;
}

/* Forgets a pair. */
static void drop(struct call *call, unsigned int n)
{
	struct folio *dst = call->pairs[n].dst;

	call->pairs[n].src = NULL;
	if (call->references)
		folio_put(dst);
}

void call_end(void)
{
	struct call *call;
	unsigned long flags;
	unsigned int n;
	bool last;

	if (!READ_ONCE(active_number))
		return;
	raw_spin_lock_irqsave(&lock, flags);
	call = innermost();
	if (call && call->nested) {
		call->nested--;
		call = NULL;
	}
	if (call)
		hlist_del(&call->node);
	raw_spin_unlock_irqrestore(&lock, flags);
	if (!call)
		return;
	for (n = call->first; n < call->count; n++)
		if (call->pairs[n].src) {
			count_one(pairs_given_back);
			drop(call, n);
		}
	raw_spin_lock_irqsave(&lock, flags);
	hlist_add_head(&call->node, &free_calls);
	last = --active_number == 0;
	raw_spin_unlock_irqrestore(&lock, flags);
	if (last)
		wake_up_all(&ended);
}

static struct folio *get_destination(struct folio *src, unsigned long private)
{
	struct call *call = (struct call *)private;
	struct folio *dst = call->get(src, call->private);

	if (!dst)
		return NULL;
	if (call->first == call->count)
		call->first = call->count = 0;
	if (folio_test_hugetlb(src) || !folio_test_anon(src) || folio_test_ksm(src)) {
		count_one(pairs_not_anonymous);
	} else if (call->count == MAX_PAIRS) {
		count_one(pairs_too_many);
	} else {
		call->pairs[call->count++] = (struct pair){ src, dst, PAIR_NEW };
		if (call->references)
			folio_get(dst);
	}
	return dst;
}

static void put_destination(struct folio *dst, unsigned long private)
{
	struct call *call = (struct call *)private;
	unsigned int n;

	for (n = call->count; n-- > call->first;)
		if (call->pairs[n].src && call->pairs[n].dst == dst) {
			count_one(pairs_given_back);
			drop(call, n);
			break;
		}
	while (call->count > call->first && !call->pairs[call->count - 1].src)
		call->count--;
	call->put(dst, call->private);
}

new_folio_t *call_get(struct call *call)
{
	return get_destination;
}

free_folio_t *call_put(struct call *call)
{
	return call->put ? put_destination : NULL;
}

/* True if nobody can write to the source, and the destination is the kernel's. */
static bool may_copy_early(const struct call *call, const struct pair *pair)
{
	struct folio *src = pair->src, *dst = pair->dst;

	return folio_test_locked(src) && folio_test_anon(src) && !folio_test_ksm(src) &&
	       !folio_test_swapcache(src) && !folio_mapped(src) &&
	       folio_ref_count(src) == folio_expected_ref_count(src) + 1 && folio_test_locked(dst) &&
	       folio_ref_count(dst) == 1 + call->references && folio_order(src) == folio_order(dst);
}

/* Copies what is pending, and leaves only pairs that have an answer. */
static void copy_batch(struct call *call)
{
	unsigned int n, kept = 0;
	unsigned long pages;

	for (n = call->first; n < call->count; n++) {
		struct pair *pair = &call->pairs[n];

		if (!pair->src)
			continue;
		if (!may_copy_early(call, pair)) {
			if (call->references && folio_ref_count(pair->dst) == 1)
				count_one(pairs_given_back);
			else
				count_one(pairs_referenced);
			drop(call, n);
			continue;
		}
		call->pairs[kept++] = *pair;
	}
	call->first = 0;
	call->count = kept;
	pages = pages_of(call->pairs, kept);
	/* Below the threshold there is nothing to win: each is copied when it is asked for. */
	if (copier_for(pages) == BY_CORE) {
		for (n = 0; n < kept; n++)
			drop(call, n);
		call->count = 0;
		return;
	}
	copy_pairs(call->pairs, kept, &call->origin);
	count_one(batches);
	count_add(pages_batched, pages);
}

/* The number of a pair; the kernel asks in the order in which it has got the destinations. */
static int find(const struct call *call, const struct folio *dst, const struct folio *src)
{
	unsigned int n;

	for (n = call->first; n < call->count; n++)
		if (call->pairs[n].src == src && call->pairs[n].dst == dst)
			return n;
	return -ENOENT;
}

static int result_of(const struct pair *pair)
{
	switch (pair->state) {
	case PAIR_COPIED: return 0;
	case PAIR_POISONED: return -EHWPOISON;
	/* Not -EAGAIN: the same destination would be written to again. */
	default: return -EIO;
	}
}

int call_copy(struct folio *dst, struct folio *src)
{
	static const struct origin nobody = { -1, -1 };
	struct call *call = current_call();
	struct pair single = { src, dst, PAIR_NEW };
	int n = call ? find(call, dst, src) : -ENOENT;

	if (n >= 0 && call->pairs[n].state == PAIR_NEW) {
		copy_batch(call);
		n = find(call, dst, src);
	}
	if (n >= 0) {
		int result = result_of(&call->pairs[n]);

		/* Once: if the kernel asks again, somebody had a reference in between. */
		drop(call, n);
		while (call->first < call->count && !call->pairs[call->first].src)
			call->first++;
		return result;
	}
	copy_pairs(&single, 1, call ? &call->origin : &nobody);
	return result_of(&single);
}

int calls_start(void)
{
	unsigned int n;

	call_number = max(16u, 4 * num_possible_cpus());
	calls = kvcalloc(call_number, sizeof(*calls), GFP_KERNEL);
	if (!calls)
		return -ENOMEM;
	for (n = 0; n < call_number; n++)
		hlist_add_head(&calls[n].node, &free_calls);
	return 0;
}

void calls_stop(void)
{
	wait_event(ended, !READ_ONCE(active_number));
	kvfree(calls);
}
