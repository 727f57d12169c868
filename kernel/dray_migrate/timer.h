/* SPDX-License-Identifier: GPL-2.0 */
/* /proc/timer: what migrate_pages was called for, and how long copies took. */
#ifndef DRAY_MIGRATE_TIMER_H
#define DRAY_MIGRATE_TIMER_H

#include "copy.h"

void timer_call(int reason, int mode, unsigned long succeeded, unsigned long failed);
void timer_copy(enum copier by, unsigned long pages, u64 ns);
int timer_start(void);
void timer_stop(void);

#endif
