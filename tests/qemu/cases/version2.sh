# vm: --version 2 --append log_buf_len=8M
# A version 2 part: event log, interrupt handles that the driver asks for, WQ operation configuration.
cd /sys/bus/dsa/devices
expect dsa0/version 0x200
configure
enable 0 1 2 3
dmatest dma0chan0 8 50
dmatest dma0chan1 8 50
copied '20 descriptors 1310720 bytes 0 faults' /dev/dsa/wq0.2 movdir64b 20 65536
copied '68 descriptors 262144 bytes 64 faults' /dev/dsa/wq0.3 enqcmd 4 65536 fresh
expect dsa0/state enabled
accel-config disable-device dsa0
expect dsa0/state disabled
