#!/usr/bin/env bash
# usage: vsock.sh SOURCES BUILD QEMU FOLDER [PART...]
# By hand: vsock for the doorbells, with a kernel's own, since the kernel of a machine that builds this may have none. A VM in QEMU
# whose kernel, Debian's, has vhost-vsock is the host: it sees this machine's files, read-only. QEMU emulates SVM, too, so that host
# has KVM, and a VM in it is as quick as itself. FOLDER keeps the kernel, and what the parts said. Needs root and kmod; some minutes
# for each part.
#   loopback  a program of the host itself, by vsock_loopback: it is taken, named, woken, killed, over a restart and a kill of ivgpud; another VM's port refuses it
#   nested    a VM with vhost-vsock-pci, virtio-pmem and no port of virtio-serial: it is checked, programs run, sleep, are woken,
#             two at a time, and killed; ivgpud is restarted and killed while a program is at work beside another, whose end the
#             next ivgpud notices
#   libvirt   the domain of qemu-config/nvdimm-vsock.xml, but for disk and network, in a libvirtd of its own: a program runs in it
#   vm        `ivgpu vm --transport pmem --vsock` there, beside a program that has the first CID and one that listens at the second port
# Exit codes: 0 all parts went well, 1 one has not, 2 usage, 3 something is missing.
# shellcheck disable=SC2317  # the parts are called by their names
set -euo pipefail
inside=''
[[ ${1:-} != --inside ]] || { inside=1; shift; }
(($# >= 4)) || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
sources=$(cd "$1" && pwd) build=$(cd "$2" && pwd) qemu=$3
mkdir -p "$4"
folder=$(cd "$4" && pwd)
shift 4
parts=("$@")
((${#parts[@]})) || parts=(loopback nested libvirt vm)
for part in "${parts[@]}"; do [[ $part =~ ^(loopback|nested|libvirt|vm)$ ]] || { echo "vsock.sh: there is no part $part"; exit 2; }; done
# Raises the time limit, since everything takes long here.
# shellcheck disable=SC2034
patience_s=600 accelerator=kvm
# shellcheck source=tests/vm/own_broker.sh
source "$sources/tests/vm/own_broker.sh"
# shellcheck source=tests/vm/pmem_guest.sh
source "$sources/tests/vm/pmem_guest.sh"

# ---- on this machine ------------------------------------------------------------------------------------------------------------

die() { echo "vsock.sh: $1"; exit 3; }

# Fetches Debian's general kernel, whose modules include 9p. The host reads this machine's files through 9p.
fetch_kernel() {
  local package
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
  [[ $package ]] || die "apt knows no linux-image-amd64; 'apt-get update' may help"
  (cd "$work" && apt-get download -q "$package" && dpkg-deb -x "$package"_*.deb "$folder/kernel") >"$work/apt" 2>&1 ||
    { cat "$work/apt"; die "Debian's kernel could not be fetched"; }
}

make_host() {
  local release module
  [[ -d $folder/kernel ]] || fetch_kernel
  release=$(ls "$folder/kernel/lib/modules")
  depmod -b "$folder/kernel" "$release"
  mkdir -p "$work/host"/{bin,modules,proc,sys,dev,root}
  cp "${IVGPU_BUNDLE:-$build/guest-image}/busybox" "$work/host/bin/"
  for module in virtio_pci 9pnet_virtio 9p vhost_vsock vsock_loopback kvm_amd; do
    modprobe -d "$folder/kernel" -S "$release" --show-depends "$module" || die "Debian's kernel $release has no module $module"
  done | awk '!seen[$0]++ { print $2 }' >"$work/modules"
  while read -r module; do
    cp "$module" "$work/host/modules/"
    basename "$module"
  done <"$work/modules" >"$work/host/modules/order"
  cat >"$work/host/init" <<INIT
#!/bin/busybox sh
b=/bin/busybox
\$b mount -t proc proc /proc; \$b mount -t sysfs sys /sys; \$b mount -t devtmpfs dev /dev
while read -r module; do \$b insmod /modules/\$module; done </modules/order
\$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro files /root
for kind in proc sys dev; do \$b mount --move /\$kind /root/\$kind; done
cd /root
\$b ln -s /proc/self/fd dev/fd
\$b mount -t tmpfs run run; \$b mkdir -p dev/shm; \$b mount -t tmpfs shm dev/shm
TMPDIR=/run \$b chroot /root /bin/bash $sources/tests/vm/vsock.sh --inside $sources $build $qemu $folder ${parts[*]} >/root/dev/ttyS1 2>&1
echo "exit \$?" >/root/dev/ttyS1
\$b poweroff -f
INIT
  chmod +x "$work/host/init"
  (cd "$work/host" && find . | ./bin/busybox cpio -o -H newc 2>/dev/null) >"$work/host.cpio"
}

# Makes the nested guest on this machine, where the compiler is fast.
make_nested() {
  make_guest --way vsock <<JOB || die "the nested guest could not be made"
ivgpu-check --guest
if IVGPU_LOG=info vector_add --n 1000 2>/tmp/first; then echo "a program works"; else cat /tmp/first; fi
grep -o "vsock port .* is the doorbell channel" /tmp/first
grep -q ivgpu.short /proc/cmdline && exit
felt figures
felt idle
waking /lib/ivgpu/libcuda.so.1 hold >/tmp/held & holder=\$!
wait_for grep -q held /tmp/held
vector_add --n 1000 >/dev/null && echo "a second one works beside it"
$guest_goes_on
kill -9 \$holder
echo "the holder is killed"
read -r word </dev/ttyS1  # no other program starts until the host has noticed the end
felt death /dev/dax0.0
JOB
  cp "$work/initrd" "$folder/initrd"
  cp "$kernel" "$folder/vmlinuz"
}

# The folders are read-only in the host, so the image is made here, from a bundle with the same paths.
make_vm() {
  mkdir -p "$folder/bundle"
  cp "$build"/guest-image/{vmlinuz,busybox} "$folder/bundle/"
  ln -sf "$(command -v "$qemu")" "$folder/bundle/qemu"
  IVGPU_BUNDLE=$folder/bundle "$build/share/ivgpu/guest-image" --output "$folder/image/ivgpu" --guest-lib "$build/guest" \
    --programs "$build/programs" --check "$build/bin/ivgpu-check" --way pmem --way vsock >/dev/null || die "the command's guest could not be made"
}

on_this_machine() {
  make_host
  [[ ! " ${parts[*]} " =~ " "(nested|libvirt)" " ]] || make_nested
  [[ " ${parts[*]} " != *" vm "* ]] || make_vm
  timeout 7200 "$qemu" -machine q35 -nodefaults -no-reboot -accel tcg,thread=multi -cpu max -smp 2 -m 4G -nic none -display none \
    -vga none -kernel "$folder"/kernel/boot/vmlinuz-* -initrd "$work/host.cpio" \
    -append "console=ttyS0 quiet loglevel=1 panic=-1 $("$build/tests/emulated_clock")" \
    -fsdev local,id=files,path=/,security_model=none,readonly=on,multidevs=remap -device virtio-9p-pci,fsdev=files,mount_tag=files \
    -serial "file:$folder/console" -serial "file:$folder/said" || { tail "$folder/console"; fail "QEMU ended with $?"; }
  tr -d '\r' <"$folder/said" | grep -v '^exit 0$' || true
  grep -q '^exit 0' "$folder/said" || fail "see $folder/said and $folder/console"
}

# ---- in the host ----------------------------------------------------------------------------------------------------------------

# log_has COUNT PATTERN: true if the broker's log has at least COUNT matching lines.
log_has() { (($(grep -cE "$2" "$work/log") >= $1)); }

loopback() {
  local second program
  echo "loopback on $(uname -r):"
  {
    printf '[broker]\nruntime_dir = "%s"\nlog_level = "debug"\noutlive_s = 60\n[gpu]\nlibrary = "sim"\n' "$work"
    printf '[defaults]\nregion_size = "64MiB"\nslots = 2\ntransport = "pmem"\nspare = 2\nspin_threads = 0\n'
    printf '[vm.own]\nplain_file = "%s"\nvsock_cid = 1\nvsock_port = 5000\n' "$shm"
    printf '[vm.other]\nvsock_cid = 3\nvsock_port = 5001\n'
  } >"$work/ivgpud.toml"
  start_kept_broker
  "$build/tests/vsock_program" "$shm" 12 & program=$!
  # Both the program and its child have named their slots; the program names its own slot again.
  wait_for log_has 2 'own: session .* starts' || fail "the program and its child have not begun"
  sleep 1
  restart_broker USR1
  sleep 1
  restart_broker USR2
  wait "$program" || fail "the program"
  grep -q 'own: [12] session(s) and [12] connection(s) of before the restart go on' "$work/log" || fail "no connection was taken over"
  wait_for log_has 1 'own: session .* ends after' || fail "the killed program's session has not ended"
  "$build/tests/vsock_program" --refused 5001 || fail "the other VM's port"
  grep -q 'other: a connection by vsock is refused: it comes from CID 1, and the VM.s vsock_cid is 3' "$work/log" ||
    fail "the log does not say who is refused"
  "$build/tests/vsock_program" --absent 5002 || fail "a port where nobody listens"
  sed "s,runtime_dir = .*,runtime_dir = \"$work/second\",; /plain_file/d" "$work/ivgpud.toml" >"$work/second.toml"
  "$build/bin/ivgpud" --config "$work/second.toml" 2>"$work/second.log" >/dev/null & second=$!
  wait_for grep -q 'vsock_port = 500[01]: another program listens at this port' "$work/second.log" ||
    fail "the second ivgpud says: $(cat "$work/second.log")"
  kill -INT "$second" 2>/dev/null || true
  wait "$second" || true
  end_broker
}

nested() {
  local words guest
  echo "nested on $(uname -r):"
  {
    printf '[broker]\nruntime_dir = "%s"\nlog_level = "debug"\noutlive_s = 60\n[gpu]\nlibrary = "sim"\n' "$work"
    printf '[vm.virtio-pmem]\nregion_size = "128MiB"\nslots = 2\ntransport = "pmem"\n'
    printf 'vsock_cid = 3\nvsock_port = 5000\n'
  } >"$work/ivgpud.toml"
  start_kept_broker
  mapfile -t words < <(sed -e "s,/dev/shm/ivgpu-vm1,$(memory_of virtio-pmem),; s/size=1026M/size=130M/" "$sources/qemu-config/virtio-pmem.args" |
    grep -v 'ivgpu0\|virtio-serial' | tr ' ' '\n')
  kernel=$folder/vmlinuz
  cp "$folder/initrd" "$work/initrd"
  boot_guest virtio-pmem 900 "${words[@]}" -device vhost-vsock-pci,guest-cid=3 & guest=$!
  restart_at_work virtio-pmem
  await_ends virtio-pmem
  wait_for_line "$work/virtio-pmem.out" '^the holder is killed'
  # These are the sessions of `figures`, of `idle` and of the holder.
  wait_for log_has 3 'waking.* ends after' || fail "the killed holder's session has not ended"
  tell virtio-pmem on
  wait "$guest" || fail "QEMU failed"
  said virtio-pmem '^ok +region +128 MiB in 2 slots, devdax$' '^ok +broker ' '^ok +vsock +port 5000 of the host' '^a program works$' \
    '^vsock port 5000 of the host is the doorbell channel$' '^a second one works beside it$' '^killed: the slot is free after'
  went_on virtio-pmem
  are_woken virtio-pmem
  ((status == 0)) || tail -n 50 "$work"/virtio-pmem.{qemu,console,out,err,control}
  end_broker
}

has_no_vm() { ! virsh_ list --name | grep -q vm1; }
virsh_() { timeout 300 "${as_nobody[@]}" virsh -q -c qemu:///session "$@"; }
# Runs libvirtd as an unprivileged user. /dev/kvm and /dev/vhost-vsock are accessible to this user, as with udev's group
# kvm.
libvirt() {
  local port serial='' as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$work/user" XDG_RUNTIME_DIR="$work/user"
    XDG_CONFIG_HOME="$work/user" XDG_CACHE_HOME="$work/user")
  echo "libvirt on $(uname -r):"
  {
    printf '[broker]\nruntime_dir = "%s"\nlog_level = "debug"\nsocket_group = "nogroup"\n[gpu]\nlibrary = "sim"\n' "$work"
    printf '[vm.vm1]\nregion_size = "128MiB"\nslots = 2\ntransport = "pmem"\nplain_file = "/dev/shm/ivgpu-vm1"\n'
    printf 'vsock_cid = 3\nvsock_port = 5000\n'
  } >"$work/ivgpud.toml"
  start_kept_broker
  chmod 755 "$work"
  mkdir -p "$work/user/libvirt"
  # Runs without a log daemon, which would outlive the test.
  echo 'stdio_handler = "file"' >"$work/user/libvirt/qemu.conf"
  cp "$folder"/{vmlinuz,initrd} "$work/user/"
  chown -R nobody:nogroup "$work/user"
  chmod 666 /dev/kvm /dev/vhost-vsock
  for port in console out err control; do serial+="<serial type='file'><source path='$work/user/$port'/></serial>"; done
  sed "/<interface/,/<.interface>/d; /<disk/,/<.disk>/d; /<console/d; s/<vcpu>4/<vcpu>1/; s/cpus='0-3'/cpus='0'/
    s/memory='4' unit='GiB'/memory='768' unit='MiB'/; s/unit='GiB'>4</unit='MiB'>768</; s/>1026</>130</; s,</devices>,$serial&,
    s,</os>,<kernel>$work/user/vmlinuz</kernel><initrd>$work/user/initrd</initrd><cmdline>console=ttyS0 quiet panic=-1 ivgpu.short</cmdline>&," \
    "$sources/qemu-config/nvdimm-vsock.xml" >"$work/vm1.xml"
  { virsh_ define "$work/vm1.xml" && virsh_ start vm1; } || fail "libvirt does not start the VM"
  wait_for_line "$work/user/control" '^exit '
  wait_for has_no_vm || fail "the VM has not ended"
  mv "$work/user/out" "$work/libvirt.out"
  mv "$work/user/control" "$work/libvirt.control"
  said libvirt '^ok +region +128 MiB in 2 slots, devdax$' '^ok +vsock +port 5000 of the host' '^ok +broker ' '^a program works$' \
    '^vector_add: float, 1000 elements, checksum 8a539b971d86987c$' '^vsock port 5000 of the host is the doorbell channel$'
  grep -q 'vm1: session .* of vector_add .* ends after' "$work/log" || fail "ivgpud has had no program of the VM"
  ((status == 0)) || tail -n 50 "$work"/user/{console,err} "$work"/libvirt.{out,control} "$work"/user/libvirt/qemu/log/*
  kill "$(cat "$work/user/libvirt/libvirtd.pid")"
  end_broker
}

# Occupies CID 1000000 and port 1000001 until its input ends.
taken() {
  python3 -c 'import fcntl, socket, struct, sys
device = open("/dev/vhost-vsock", "rb+", buffering=0)
fcntl.ioctl(device, 0x4008AF60, struct.pack("Q", 1000000))
port = socket.socket(socket.AF_VSOCK)
port.bind((socket.VMADDR_CID_ANY, 1000001))
print("taken", flush=True)
sys.stdin.read()'
}

vm() {
  local code=0
  echo "vm on $(uname -r):"
  cp -a "$folder/image" "$work/image"
  exec 7> >(taken >"$work/taken")
  wait_for test -s "$work/taken" || fail "the first CID and port cannot be taken"
  XDG_CACHE_HOME=$work/image IVGPU_BUNDLE=$folder/bundle "$build/bin/ivgpu" vm --gpu sim --transport pmem --vsock --region-size 256M --steps \
    --timeout 600 -- 'vector_add --n 1000; ivgpu-check --guest >&2; IVGPU_LOG=info vector_add --n 1000 >/dev/null' \
    2>&1 >"$work/said.out" | tee "$work/said.err" || code=$?
  exec 7>&-
  [[ $code == 0 ]] || fail "ivgpu vm ended with $code"
  "$build/bin/ivgpu" sim "$build/programs/vector_add" --n 1000 | cmp - "$work/said.out" || fail "the program computes something else"
  for pattern in 'virtio-pmem of 258 MiB, doorbells by vsock, CID 1000002$' '^ok +vsock +port 1000002 of the host' '^ok +broker ' \
    '^ivgpu: vsock port 1000002 of the host is the doorbell channel$'; do
    grep -qE "$pattern" "$work/said.err" || fail "nothing says: $pattern"
  done
}

end_broker() {
  ((status == 0)) || tail -n 30 "$work/log"
  kill "$broker"
  wait "$broker" || fail "ivgpud ended with $?"
  broker=''
  rm -f "$work/ready"
}

if [[ $inside ]]; then
  failed=0
  for part in "${parts[@]}"; do
    status=0
    "$part"
    if ((status)); then failed=1; else echo "$part went well"; fi
  done
  exit "$failed"
fi
on_this_machine
exit "$status"
