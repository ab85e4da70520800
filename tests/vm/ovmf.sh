#!/usr/bin/env bash
# usage: ovmf.sh BUILD QEMU [SIZE...]
# A developer runs this script. It boots VMs with Debian's OVMF instead of SeaBIOS and an ivshmem-doorbell device of
# each SIZE (128M and 1G), first without the kernel module, then with it. It prints BAR2's caching (MTRRs, and a
# program's mapping type), the output of ivgpu-check, and the duration of calls. apt fetches the firmware, or IVGPU_OVMF
# names it; `IVGPU_OVMF=none` uses SeaBIOS. Without KVM, each size takes a minute.
set -euo pipefail
build=$(cd "$1" && pwd) qemu=$2
shift 2
sizes=("$@")
((${#sizes[@]})) || sizes=(128M 1G)
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/vm/own_broker.sh
source "$sources/tests/vm/own_broker.sh"
# shellcheck source=tests/vm/pmem_guest.sh
source "$sources/tests/vm/pmem_guest.sh"

firmware=()
case ${IVGPU_OVMF:-} in
  none) ;;
  '')
    (cd "$work" && apt-get download -q ovmf && dpkg-deb -x ovmf_*.deb ovmf) >"$work/apt" 2>&1 ||
      { cat "$work/apt"; echo "ovmf.sh: Debian's OVMF could not be fetched"; exit 3; }
    firmware=(-bios "$work/ovmf/usr/share/ovmf/OVMF.fd")
    ;;
  *) firmware=(-bios "$IVGPU_OVMF") ;;
esac

mkdir -p "$work/root/ivgpu/modules"
"$sources/tools/guest-module" --image "${IVGPU_TEST_IMAGE:-$build/guest-image}" --output "$work/root/ivgpu/modules" >/dev/null ||
  { echo "ovmf.sh: the module could not be made"; exit 3; }
# shellcheck disable=SC2034
modules=() awaited=''
# shellcheck disable=SC2119
make_guest <<'JOB' || { echo "ovmf.sh: the guest could not be made"; exit 3; }
[ -d /sys/firmware/efi ] && echo "firmware: UEFI" || echo "firmware: BIOS"
for device in /sys/bus/pci/devices/*; do
  [ "$(cat $device/vendor)$(cat $device/device)" = 0x1af40x1110 ] && bar=$(sed -n '3s/ .*//p' $device/resource)
done
echo "BAR2 at $bar"
sed 's/^/mtrr: /' /proc/mtrr
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
types() { grep -i "${bar#0x0*}" /sys/kernel/debug/x86/pat_memtype_list | sed "s/^/$1: /"; }
look() {
  ivgpu-check --guest 2>&1 | sed "s/^/$1: /"
  rm -f /tmp/held
  felt hold >/tmp/held & holder=$!
  wait_for grep -q held /tmp/held
  types "$1"
  kill -9 $holder
  vector_add --n 1000 | sed "s/^/$1: /"
  felt figures | sed "s/^/$1: /"
}
look sysfs
insmod /ivgpu/modules/ivgpu.ko && dmesg | grep ivgpu0 | sed 's/^/kernel: /'
look module
JOB

{
  printf '[broker]\nruntime_dir = "%s"\n[gpu]\nlibrary = "sim"\n[defaults]\nslots = 2\n' "$work"
  for size in "${sizes[@]}"; do printf '[vm.ovmf-%s]\nregion_size = "%siB"\n' "$size" "$size"; done
} >"$work/ivgpud.toml"
start_broker
for size in "${sizes[@]}"; do
  vm=ovmf-$size
  mapfile -t words < <(sed "s,/run/ivgpu/vm1\\.,$work/$vm.," "$sources/qemu-config/doorbell.args" | tr ' ' '\n')
  boot_guest "$vm" 600 "${firmware[@]}" "${words[@]}" || fail "$vm: QEMU failed"
  echo "region of $size:"
  sed 's/\x1b\[[0-9;=]*[A-Za-z]//g; s/^/  /' "$work/$vm.out"
  for way in sysfs module; do
    (($(grep -c "^$way: vector_add: .* checksum" "$work/$vm.out") == 2)) || fail "$vm: no program ran by the way of $way"
  done
  grep -qE '^module: ok +module ' "$work/$vm.out" || fail "$vm: ivgpu-check does not find the module"
  ((status == 0)) || tail -n 20 "$work/$vm".{qemu,console,err,control}
done
kill "$broker"
wait "$broker" || fail "ivgpud ended with $?"
broker=''
exit "$status"
