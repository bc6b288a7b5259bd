#!/bin/busybox sh
# The first program of a virtual machine: sets up what a host has, does its job, and powers off.
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin CI=true JOINPROBE_BIN=/usr/bin/joinprobe RUST_BACKTRACE=0 HOME=/tmp TMPDIR=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm
for memory in /tmp /run /dev/shm; do mount -t tmpfs none $memory; done
mount -t securityfs none /sys/kernel/security
mount -t tracefs none /sys/kernel/tracing
mount -t bpf none /sys/fs/bpf
mount -t cgroup2 none /sys/fs/cgroup
while read -r module; do insmod "/modules/$module"; done < /modules/order
ip link set lo up
hostname guest
ulimit -l unlimited
. /job
poweroff -f
