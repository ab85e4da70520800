#!/usr/bin/env bash
# usage: reclaim.sh SOURCES BUILD
# Tests that slots of killed programs become free. The VM has one slot. Without the kernel module the host does not
# learn of a program's death; the next program that wants a slot detects it. The test kills three holders: before the
# next program starts, while it waits, and under a parent that never reaps. Then an ordinary user runs programs with the
# module: a user without access must get a message, a killed program's slot must be free at once, waits must sleep until
# woken, and unbinding the device must fail sleeping and polling calls. The test prints the times with and without the
# module. In both cases, NVML must answer as on an H200.
set -euo pipefail
sources=$1 build=$2
code=0
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../data" && pwd)
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../patient.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/own"
cp "$build/tests/waking" "$build/tests/probe_nvml_answers" "$build/bin/ivgpu-check" "$work/own/"
"$sources/tools/guest-module" --image "${IVGPU_TEST_IMAGE:-$build/guest-image}" --output "$work/own" >/dev/null || code=$?
if [[ $code == 4 && ${IVGPU_BUNDLE:-} ]]; then echo "no headers of the bundle's kernel: without the module"; touch "$work/own/none"; code=0; fi
[[ $code == 0 ]] || exit 1

job() {
  declare -f wait_for
  cat <<'JOB'
# hold: starts a program that has the slot and work on the GPU; $! is its process.
hold() {
  rm -f /tmp/held
  waking /lib/ivgpu/libcuda.so.1 poll 2>/tmp/held &
  wait_for grep -q begun /tmp/held
}
# is_held NAME: checks that the next program reports that it waits for the slot; the program keeps waiting as $waiting.
is_held() {
  rm -f /tmp/full
  vector_add --n 1000 >/dev/null 2>/tmp/full & waiting=$!
  wait_for grep -q 'session slots of this VM are taken' /tmp/full && echo "$1: the slot is held"
}
gives_up() { kill -9 $waiting; wait $waiting; }
works() { vector_add --n 1000 >/dev/null && echo "$1: the next program works"; }
measure() { waking /lib/ivgpu/libcuda.so.1 "$@"; }
nvml="LD_LIBRARY_PATH=/lib/ivgpu probe_nvml_answers"
answers() { sed -nE "s/.*(nvml[A-Za-z0-9_]+) +([0-9]+) .*/NVML by $1: \\1 \\2/p"; }

hold; holder=$!
is_held "killed before"
gives_up
kill -9 $holder
works "killed before"

hold; holder=$!
is_held "killed meanwhile"
kill -9 $holder
wait $waiting && echo "killed meanwhile: the next program works"

rm -f /tmp/held
sh -c 'waking /lib/ivgpu/libcuda.so.1 poll 2>/tmp/held & echo $! >/tmp/pid; exec sleep 1000' &
wait_for grep -q begun /tmp/held
is_held "killed and forgotten"
gives_up
kill -9 "$(cat /tmp/pid)"
wait_for grep -q 'State:.*zombie' "/proc/$(cat /tmp/pid)/status" && echo "killed and forgotten: it is a zombie"
works "killed and forgotten"

measure figures | sed 's/^/by sysfs: /'
sh -c "$nvml" | answers sysfs
[ ! -e /programs/own/none ] || exit 0
echo 'user:x:1000:1000::/tmp:/bin/sh' >/etc/passwd
printf 'video:x:44:user\nuser:x:1000:\n' >/etc/group
chmod 1777 /tmp /dev/shm
as_user() { su user -c "$*"; }
insmod /programs/own/ivgpu.ko
# Does the same as 60-ivgpu-module.rules, since the guest has no udev.
chgrp video /dev/ivgpu0
chmod 600 /dev/ivgpu0
as_user vector_add --n 1000 2>&1 | grep -o 'cannot open /dev/ivgpu0.*; add the user to the group video'
chmod 660 /dev/ivgpu0
as_user vector_add --n 1000 >/dev/null && echo "with the module: an ordinary user's program works"
as_user ivgpu-check | grep '^[a-z]* *module'
as_user waking /lib/ivgpu/libcuda.so.1 death /dev/ivgpu0
works "with the module"
as_user waking /lib/ivgpu/libcuda.so.1 figures | sed 's/^/with the module: /'
as_user "$nvml" | answers module
as_user IVGPU_OFF=wakes waking /lib/ivgpu/libcuda.so.1 figures | sed 's/^/timed sleeps beside the module: /'
driver=/sys/bus/pci/drivers/ivgpu
device=$(basename $driver/0000:*)
for way in poll wait; do
  as_user waking /lib/ivgpu/libcuda.so.1 $way 2>/tmp/said & waiting=$!
  wait_for grep -q begun /tmp/said
  sleep 1  # long enough that the program most likely sleeps
  echo "$device" >$driver/unbind
  wait "$waiting"
  grep -o 'the session with the host is lost.*' /tmp/said
  echo "$device" >$driver/bind
  chgrp video /dev/ivgpu0 && chmod 660 /dev/ivgpu0
done
echo "$device" >$driver/unbind
works unbound
JOB
}
# With this file the simulated GPU reports utilisation, as an H200 does; its workers may not write it.
truncate -s 1M "$work/usage"
IVGPU_SIM_USAGE=$work/usage "$build/bin/ivgpu" vm --gpu sim --extra-config "$data/one_slot.toml" --program-dir "$work/own" --timeout 900 \
  >"$work/out" 2>"$work/err" < <(job) || code=$?

cat >"$work/wanted" <<'TEXT'
killed before: the slot is held
killed before: the next program works
killed meanwhile: the slot is held
killed meanwhile: the next program works
killed and forgotten: the slot is held
killed and forgotten: it is a zombie
killed and forgotten: the next program works
TEXT
[[ -e $work/own/none ]] || cat >>"$work/wanted" <<'TEXT'
cannot open /dev/ivgpu0: Permission denied (mode 0600, user 0, group video); add the user to the group video
with the module: an ordinary user's program works
ok       module       /dev/ivgpu0 of kernel module 0.1.0: processes are apart, and their waits are woken
with the module: the next program works
a copy that polls gives 46
a call that polls gives 46, the next one 46
the session with the host is lost: the ivshmem device was taken away
a forked child gets 3, of registered memory 42, of pinned memory -11
a call that waits gives 46, the next one 46
the session with the host is lost: the ivshmem device was taken away
unbound: the next program works
TEXT
status=0
# Values that a guest does not get are "not supported" (docs/design/044-nvml.md).
of_an_h200() { sed -E '/^--/d; s/^(nvmlDeviceGetSerial|nvmlDeviceGetBAR1MemoryInfo) 0$/\1 3/' "$sources/tests/contract/golden/nvml-580.159.04-h200.txt"; }
for way in sysfs module; do
  [[ $way == sysfs || ! -e $work/own/none ]] || continue
  diff -u --label "of an H200" --label "by $way" <(of_an_h200) <(sed -n "s/^NVML by $way: //p" "$work/out") || status=1
done
figures='^(by sysfs|with the module|timed sleeps beside the module): (round|after|call|timed sleeps|longest|woken|not woken)|^killed: the slot is free'
diff -u --label wanted --label guest "$work/wanted" <(grep -vE "$figures|^NVML by " "$work/out") || status=1
grep -E "$figures" "$work/out" || status=1
# Timed sleeps grow to 1 ms. With the module there are none, and the host ends each sleep.
figure() { sed -n "s/^$1 //p" "$work/out"; }
timed_sleeps() {
  (($(figure "$1: timed sleeps in 300 ms") > 0 && $(figure "$1: longest timed sleep") <= 1000)) || { echo "$1: a wait does not nap, or for long"; status=1; }
}
timed_sleeps 'by sysfs'
if [[ ! -e $work/own/none ]]; then
  timed_sleeps 'timed sleeps beside the module'
  [[ $(figure 'with the module: timed sleeps in 300 ms'):$(figure 'with the module: not woken') == 0:0 &&
    $(figure 'with the module: woken') -gt 0 ]] || { echo "with the module: a wait is not woken"; status=1; }
fi
[[ $code == 0 && $status == 0 ]] || { echo "ivgpu vm ended with $code"; cat "$work/err"; exit 1; }
