// SPDX-License-Identifier: GPL-2.0
/*
 * Where the kernel is hooked, without a patch:
 * - folio_mc_copy, redirected by ftrace as a live patch does it;
 * - migrate_pages, whose arguments are exchanged at its entry by ftrace;
 * - the tracepoint mm_migrate_pages, with which each migrate_pages ends.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/rcupdate.h>
#include <linux/tracepoint.h>
#include <linux/wait.h>

#include "call.h"
#include "hook.h"
#include "timer.h"

/* Tasks in mc_copy. */
static atomic_t copying;
static DECLARE_WAIT_QUEUE_HEAD(idle);

/* In the place of folio_mc_copy. */
static int mc_copy(struct folio *dst, struct folio *src)
{
	int result = call_copy(dst, src);

	if (atomic_dec_and_test(&copying))
		wake_up_all(&idle);
	return result;
}

static void notrace redirect_copy(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
				  struct ftrace_regs *regs)
{
	int bit = ftrace_test_recursion_trylock(ip, parent_ip);

	if (bit < 0)
		return;
	atomic_inc(&copying);
	ftrace_regs_set_instruction_pointer(regs, (unsigned long)mc_copy);
	ftrace_test_recursion_unlock(bit);
}

static void notrace exchange_arguments(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
				       struct ftrace_regs *fregs)
{
	int bit = ftrace_test_recursion_trylock(ip, parent_ip);
	struct pt_regs *regs = ftrace_get_regs(fregs);
	struct call *call;

	if (bit < 0)
		return;
	/* migrate_pages(from, get_new_folio, put_new_folio, private, mode, reason, ...) */
	if (regs) {
		call = call_begin((new_folio_t *)regs->si, (free_folio_t *)regs->dx, regs->cx, (int)regs->r8,
				  (int)regs->r9);
		if (call) {
			regs->si = (unsigned long)call_get(call);
			regs->dx = (unsigned long)call_put(call);
			regs->cx = (unsigned long)call;
		}
	}
	ftrace_test_recursion_unlock(bit);
}

static void migrate_pages_ends(void *data, unsigned long succeeded, unsigned long failed,
			       unsigned long thp_succeeded, unsigned long thp_failed, unsigned long thp_split,
			       unsigned long split, enum migrate_mode mode, int reason)
{
	timer_call(reason, mode, succeeded, failed);
	call_end();
}

static struct ftrace_ops copy_ops = {
	.func = redirect_copy,
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY,
};
static struct ftrace_ops migrate_ops = {
	.func = exchange_arguments,
	.flags = FTRACE_OPS_FL_SAVE_REGS,
};
static struct tracepoint *tracepoint;

static void find_tracepoint(struct tracepoint *candidate, void *name)
{
	if (!strcmp(candidate->name, name))
		tracepoint = candidate;
}

static int hook(struct ftrace_ops *ops, char *name)
{
	int result = ftrace_set_filter(ops, name, strlen(name), 1);

	if (!result)
		result = register_ftrace_function(ops);
	if (result)
		pr_err("%s cannot be traced: %d%s\n", name, result,
		       result == -EBUSY ? " (another module or a live patch has redirected it)" : "");
	return result;
}

static void stop_tracepoint(void)
{
	tracepoint_probe_unregister(tracepoint, migrate_pages_ends, NULL);
	tracepoint_synchronize_unregister();
}

int hooks_start(void)
{
	int result;

	for_each_kernel_tracepoint(find_tracepoint, "mm_migrate_pages");
	if (!tracepoint) {
		pr_err("this kernel has no tracepoint mm_migrate_pages\n");
		return -ENOENT;
	}
	result = calls_start();
	if (result)
		return result;
	/* Ends before beginnings: a call of which only the end is seen is none of ours. */
	result = tracepoint_probe_register(tracepoint, migrate_pages_ends, NULL);
	if (result)
		goto no_calls;
	result = hook(&copy_ops, "folio_mc_copy");
	if (result)
		goto no_tracepoint;
	result = hook(&migrate_ops, "migrate_pages");
	if (!result)
		return 0;
	unregister_ftrace_function(&copy_ops);
	wait_event(idle, !atomic_read(&copying));
	synchronize_rcu_tasks();
no_tracepoint:
	stop_tracepoint();
no_calls:
	calls_stop();
	return result;
}

void hooks_stop(void)
{
	/* No call begins any more; those that have begun end in our functions. */
	unregister_ftrace_function(&migrate_ops);
	calls_stop();
	unregister_ftrace_function(&copy_ops);
	wait_event(idle, !atomic_read(&copying));
	stop_tracepoint();
	/* Whoever is between our last line and the kernel's next leaves. */
	synchronize_rcu_tasks();
}
