# The guest of VMs whose region is persistent memory; sourced, never run. The caller sets `sources`, `build`, `qemu` and
# `work`; own_broker.sh has `fail`, `processor` and `make_ports`.
# shellcheck shell=bash disable=SC2034,SC2154

# The modules and devices that the guest needs; brd provides a disk for O_DIRECT. A test of VMs with an ivshmem device
# clears both variables.
modules=(--way pmem --module brd) awaited=/dev/dax0.0

# make_guest [OPTION...]: makes $work/initrd, whose guest loads `modules`, waits for `awaited`, and runs standard input
# as commands; sets `kernel`. The options go to guest-image. 77: the bundle's kernel has no modules.
make_guest() {
  local image paths path code=0 names='' busybox=${IVGPU_BUNDLE:-$build/guest-image}/busybox
  paths=$("$build/share/ivgpu/guest-image" --output "$build/guest-image" --guest-lib "$build/guest" --programs "$build/programs" \
    --check "$build/bin/ivgpu-check" "${modules[@]}" "$@") || code=$?
  if [[ $code == 4 && ${IVGPU_BUNDLE:-} ]]; then return 77; fi
  [[ $code == 0 ]] || return 1
  mapfile -t image <<<"$paths"
  kernel=${image[1]}
  mkdir -p "$work/root/ivgpu/modules"
  for path in "${image[@]:2}"; do
    cp "$path" "$work/root/ivgpu/modules/"
    names+=" $(basename "$path" .ko)"
  done
  cp "$build/tests/waking" "$build/test-programs/faults/faults_program" "$work/root/ivgpu/"
  {
    echo "interactive=0 keep=0 command='. /ivgpu/commands' modules='$names' awaited='$awaited'"
    # shellcheck disable=SC2016
    echo 'export LD_LIBRARY_PATH=/lib/ivgpu PATH=/ivgpu:$PATH' "IVGPU_HOST_PATIENCE=$IVGPU_HOST_PATIENCE"
  } >"$work/root/ivgpu/job"
  {
    declare -f wait_for
    echo 'felt() { waking /lib/ivgpu/libcuda.so.1 "$@"; }'
    cat
  } >"$work/root/ivgpu/commands"
  cp "${image[0]}" "$work/initrd"
  truncate -s %4 "$work/initrd"
  (cd "$work/root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >>"$work/initrd"
}

# boot_guest VM SECONDS WORD...: boots QEMU with these additional options. The guest's output goes to $work/VM.out
# (make_ports).
boot_guest() {
  local vm=$1 seconds=$2 ports
  shift 2
  make_ports "$vm"
  timeout "$seconds" "$qemu" -machine q35 -nodefaults -no-reboot "${processor[@]}" -m 1G \
    -nic none -display none -vga none -kernel "$kernel" -initrd "$work/initrd" \
    -append "console=ttyS0 quiet loglevel=1 panic=-1 $("$build/tests/emulated_clock")" "$@" \
    "${ports[@]}" >"$work/$vm.qemu" 2>&1
}

figures='^(round|after|call|timed sleeps|longest|woken|not woken|killed)'
# said VM PATTERN...: expects each pattern in a line of the guest.
said() {
  local vm=$1 pattern
  shift
  for pattern in "$@"; do
    grep -qE "$pattern" "$work/$vm.out" || fail "$vm: the guest does not say: $pattern"
  done
  grep -q '^exit 0 ' "$work/$vm.control" || fail "$vm: the guest failed"
  sed -nE "s/($figures)/  $vm: \\1/p" "$work/$vm.out"
}
# are_woken VM: expects waits without timed sleeps, each of which the host ended.
are_woken() {
  [[ $(figure "$1" 'timed sleeps in 300 ms'):$(figure "$1" 'not woken') == 0:0 && $(figure "$1" woken) -gt 0 ]] || fail "$1: a wait is not woken"
}
figure() { sed -n "s/^$2 //p" "$work/$1.out"; }

# memory_of VM: the file that the VM's QEMU opens, from the broker's log.
memory_of() { sed -n "s/.* $1: .*whose memory is //p" "$work/log"; }
