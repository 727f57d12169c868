/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dray_migrate

#if !defined(DRAY_MIGRATE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DRAY_MIGRATE_TRACE_H

#include <linux/tracepoint.h>

/* One copy: folios that were copied together. */
TRACE_EVENT(dray_copy,
	TP_PROTO(int reason, int mode, bool batch, unsigned int folios, unsigned long pages, int by,
		 unsigned int submissions, u64 ns),
	TP_ARGS(reason, mode, batch, folios, pages, by, submissions, ns),
	TP_STRUCT__entry(
		__field(int, reason)
		__field(int, mode)
		__field(bool, batch)
		__field(unsigned int, folios)
		__field(unsigned long, pages)
		__field(int, by)
		__field(unsigned int, submissions)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->reason = reason;
		__entry->mode = mode;
		__entry->batch = batch;
		__entry->folios = folios;
		__entry->pages = pages;
		__entry->by = by;
		__entry->submissions = submissions;
		__entry->ns = ns;
	),
	TP_printk("reason=%d mode=%d batch=%d folios=%u pages=%lu by=%s submissions=%u ns=%llu",
		  __entry->reason, __entry->mode, __entry->batch, __entry->folios, __entry->pages,
		  __print_symbolic(__entry->by, { 0, "core" }, { 1, "threads" }, { 2, "device" }),
		  __entry->submissions, __entry->ns)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
