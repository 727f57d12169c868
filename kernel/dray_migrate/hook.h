/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DRAY_MIGRATE_HOOK_H
#define DRAY_MIGRATE_HOOK_H

int hooks_start(void);
/* Nobody is in a hook any more when it returns. */
void hooks_stop(void);

#endif
