#!/usr/bin/env bash
# usage: qemu_config.sh BUILD QEMU
# Boots a guest with each command line and -readconfig file of qemu-config/, with other paths and sizes. In each guest
# it unpacks the guest's tarball, checks the guest, and runs a program with the tarball's library. Two guests boot at a
# time: a device's command line and its file. If the memory is a memfd, a program survives a restart and a kill of
# ivgpud. One VM per device then loads the kernel module and repeats the checks. The test prints the wake-up times with
# and without the module.
set -euo pipefail
build=$1 qemu=$2
# shellcheck source=tests/oracle.sh
source "$(dirname "${BASH_SOURCE[0]}")/../oracle.sh"
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
files=$sources/qemu-config
# shellcheck source=tests/vm/own_broker.sh
source "$sources/tests/vm/own_broker.sh"

{
  printf '[broker]\nruntime_dir = "%s"\noutlive_s = 60\n[gpu]\nlibrary = "sim"\n' "$work"
  printf '[defaults]\nregion_size = "128MiB"\nslots = 1\n'
  printf '[vm.doorbell-args]\n[vm.doorbell-cfg]\n'
  for kind in args cfg; do
    printf '[vm.plain-memfd-%s]\ntransport = "plain"\n' "$kind"
    printf '[vm.plain-file-%s]\ntransport = "plain"\nplain_file = "%s-%s"\n' "$kind" "$shm" "$kind"
  done
} >"$work/ivgpud.toml"
start_kept_broker

mapfile -t image < <("$build/share/ivgpu/guest-image" --output "$build/guest-image" --guest-lib "$build/guest" \
  --programs "$build/programs")
busybox=${IVGPU_BUNDLE:-$build/guest-image}/busybox
mkdir -p "$work/root/ivgpu"
"$sources/tools/guest-tarball" --build "$build" --out "$work/root/ivgpu/guest.tar.gz"
cp "$build/tests/waking" "$build/test-programs/faults/faults_program" "$work/root/ivgpu/"
# A bundle's kernel may lack headers; vm.module is then skipped, too.
code=0
"$sources/tools/guest-module" --image "${IVGPU_TEST_IMAGE:-$build/guest-image}" --output "$work/root/ivgpu" >/dev/null || code=$?
if [[ $code == 4 && ${IVGPU_BUNDLE:-} ]]; then echo "no headers of the bundle's kernel: without the module"; code=0; fi
[[ $code == 0 ]] || exit 1
{
  echo 'interactive=0 keep=0'
  # shellcheck disable=SC2016
  echo 'export LD_LIBRARY_PATH=/usr/local/lib/ivgpu/guest:/lib/ivgpu PATH=/ivgpu:$PATH'
  echo "export IVGPU_HOST_PATIENCE=$IVGPU_HOST_PATIENCE goes_on='$guest_goes_on'"
  cat <<'JOB'
command='tar -C / -xzf /ivgpu/guest.tar.gz && /usr/local/bin/ivgpu-check && IVGPU_LOG=info vector_add --n 1000 || exit 1
if grep -q ivgpu.restarts=1 /proc/cmdline; then eval "$goes_on" || exit 1; fi
[ -e /ivgpu/ivgpu.ko ] && grep -q ivgpu.module=1 /proc/cmdline || exit 0
measure() { /ivgpu/waking /usr/local/lib/ivgpu/guest/libcuda.so.1 "$@"; }
felt() { measure figures | sed "s/^/$1: /"; }
felt "by sysfs"
insmod /ivgpu/ivgpu.ko || exit 1
/usr/local/bin/ivgpu-check | sed "s/^/with the module: /"
measure death /dev/ivgpu0 && vector_add --n 1000 && felt "with the module"'
JOB
} >"$work/root/ivgpu/job"
cp "${image[0]}" "$work/initrd"
truncate -s %4 "$work/initrd"
(cd "$work/root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >>"$work/initrd"

# Prints the file with this broker's paths and size.
adapted() {
  sed -e "s,/run/ivgpu/vm1\\.,$work/$2.," -e "s,/dev/shm/ivgpu-vm1,$shm-${2##*-}," \
    -e 's/size=1G/size=128M/; s/size = "1G"/size = "128M"/' "$files/$1"
}

# Only one VM per device loads the module, which halves the test's time.
with_module() { if [[ $1 == doorbell-args || $1 == plain-file-args ]]; then echo 1; else echo 0; fi; }

with_restarts() { if [[ $1 == plain-memfd-* ]]; then echo 1; else echo 0; fi; }

boot() {
  local form=$1 vm=$1-$2 words ports
  make_ports "$vm"
  if [[ $2 == args ]]; then
    adapted "$form.args" "$vm" >"$work/$vm.args"
    mapfile -t words < <(tr ' ' '\n' <"$work/$vm.args")
  else
    adapted "$form.cfg" "$vm" >"$work/$vm.cfg"
    words=(-readconfig "$work/$vm.cfg")
  fi
  timeout 900 "$qemu" -machine q35 -nodefaults -no-reboot "${processor[@]}" -m 1G -nic none -display none \
    -vga none -kernel "${image[1]}" -initrd "$work/initrd" \
    -append "console=ttyS0 quiet loglevel=1 panic=-1 $("$build/tests/emulated_clock") ivgpu.module=$(with_module "$vm") \
ivgpu.restarts=$(with_restarts "$vm")" "${words[@]}" \
    "${ports[@]}" >"$work/$vm.qemu" 2>&1
}

check() {
  local vm=$1-$2
  local device=ivshmem-${1%%-*}
  if grep -q '^exit 0 ' "$work/$vm.control" && grep -q 'mapped' "$work/$vm.err" &&
    grep -qE "^ok +region +128 MiB in 1 slots, $device\$" "$work/$vm.out" &&
    grep -q '/usr/local/lib/ivgpu/guest/libcuda.so.1 is the guest library' "$work/$vm.out" &&
    grep -q '/usr/local/lib/ivgpu/guest/libnvidia-ml.so.1 is the guest library' "$work/$vm.out"; then
    echo "$1.$2: $(grep '^exit' "$work/$vm.control" | cut -d ' ' -f 3) s in the guest"
    if [[ $(with_module "$vm") == 0 || ! -e $work/root/ivgpu/ivgpu.ko ]]; then return; fi
    check_module "$vm" "$device"
  else
    fail "$1.$2: no program ran with it"
    tail -n 5 "$work/$vm".{qemu,console,out,err,control}
  fi
}

# Checks what the module provides on this device, and what a device without a doorbell lacks.
check_module() {
  local pattern='ok +module +/dev/ivgpu0 of .*their waits are woken$'
  if [[ $2 == ivshmem-plain ]]; then pattern='warning +module +/dev/ivgpu0 of .*processes are apart, but waits use timed sleeps .*no interrupts and no doorbell'; fi
  grep -qE "^with the module: $pattern" "$work/$1.out" || fail "$1: ivgpu-check says something else of the module"
  grep -q '^killed: the slot is free' "$work/$1.out" || fail "$1: a killed program's slot did not come back"
  (($(grep -c 'timed sleeps in 300 ms' "$work/$1.out") == 2)) || fail "$1: no program ran with the module"
  grep -E '^by sysfs|^with the module: [^ow ]|^killed' "$work/$1.out" | sed "s/^/  $2 /"
  if ((status)); then tail -n 30 "$work/$1".{console,out,err}; fi
}

for form in doorbell plain-file plain-memfd; do
  boot "$form" args & first=$!
  boot "$form" cfg & second=$!
  if [[ $(with_restarts "$form-args") != 0 ]]; then
    restart_at_work "$form-args" "$form-cfg"
    await_ends "$form-args" "$form-cfg"
  fi
  wait "$first" || fail "$form.args: QEMU failed"
  wait "$second" || fail "$form.cfg: QEMU failed"
  check "$form" args
  check "$form" cfg
done
went_on plain-memfd-args plain-memfd-cfg
kill "$broker"
wait "$broker" || fail "ivgpud ended with $?"
broker=''
said=$(workers_failed "$work/last")
[[ -z $said ]] || fail "$said"
[[ ! -e $shm-args && ! -e $shm-cfg ]] || fail "a memory file was left behind"
exit "$status"
