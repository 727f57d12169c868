// SPDX-License-Identifier: GPL-2.0
/* Pages that the kernel migrates are copied by DSA. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "channel.h"
#include "copy.h"
#include "counters.h"
#include "hook.h"
#include "knobs.h"
#include "timer.h"

static int __init start(void)
{
	int result = layout_find();

	if (result)
		return result;
	result = copy_start();
	if (result)
		return result;
	result = channels_start();
	if (result)
		goto no_copy;
	result = timer_start();
	if (result)
		goto no_channels;
	result = hooks_start();
	if (result)
		goto no_timer;
	result = knobs_start();
	if (result)
		goto no_hooks;
	pr_info("page migration is hooked; nothing is copied by a device until use_dsa_copy_pages is 1\n");
	return 0;
no_hooks:
	hooks_stop();
no_timer:
	timer_stop();
no_channels:
	channels_stop();
no_copy:
	copy_stop();
	return result;
}

static void __exit stop(void)
{
	knobs_stop();
	hooks_stop();
	timer_stop();
	channels_stop();
	copy_stop();
	pr_info("unloaded: %lld bytes were copied by devices, %lld pages were lost\n",
		atomic64_read(&counters[COUNT_bytes_by_device]), atomic64_read(&counters[COUNT_pages_lost]));
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Pages that the kernel migrates are copied by Intel DSA");
MODULE_LICENSE("GPL");
