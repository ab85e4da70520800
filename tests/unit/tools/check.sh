#!/usr/bin/env bash
# usage: check.sh IVGPU_CHECK VERSION
# Tests ivgpu-check on machines that are folders: a good host and a good guest, and each of them again with one fault.
set -uo pipefail
check=$1 version=$2
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../patient.sh"
layout=$(sed -n 's/^#define IVGPU_LAYOUT_VERSION \([0-9]*\)$/\1/p' "$(dirname "$0")/../../../ring/layout/layout_c.h")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
m=$work/machine

put() { mkdir -p "$m/$(dirname "$1")" && printf '%s\n' "$2" >"$m/$1"; }

# gpu ADDRESS UUID MINOR: adds a GPU, in the format of the kernel
gpu() { put "proc/driver/nvidia/gpus/$1/information" $'Model: \t a GPU\nGPU UUID: \t '"$2"$'\nBus Location: \t '"$1"$'\nDevice Minor: \t '"$3"; }

good_host() {
  rm -rf "$m"
  put proc/driver/nvidia/version 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build'
  put usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04 ''
  ln -s libcuda.so.580.159.04 "$m/usr/lib/x86_64-linux-gnu/libcuda.so.1"
  for file in dev/nvidiactl dev/nvidia0 dev/nvidia-uvm; do put $file ''; chmod 666 "$m/$file"; done
  gpu 0000:19:00.0 GPU-1a2b3c4d-0000-0000-0000-000000000001 0
  put sys/module/nvidia_uvm/parameters/uvm_disable_hmm Y
  put dev/kvm '' && chmod 666 "$m/dev/kvm"
  put proc/cpuinfo 'flags : fpu vmx sse'
  put proc/self/limits 'Max locked memory         8388608              8388608              bytes'
  put proc/self/status $'Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t1000'
  put sys/kernel/mm/transparent_hugepage/shmem_enabled 'always within_size [advise] never'
  put proc/meminfo 'HugePages_Free:        0'
  mkdir -p "$m/sys/devices/system/node/node0"
  put sys/kernel/security/lsm lockdown,capability,landlock,yama
  put proc/sys/kernel/seccomp/actions_avail 'kill errno allow'
  put proc/sys/user/max_user_namespaces 15000
  put proc/self/mountinfo '24 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw'
  put sys/fs/cgroup/cgroup.controllers 'cpuset cpu io memory pids'
}

device=sys/bus/pci/devices/0000:00:04.0
# region VERSION: makes a region of 32 MiB with magic, version, one slot, generation, and ivgpud's size.
region() {
  { printf '\x1a\x0aIVGPU1'; printf "\\x$1"; printf '\0\0\0\x01\0\0\0'; } >"$m/$device/resource2"
  truncate -s 32M "$m/$device/resource2"
  printf '\x00\x00\x00\x02' | dd of="$m/$device/resource2" bs=1 seek=24 conv=notrunc status=none
}
good_guest() {
  rm -rf "$m"
  put $device/vendor 0x1af4
  put $device/device 0x1110
  put $device/enable 1
  truncate -s 256 "$m/$device/resource0"
  region "$layout"
  chmod 660 "$m/$device"/resource[02]
  put proc/self/status $'Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0'
  put etc/ld.so.conf.d/ivgpu.conf /usr/local/lib/ivgpu/guest
  for library in libcuda.so.1 libnvidia-ml.so.1; do put "usr/local/lib/ivgpu/guest/$library" 'reads IVGPU_REGION'; done
}

# expect CODE PATTERN [WORDS...]: checks the exit code, and a line of the output.
expect() {
  local code=$1 pattern=$2 output got
  shift 2
  output=$("$check" --root "$m" "$@" 2>&1)
  got=$?
  if [[ $got != "$code" ]] || ! grep -qE -- "$pattern" <<<"$output"; then
    printf 'FAIL: exit code %s (wanted %s), wanted to read: %s\n%s\n' "$got" "$code" "$pattern" "$output"
    status=1
  fi
}

good_host
expect 0 '^ok +driver +NVIDIA.s kernel driver 580\.159\.04'
expect 0 '^ok +kvm '
expect 0 '^ok +landlock '
expect 0 '^warning +broker +no ivgpud answers at /run/ivgpu/ivgpud.status: No such file'
if "$check" --root "$m" | grep -v broker | grep -qE '^(warning|wrong)'; then echo "FAIL: a good host is blamed"; status=1; fi
expect 0 '^\{"format":1,"side":"host","findings":\[\{"about":"driver","state":"ok",' --json

rm "$m/proc/driver/nvidia/version"; expect 0 '^warning +driver .*not loaded'; good_host
sed -i s/580/570/ "$m/proc/driver/nvidia/version"; expect 1 '^wrong +driver .*570\.159\.04 is older'; good_host
ln -sf libcuda.so.575.1 "$m/usr/lib/x86_64-linux-gnu/libcuda.so.1"; touch "$m/usr/lib/x86_64-linux-gnu/libcuda.so.575.1"
expect 1 '^wrong +library .*of driver 575\.1, the kernel.s is 580'; good_host
rm "$m"/usr/lib/x86_64-linux-gnu/*; expect 1 '^wrong +library '; good_host
expect 0 '^ok +gpus +GPU 0 \(GPU-1a2b3c4d-0000-0000-0000-000000000001, 0000:19:00\.0\)'
gpu 0000:09:00.0 GPU-99999999-0000-0000-0000-000000000002 3; expect 1 '^wrong +devices +/dev/nvidia3 is missing'
put dev/nvidia3 ''; chmod 666 "$m/dev/nvidia3"; expect 0 '^ok +gpus +GPU 0 \(GPU-9.*, 0000:09:00\.0\), GPU 1 \(GPU-1'
expect 0 '^ok +devices +/dev/nvidiactl, /dev/nvidia-uvm, /dev/nvidia3, /dev/nvidia0 may be opened'; good_host
gpu 0000:19:00.0 'GPU-????????-????-????-????-????????????' 0
expect 0 '^warning +gpus +GPU 0 \(UUID not yet known, 0000:19:00\.0\): the key gpus cannot name'; good_host
rm -r "$m/proc/driver/nvidia/gpus"; expect 0 '^ok +gpus .* lists no GPU'; good_host
rm "$m/dev/nvidia-uvm"; expect 1 '^wrong +devices +/dev/nvidia-uvm is missing'; good_host
chmod 660 "$m/dev/nvidia0"; expect 1 '^wrong +devices .*may not open /dev/nvidia0'; good_host
put sys/module/nvidia_uvm/parameters/uvm_disable_hmm N; expect 0 '^warning +hmm .*may reach all memory of a worker'
put proc/driver/nvidia/version 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Thu'; expect 0 '^ok +hmm .*not the open ones'; good_host
put sys/module/nvidia_uvm/parameters/uvm_ats_mode 1; expect 0 '^ok +hmm .*with ATS they would'; good_host
rm "$m/sys/module/nvidia_uvm/parameters/uvm_disable_hmm"; expect 0 '^warning +hmm .*does not say'; good_host
sed -i s/580/590/ "$m/proc/driver/nvidia/version"; expect 1 '^warning +ioctls .*is 590\.159\.04'; good_host
put proc/cpuinfo 'flags : fpu'; expect 0 '^warning +kvm .*neither vmx nor svm'; good_host
rm "$m/dev/kvm"; expect 0 '^warning +kvm +/dev/kvm is missing'; good_host
chmod 600 "$m/dev/kvm"; chown 0:0 "$m/dev/kvm" 2>/dev/null; ((EUID != 0)) || expect 0 '^warning +kvm +this user may not'; good_host
# The user nobody, whom an access control list admits (the list has user, nobody, group, mask and others).
if ((EUID == 0)); then
  chmod 600 "$m/dev/kvm"; sed -i 's/\t1000/\t65534/g' "$m/proc/self/status"; chmod 755 "$work"; cp "$check" "$work/check"
  as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$work/check" --root "$m"; }
  as_nobody | grep -q '^warning  kvm ' || { echo "FAIL: nobody may not open what is root's"; status=1; }
  perl -e '($file, $name) = ($ARGV[0], "system.posix_acl_access");
    $list = pack("V" . "vvV" x 5, 2, 1, 6, 2**32 - 1, 2, 6, 65534, 4, 0, 2**32 - 1, 16, 6, 2**32 - 1, 32, 0, 2**32 - 1);
    syscall(188, $file, $name, $list, length $list, 0) == 0 or die "no access list: $!\n"' "$m/dev/kvm"
  as_nobody | grep -q '^ok       kvm ' || { echo "FAIL: an access list does not count"; status=1; }
  good_host
fi
put proc/self/limits 'Max locked memory         65536   65536  bytes'; expect 0 '^warning +memlock +only 65536'; good_host
put sys/kernel/mm/transparent_hugepage/shmem_enabled 'always [never] deny'; expect 0 '^warning +huge pages '; good_host
mkdir "$m/sys/devices/system/node/node1"; put sys/bus/pci/devices/0000:3b:00.0/vendor 0x10de
put sys/bus/pci/devices/0000:3b:00.0/class 0x030200; put sys/bus/pci/devices/0000:3b:00.0/numa_node 1
expect 0 '^warning +numa +2 memory nodes; GPU 0000:3b:00.0 on node 1'; good_host
put tmp/nvidia-mps/control ''; expect 0 '^warning +mps '; good_host
put run/ivgpu/mps/GPU-1a2b/pipe/control ''; expect 0 '^warning +mps +ivgpud runs MPS for GPU-1a2b: a fault of one VM.s'; good_host
put sys/kernel/security/lsm capability,yama; expect 0 '^warning +landlock '; good_host
rm "$m/proc/sys/kernel/seccomp/actions_avail"; expect 0 '^warning +seccomp '; good_host
put proc/sys/user/max_user_namespaces 0; expect 0 '^warning +namespaces '; good_host

put proc/self/mountinfo '30 1 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory'
expect 0 '^warning +groups .*version 2'; good_host
put sys/fs/cgroup/cgroup.controllers 'cpuset io memory pids'; expect 0 '^warning +groups .*version 2 with cpu:'; good_host
expect 0 '^ok +groups .*at /sys/fs/cgroup; .*Delegate=yes'

# answer LINE: adds a broker that answers with one line.
answer() {
  mkdir -p "$m/run/ivgpu"
  rm -f "$work/up"
  perl -MIO::Socket::UNIX -e 'alarm 600; $s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die; print "up\n";
    close STDOUT; $c = $s->accept; print $c $ARGV[1]' "$m/run/ivgpu/ivgpud.status" "$1" >"$work/up" &
  wait_for test -s "$work/up"
}
answer "{\"format\":1,\"version\":\"$version\"}"; expect 0 "^ok +broker +ivgpud $version answers"; wait; good_host
answer '{"format":1,"version":"9.9.9"}'; expect 0 "^warning +broker +ivgpud has release 9\.9\.9, this is $version"; wait; good_host
answer "{\"format\":1,\"version\":\"$version\",\"vms\":[{\"bounds\":{\"group_missing\":\"/a has other processes\"}}]}"
expect 0 '^warning +groups .*makes no control groups.*; /a has other processes'; wait; good_host
answer "{\"format\":1,\"version\":\"$version\",\"vms\":[{\"bounds\":{\"group_missing\":\""; expect 0 '^ok +groups '; wait; good_host
answer 'HTTP/1.0 400'; expect 1 '^wrong +broker .*is no ivgpud'; wait; good_host

good_guest
IVGPU_HOST_PATIENCE=1 expect 1 '^wrong +broker +ivgpud does not answer'
# From here on the broker answers, even while the test replaces the region.
perl -e 'alarm 3600; for (;; select undef, undef, undef, 0.02) {
  next unless open my $region, "+<", $ARGV[0]; next if -s $region < 4096;
  sysseek $region, 128, 0; syswrite $region, pack "Q", ++$beats }' "$m/$device/resource2" &
heart=$!
trap 'kill "$heart"; rm -rf "$work"' EXIT
expect 0 '^ok +broker +ivgpud answers'
expect 0 '^ok +region +32 MiB in 1 slots, ivshmem-doorbell'
expect 0 '^ok +cache +BAR2 is mapped write-back: [0-9.]+ ns for a cache line'
expect 0 '^ok +library +/usr/local/lib/ivgpu/guest/libcuda.so.1 is the guest library'
expect 0 '^ok +nvml +/usr/local/lib/ivgpu/guest/libnvidia-ml.so.1 is the guest library'
expect 0 '"side":"guest"' --json
printf '\x01' | dd of="$m/$device/resource2" bs=1 seek=112 conv=notrunc status=none; expect 0 '^ok +region .*ivshmem-plain'; good_guest
put proc/cpuinfo 'model name : QEMU TCG CPU version 2.5+'; put sys/devices/system/cpu/possible 0
expect 0 '^warning +processor +the only one, and emulated'
put sys/devices/system/cpu/possible 0-1
if "$check" --root "$m" --guest | grep -q processor; then echo "FAIL: an emulated processor that can have company is blamed"; status=1; fi
put proc/cpuinfo 'model name : Xeon'; put sys/devices/system/cpu/possible 0
if "$check" --root "$m" --guest | grep -q processor; then echo "FAIL: a real processor is blamed"; status=1; fi
good_guest
put $device/device 0x1000; expect 1 '^wrong +device ' --guest; good_guest
# The host's release, and the calls that its worker claims to know.
expect 0 '^warning +release +host unknown, here [0-9.]+: the host knows fewer calls'
say() { printf "$2" | dd of="$m/$device/resource2" bs=1 seek="$1" conv=notrunc status=none; }
worker_at_2_mib() {
  say 32 '\x00\x00\x20'; say 40 '\x00\x00\xa0\x01'  # first_slot and slot_bytes: at 2 MiB, and of 26
  say 2097152 '\x1a\x0aIVslot'; say 2097188 "$1"
}
say 320 '7.8.9'; worker_at_2_mib '\xff\x01\xff\x7f'; expect 0 '^ok +release +host 7.8.9, here [0-9.]+$'
worker_at_2_mib '\x02\x00\xff\x7f'; expect 0 '^ +-> install ivgpu [0-9.]+ on the host'
say 320 '\x1b[2J'; expect 0 '^warning +release +host \?\[2J9, here'
say 40 '\xff\xff\xff\xff\xff\xff\xff\xff'; expect 0 '^warning +release '; good_guest
rm "$m/$device/resource2"; expect 1 '^wrong +permission .*resource2 is missing'; good_guest
sed -i 's/\t0/\t1000/g' "$m/proc/self/status"
((EUID != 0)) || expect 1 '^wrong +permission +this user may not open /sys/bus/pci/devices/0000:00:04.0/resource0'
((EUID != 0)) || expect 1 '-> as root: adduser the user to the group video'
chmod 600 "$m/$device"/resource[02]
((EUID != 0)) || expect 1 '-> as root: cp /usr/local/share/.*60-ivgpu.rules /etc/udev/rules.d/'
put usr/share/ivgpu/guest/60-ivgpu.rules ''
((EUID != 0)) || expect 1 '-> as root: cp /usr/share/.*60-ivgpu.rules /etc/udev/rules.d/'
rm -r "$m/usr/share"
chmod 666 "$m/$device"/resource[02]; expect 0 '^ok +permission '
put $device/enable 0; expect 1 '^wrong +permission +the device is switched off'; good_guest
put sys/kernel/security/lockdown 'none [integrity] confidentiality'; expect 1 '^wrong +lockdown '; good_guest
truncate -s 0 "$m/$device/resource2"; expect 1 '^wrong +region +the device.s memory cannot be mapped'; good_guest
truncate -s 0 "$m/$device/resource2"; truncate -s 32M "$m/$device/resource2"; expect 1 '^wrong +region .*not made by ivgpud'; good_guest
region 1; expect 1 "^wrong +region +the host.s layout has version 1, this guest.s $layout"; good_guest
truncate -s 64M "$m/$device/resource2"; expect 1 '^wrong +region +ivgpud made 33554432 bytes, the device shows 67108864'; good_guest
rm "$m/usr/local/lib/ivgpu/guest/libcuda.so.1"; expect 1 '^wrong +library +no libcuda'; good_guest
put usr/local/lib/ivgpu/guest/libcuda.so.1 'of somebody else'; expect 1 '^wrong +library .*not the guest library'; good_guest
rm "$m/usr/local/lib/ivgpu/guest/libnvidia-ml.so.1"
expect 0 '^warning +nvml +no libnvidia-ml.so.1 is in the loader.s folders: programs that ask NVML'
expect 0 '^ +-> install the package ivgpu-guest'; expect 0 '^ok +library '
# NVIDIA's library alone, then ours after NVIDIA's, and ours before it.
put usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 'of NVIDIA'; expect 0 '^warning +nvml .*not the guest library: programs that ask NVML'
expect 0 "^ +-> remove NVIDIA's driver"; good_guest
put usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 'of NVIDIA'; expect 0 '^ok +nvml +/usr/local/'
put etc/ld.so.conf.d/first.conf /usr/lib/x86_64-linux-gnu; expect 0 '^warning +nvml +/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 is found first'
expect 0 '^ok +library '; good_guest

# The kernel module: a guest without the module, and guests whose node is unusable.
expect 0 '^warning +module +the kernel module is not there: the processes of this VM can read each other'
put dev/ivgpu0 ''; expect 1 '^wrong +module +/dev/ivgpu0 is of no kernel module of ivgpu.s, or of one that is older'
if "$check" --root "$m" | grep -qE ' (permission|lockdown) '; then echo "FAIL: sysfs is looked at beside a module"; status=1; fi
sed -i 's/\t0/\t1000/g' "$m/proc/self/status"; chmod 660 "$m/dev/ivgpu0"
((EUID != 0)) || expect 1 '^wrong +permission +this user may not open /dev/ivgpu0'
((EUID != 0)) || expect 1 '-> as root: adduser the user to the group video'
chmod 600 "$m/dev/ivgpu0"
((EUID != 0)) || expect 1 '-> as root: cp .*60-ivgpu-module.rules .*trigger -s ivgpu'
good_guest
ln -s ../../../bus/pci/drivers/ivgpu "$m/$device/driver"; expect 1 '^wrong +module .*here is no node /dev/ivgpuN'; good_guest

# Persistent memory instead of the device.
put $device/device 0x1000
dax=sys/bus/dax/devices/dax0.0
put $dax/size $((32 << 20)); put $dax/align 4096
mkdir -p "$m/dev"; ln -s "$m/$device/resource2" "$m/dev/dax0.0"
expect 0 '^ok +device +devdax device dax0.0' --guest
expect 0 '^warning +doorbells +no doorbell channel: waits use timed sleeps' --guest
expect 0 '^warning +module +/dev/dax0.0 is whole to each program' --guest
put sys/class/virtio-ports/vport1p1/name org.qemu.guest_agent.0; expect 0 '^warning +doorbells ' --guest
put sys/class/virtio-ports/vport1p2/name org.ivgpu.bell.0; expect 0 '^ok +doorbells +1 doorbell channels'
expect 0 '^ok +region +32 MiB in 1 slots'
expect 0 '^ok +broker +ivgpud answers'
expect 0 '^ok +nvml '
# A vsock port in the header, and a guest without vsock, which uses the other channels.
printf '\x15\xcd\x5b\x07' | dd of="$m/$device/resource2" bs=1 seek=368 conv=notrunc status=none
expect 0 '^warning +vsock +ivgpud listens at vsock port 123456789, and there is no vsock'
expect 0 '^ok +doorbells +1 doorbell channels'
expect 0 '^warning +module +/dev/dax0.0 is whole to each program: .*comes back when the next one starts'
printf '\0\0\0\0' | dd of="$m/$device/resource2" bs=1 seek=368 conv=notrunc status=none
put $dax/align 2097152; expect 1 '^wrong +region +/dev/dax0.0 maps pieces of 2097152 bytes only'; put $dax/align 4096
put $dax/size $((64 << 20)); expect 1 '^wrong +region +ivgpud made 33554432 bytes, the device shows 67108864'
put sys/bus/dax/devices/dax1.0/size $((32 << 20)); ln -s "$m/$device/resource2" "$m/dev/dax1.0"; expect 0 '^ok +device +devdax device dax1.0'
rm "$m"/dev/dax*; expect 1 '^wrong +permission +this user may not open /dev/dax0.0'
rm -r "$m/sys/bus/dax" "$m/sys/class/virtio-ports"; good_guest

# The command line.
m=$work/nowhere; expect 2 'there is no such folder'
m=$work
expect 2 'there is no option --fast' --fast
expect 2 'runtime-dir needs a folder' --runtime-dir
expect 0 'usage: ivgpu-check' --help
expect 0 "^ivgpu-check $version" --version
exit "$status"
