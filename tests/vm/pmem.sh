#!/usr/bin/env bash
# usage: pmem.sh SOURCES BUILD QEMU
# VMs without an ivshmem device: the region is persistent memory, which the guest's kernel makes a devdax device of by
# what the broker has written before it. In one, virtio-pmem and two bell channels: the guest is checked, programs run,
# sleep and are woken, two at a time; pinned memory takes part in O_DIRECT. In the other, an NVDIMM that is a memfd, and no
# channel: programs run, and nap. Command lines are qemu-config/'s, only the paths, the size and the number of channels changed.
set -euo pipefail
sources=$(cd "$1" && pwd) build=$(cd "$2" && pwd) qemu=$3
# shellcheck source=tests/oracle.sh
source "$sources/tests/oracle.sh"
# shellcheck source=tests/vm/own_broker.sh
source "$sources/tests/vm/own_broker.sh"

{
  printf '[broker]\nruntime_dir = "%s"\n[gpu]\nlibrary = "sim"\n' "$work"
  printf '[defaults]\nregion_size = "128MiB"\nslots = 2\ntransport = "pmem"\n'
  printf '[vm.virtio-pmem]\nplain_file = "%s"\n[vm.nvdimm]\n' "$shm"
} >"$work/ivgpud.toml"
start_broker

mapfile -t image < <("$build/share/ivgpu/guest-image" --output "$build/guest-image" --guest-lib "$build/guest" \
  --programs "$build/programs")
images=${IVGPU_TEST_IMAGE:-$build/guest-image} busybox=${IVGPU_BUNDLE:-$build/guest-image}/busybox
# In the order in which they need each other; brd is a disk for O_DIRECT.
modules=(drivers/virtio/virtio_ring drivers/virtio/virtio drivers/virtio/virtio_pci_modern_dev drivers/virtio/virtio_pci_legacy_dev
  drivers/virtio/virtio_pci drivers/char/virtio_console drivers/nvdimm/libnvdimm drivers/acpi/nfit/nfit drivers/nvdimm/nd_virtio
  drivers/nvdimm/virtio_pmem drivers/nvdimm/nd_btt drivers/nvdimm/nd_pmem drivers/dax/device_dax drivers/dax/dax_pmem
  drivers/block/brd)
also=()
for module in "${modules[@]}"; do also+=(--also "kernel/$module.ko"); done
mkdir -p "$work/root/ivgpu/modules"
code=0
"$sources/tools/guest-module" --image "$images" --output "$work/root/ivgpu/modules" "${also[@]}" >/dev/null || code=$?
if [[ $code == 4 && ${IVGPU_BUNDLE:-} ]]; then echo "no modules of the bundle's kernel: skipped"; exit 77; fi
[[ $code == 0 ]] || exit 1
cp "$build/tests/waking" "$build/bin/ivgpu-check" "$work/root/ivgpu/"
{
  echo 'interactive=0 keep=0 command=". /ivgpu/commands"'
  # shellcheck disable=SC2016
  echo 'export LD_LIBRARY_PATH=/lib/ivgpu PATH=/ivgpu:$PATH'
} >"$work/root/ivgpu/job"
{
  for module in "${modules[@]}"; do echo "insmod /ivgpu/modules/${module##*/}.ko || exit 1"; done
  cat <<'JOB'
felt() { waking /lib/ivgpu/libcuda.so.1 "$@"; }
ivgpu-check --guest
IVGPU_LOG=info vector_add --n 1000 >/dev/null && echo "a program works"
felt direct /dev/ram0
felt figures
felt idle
felt hold >/dev/null & holder=$!
sleep 2
IVGPU_LOG=info vector_add --n 1000 2>/tmp/second >/dev/null && echo "a second one works beside it"
grep -o "vport.* is the bell channel" /tmp/second || grep -o "no bell channel" /tmp/second
kill -9 $holder
vector_add --n 1000 >/dev/null && vector_add --n 1000 >/dev/null && echo "so do those after it"
JOB
} >"$work/root/ivgpu/commands"
cp "${image[0]}" "$work/initrd"
truncate -s %4 "$work/initrd"
(cd "$work/root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >>"$work/initrd"

# boot VM CHANNELS
boot() {
  local vm=$1 words k memory
  memory=$(sed -n "s/.* $vm: .*whose memory is //p" "$work/log")
  sed -e "s,/dev/shm/ivgpu-vm1,$memory,; s/size=1026M/size=130M/" "$sources/qemu-config/$vm.args" | grep -v ivgpu0 >"$work/$vm.args"
  for ((k = 0; k < $2; ++k)); do
    sed -n "s,/run/ivgpu/vm1.sock,$work/$vm.sock,; s/ivgpu0/ivgpu$k/; s/bell\.0/bell.$k/; /ivgpu$k/p" "$sources/qemu-config/$vm.args" >>"$work/$vm.args"
  done
  mapfile -t words < <(tr ' ' '\n' <"$work/$vm.args")
  timeout 200 "$qemu" -machine q35 -nodefaults -no-reboot -accel tcg,thread=multi -cpu max -m 1G -nic none \
    -display none -vga none -kernel "${image[1]}" -initrd "$work/initrd" \
    -append 'console=ttyS0 quiet loglevel=1 panic=-1 tsc=reliable' "${words[@]}" \
    -serial "file:$work/$vm.console" -serial "file:$work/$vm.out" -serial "file:$work/$vm.err" \
    -serial "file:$work/$vm.control" >"$work/$vm.qemu" 2>&1
}

figures='^(round|after|call|sleeps)'
# said VM PATTERN...: each is a line of the guest.
said() {
  local vm=$1 pattern
  shift
  for pattern in "$@"; do
    grep -qE "$pattern" "$work/$vm.out" || fail "$vm: the guest does not say: $pattern"
  done
  grep -q '^exit 0 ' "$work/$vm.control" || fail "$vm: the guest failed"
  sed -nE "s/($figures)/  $vm: \\1/p" "$work/$vm.out"
}
figure() { sed -n "s/^$2 //p" "$work/$1.out"; }

boot virtio-pmem 2 & first=$!
boot nvdimm 0 & second=$!
wait "$first" || fail "virtio-pmem: QEMU failed"
wait "$second" || fail "nvdimm: QEMU failed"
both=('^ok +region +128 MiB in 2 slots, devdax$' '^ok +broker ' '^a program works$' '^O_DIRECT from and into pinned memory works$'
  '^a second one works beside it$' '^so do those after it$')
said virtio-pmem "${both[@]}" '^ok +bells +2 bell channels' '^vport.*p2 is the bell channel$'
said nvdimm "${both[@]}" '^warning +bells +no bell channel' '^no bell channel$'
if ((status)); then
  tail -n 50 "$work"/*.{qemu,console,out,err,control} "$work/log"
  exit 1
fi
(($(figure virtio-pmem 'sleeps in 300 ms') <= 30)) || fail "virtio-pmem: a wait naps"
(($(figure virtio-pmem 'call after 1.2 s idle') <= 15000)) || fail "virtio-pmem: the broker is not rung"
kill "$broker"
wait "$broker" || fail "ivgpud ended with $?"
broker=''
said=$(workers_failed "$work/last")
[[ -z $said ]] || fail "$said"
[[ ! -e $shm ]] || fail "a memory file was left behind"
exit "$status"
