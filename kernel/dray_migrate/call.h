/* SPDX-License-Identifier: GPL-2.0 */
/* Calls of migrate_pages under way: what they migrate, so that it can be copied as a batch. */
#ifndef DRAY_MIGRATE_CALL_H
#define DRAY_MIGRATE_CALL_H

#include <linux/migrate.h>

struct call;

int calls_start(void);
/* Waits for all calls to end; no new one may begin. */
void calls_stop(void);

/* migrate_pages begins in the current task; NULL if nothing is to be remembered of it. */
struct call *call_begin(new_folio_t *get, free_folio_t *put, unsigned long private, int mode, int reason);
/* What migrate_pages is to be called with instead. */
new_folio_t *call_get(struct call *call);
free_folio_t *call_put(struct call *call);
/* migrate_pages ends in the current task. */
void call_end(void);

/* folio_mc_copy of the current task: its result. */
int call_copy(struct folio *dst, struct folio *src);

#endif
