#!/bin/sh
# DPDK's test of its DMA drivers on a virtual DSA: dpdk.sh [DPDK-TEST]. Green only if descriptors were submitted.
set -eu
test=${1:-dpdk-test}
command -v "$test" >/dev/null || { echo "$test is not here: Debian's dpdk-dev has it" >&2; exit 2; }
said=$(echo dmadev_autotest | dray run --for dpdk --require work --stats -- "$test" --no-huge --no-pci -m 512 --file-prefix "dray$$" 2>&1) || {
    echo "$said"
    exit 1
}
echo "$said"
echo "$said" | grep -q "Test OK"
