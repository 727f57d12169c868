#!/usr/bin/env bash
# What redis-server does while 200 MB/s of its pages migrate in shared-read order, beside itself without dray: the
# ratio of both rates, median and quartiles, in pairs. Needs redis-server and redis-benchmark.
#
#   crates/tier/benches/redis.sh DRAY [PAIRS [REQUESTS [OPTION...]]]     options of dray tier, as --knob batch_pages=1024
set -euo pipefail
dray=${1:?"the dray command"} pairs=${2:-9} requests=${3:-200000}
shift $(($# < 3 ? $# : 3))
work=$(mktemp -d)
trap 'kill $servers 2>/dev/null || true; wait; rm -rf "$work"' EXIT
servers=

# serve PORT COMMAND...
serve() {
    local port=$1
    shift
    "$@" redis-server --port "$port" --save '' --dir "$work" --enable-debug-command yes >"$work/$port.out" 2>"$work/$port.err" &
    servers+=" $!"
    until redis-cli -p "$port" ping >"$work/ping" 2>&1; do
        kill -0 $! || exit 1
        sleep 0.1
    done
    redis-cli -p "$port" debug populate 400000 key 400 >"$work/ping"
}
rate() { # PORT
    redis-benchmark -p "$1" --csv -n "$requests" -r 400000 -c 20 -t get,set | awk -F'"' '/^"(GET|SET)"/ {sum += 1 / $4} END {print 2 / sum}'
}
moved() { "$dray" tier status --format json | sed -n 's/.*"\(demoted\|promoted\)_pages": \([0-9]*\).*/\2/p' | awk '{sum += $1} END {print sum}'; }

port=$((20000 + $$ % 20000))
serve $port
serve $((port + 1)) "$dray" tier --back-end uffd --fast 128M --order shared-read --policy rotate --knob promote_rate_limit_MBps=200 "$@" --
before=$(redis-cli -p $((port + 1)) debug digest)
for ((pair = 0; pair < pairs; pair++)); do
    plain=$(rate $port)
    begin=$(moved) start=$(date +%s.%N)
    tiered=$(rate $((port + 1)))
    megabytes=$(awk -v a="$begin" -v b="$(moved)" -v s="$start" -v e="$(date +%s.%N)" 'BEGIN {print (b - a) * 0.004096 / (e - s)}')
    echo "$plain $tiered $megabytes" | awk '{printf "pair: %.0f and %.0f requests a second, ratio %.3f, %.0f MB/s migrated\n", $1, $2, $2 / $1, $3}' | tee -a "$work/pairs"
done
sed 's/.*ratio \([0-9.]*\),.*/\1/' "$work/pairs" | sort -n | awk '{at[NR] = $1}
    END {printf "ratio: median %.3f, quartiles %.3f to %.3f, %d pairs\n", at[int((NR + 1) / 2)], at[int((NR + 3) / 4)], at[int((3 * NR + 1) / 4)], NR}'
redis-cli -p $((port + 1)) bgsave
while redis-cli -p $((port + 1)) info persistence | grep -q 'rdb_bgsave_in_progress:1'; do sleep 0.2; done
redis-cli -p $((port + 1)) info persistence | grep rdb_last_bgsave_status
# What the benchmark has written is in both; a reload reads all of it.
after=$(redis-cli -p $((port + 1)) debug digest)
redis-cli -p $((port + 1)) debug reload >"$work/ping"
[ "$after" = "$(redis-cli -p $((port + 1)) debug digest)" ] && echo "digest equal after BGSAVE and reload: $after (at the beginning $before)"
