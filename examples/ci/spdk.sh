#!/bin/sh
# SPDK's accel_perf on a virtual DSA: spdk.sh PATH-OF-ACCEL_PERF. Green only if descriptors were submitted.
set -eu
perf=${1:?"spdk.sh PATH-OF-ACCEL_PERF: build/examples/accel_perf of a build of SPDK with --with-idxd"}
config=$(mktemp)
trap 'rm -f "$config"' EXIT
cat >"$config" <<'JSON'
{"subsystems": [{"subsystem": "accel", "config": [
  {"method": "dsa_scan_accel_module", "params": {"config_kernel_mode": true}}]}]}
JSON
for workload in copy fill crc32c compare dualcast; do
    dray run --for spdk --require work -- "$perf" --no-huge -s 512 -c "$config" -w "$workload" -t 1 -y
done
