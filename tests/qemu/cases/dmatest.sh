# Copies of the kernel itself: the dedicated queue with eight threads twice, and the shared queue.
cd /sys/bus/dsa/devices
configure
enable 0 1
dmatest dma0chan0 8 200
# The driver gives the channel's interrupt handle away when dmatest ends, and never asks for another: the queue is
# disabled and enabled in between.
accel-config disable-wq dsa0/wq0.0
configure_wq 0 0 32 dedicated kernel dmaengine dmaengine
enable 0 2>/dev/null || accel-config enable-wq dsa0/wq0.0
dmatest dma0chan0 8 200
dmatest dma0chan1 8 50
cat /sys/module/dray_instructions/parameters/carried_out
