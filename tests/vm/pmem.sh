#!/usr/bin/env bash
# usage: pmem.sh SOURCES BUILD QEMU
# Tests VMs without an ivshmem device: their region is persistent memory, which the guest's kernel turns into a devdax
# device by the broker's label. The first VM has virtio-pmem with two doorbell channels: the test checks the guest, runs
# two programs at a time, which sleep and are woken, and uses pinned memory with O_DIRECT. The second VM has an NVDIMM
# backed by a memfd, without channels, so its programs use timed sleeps. Then a program in each VM survives a restart
# and a kill of ivgpud. The command lines are those of qemu-config/, with other paths, sizes and numbers of channels.
set -euo pipefail
sources=$(cd "$1" && pwd) build=$(cd "$2" && pwd) qemu=$3
# shellcheck source=tests/oracle.sh
source "$sources/tests/oracle.sh"
# shellcheck source=tests/vm/own_broker.sh
source "$sources/tests/vm/own_broker.sh"
# shellcheck source=tests/vm/pmem_guest.sh
source "$sources/tests/vm/pmem_guest.sh"

{
  printf '[broker]\nruntime_dir = "%s"\noutlive_s = 60\n[gpu]\nlibrary = "sim"\n' "$work"
  printf '[defaults]\nregion_size = "128MiB"\nslots = 2\ntransport = "pmem"\n'
  printf '[vm.virtio-pmem]\nplain_file = "%s"\ndoorbell_idle_poll_ms = 500\n[vm.nvdimm]\n' "$shm"
} >"$work/ivgpud.toml"
start_kept_broker

code=0
# shellcheck disable=SC2119  # it has no options here
make_guest <<JOB || code=$?
ivgpu-check --guest
IVGPU_LOG=info vector_add --n 1000 >/dev/null && echo "a program works"
felt direct /dev/ram0
felt figures
felt idle
felt hold >/tmp/held & holder=\$!
wait_for grep -q held /tmp/held
IVGPU_LOG=info vector_add --n 1000 2>/tmp/second >/dev/null && echo "a second one works beside it"
grep -o "vport.* is the doorbell channel" /tmp/second || grep -o "no doorbell channel" /tmp/second
kill -9 \$holder
vector_add --n 1000 >/dev/null && vector_add --n 1000 >/dev/null && echo "so do those after it"
$guest_goes_on
JOB
if [[ $code == 77 ]]; then echo "no modules of the bundle's kernel: skipped"; fi
[[ $code == 0 ]] || exit "$code"

# boot VM CHANNELS
boot() {
  local vm=$1 words k
  sed -e "s,/dev/shm/ivgpu-vm1,$(memory_of "$vm"),; s/size=1026M/size=130M/" "$sources/qemu-config/$vm.args" | grep -v ivgpu0 >"$work/$vm.args"
  for ((k = 0; k < $2; ++k)); do
    sed -n "s,/run/ivgpu/vm1.sock,$work/$vm.sock,; s/ivgpu0/ivgpu$k/; s/bell\.0/bell.$k/; /ivgpu$k/p" "$sources/qemu-config/$vm.args" >>"$work/$vm.args"
  done
  mapfile -t words < <(tr ' ' '\n' <"$work/$vm.args")
  boot_guest "$vm" 600 "${words[@]}"
}

boot virtio-pmem 2 & first=$!
boot nvdimm 0 & second=$!
restart_at_work virtio-pmem nvdimm
await_ends virtio-pmem nvdimm
wait "$first" || fail "virtio-pmem: QEMU failed"
wait "$second" || fail "nvdimm: QEMU failed"
both=('^ok +region +128 MiB in 2 slots, devdax$' '^ok +broker ' '^a program works$' '^O_DIRECT from and into pinned memory works$'
  '^a second one works beside it$' '^so do those after it$')
said virtio-pmem "${both[@]}" '^ok +doorbells +2 doorbell channels' '^vport.*p2 is the doorbell channel$'
said nvdimm "${both[@]}" '^warning +doorbells +no doorbell channel' '^no doorbell channel$'
went_on virtio-pmem nvdimm
for vm in virtio-pmem nvdimm; do ! grep '^warning  processor' "$work/$vm.out" || fail "$vm: its processor has no memory barriers"; done
if ((status)); then
  tail -n 50 "$work"/*.{qemu,console,out,err,control} "$work/log"
  exit 1
fi
are_woken virtio-pmem
(($(figure virtio-pmem 'calls in a row heard at once after idle') == 6)) || fail "virtio-pmem: the broker is not rung"
(($(figure nvdimm 'timed sleeps in 300 ms') > 0)) || fail "nvdimm: a wait does not nap"
kill "$broker"
wait "$broker" || fail "ivgpud ended with $?"
broker=''
said=$(workers_failed "$work/last")
[[ -z $said ]] || fail "$said"
[[ ! -e $shm ]] || fail "a memory file was left behind"
exit "$status"
