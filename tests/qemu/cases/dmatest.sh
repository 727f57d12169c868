# vm: --append log_buf_len=8M
# Copies of the kernel itself: the dedicated queue with eight threads twice, and the shared queue.
cd /sys/bus/dsa/devices
configure
enable 0 1
dmatest dma0chan0 8 200
# The driver gives the channel's interrupt handle away when dmatest ends, and never asks for another: the queue is
# disabled and enabled in between.
again 0 --mode=dedicated --type=kernel --name=dmaengine --driver-name=dmaengine
dmatest dma0chan0 8 200
dmatest dma0chan1 8 50
cat /sys/module/dray_instructions/parameters/carried_out
