#!/usr/bin/env bash
# usage: libvirt.sh BUILD
# libvirt must turn the domains of qemu-config/ into the QEMU options on the pages, accept the pages' device, and start
# a VM with it. The VM boots nothing; its firmware lists the device. The test uses its own libvirtd, without privileges
# if possible. Finally libvirt's hook adds the VM, which needs root for a private /etc/libvirt. Exit code 77: nothing
# could be tested.
set -euo pipefail
build=$1
if ((EUID == 0)) && [[ -d /etc/libvirt && ! ${IVGPU_OWN_ETC:-} ]]; then IVGPU_OWN_ETC=1 exec unshare -m "$0" "$@"; fi
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
files=$top/qemu-config
command -v virt-xml-validate >/dev/null || { echo "there is no virt-xml-validate here"; exit 77; }
work=$(mktemp -d)
shm=ivgpu-test-$$
broker=''
end_broker() {
  if [[ $broker ]]; then
    kill "$broker" 2>/dev/null || true
    wait "$broker" || fail "ivgpud ended with $?"
  fi
  broker=''
}
# shellcheck disable=SC2317
finish() {
  local pid
  if [[ -e $work/libvirt/libvirtd.pid ]]; then virsh_ destroy vm1 >/dev/null 2>&1 || true; fi
  pid=$(cat "$work/libvirt/libvirtd.pid" 2>/dev/null || true)
  if [[ $pid ]]; then kill "$pid" 2>/dev/null || true; fi
  while [[ $pid && -e /proc/$pid ]]; do sleep 0.05; done
  end_broker
  rm -rf "$work" "/dev/shm/$shm"
}
trap finish EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }

for form in doorbell plain-file plain-memfd nvdimm-vsock virtio-pmem; do
  virt-xml-validate "$files/$form.xml" domain >"$work/said" 2>&1 || { cat "$work/said"; fail "$form.xml"; }
done
sed 's/<shmem /<shmen /' "$files/plain-file.xml" >"$work/wrong.xml"
if virt-xml-validate "$work/wrong.xml" domain >/dev/null 2>&1; then fail "a broken domain passes"; fi

command -v libvirtd >/dev/null || { echo "there is no libvirtd here: nothing was converted or started"; exit "$status"; }
as_nobody=()
if ((EUID == 0)); then as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups); fi
chmod 777 "$work"
virsh_() {
  HOME=$work XDG_RUNTIME_DIR=$work XDG_CONFIG_HOME=$work XDG_CACHE_HOME=$work timeout 300 "${as_nobody[@]}" \
    virsh -q -c qemu:///session "$@"
}
# Runs without a log daemon, which would outlive the test.
mkdir -m 777 "$work/libvirt"
echo 'stdio_handler = "file"' >"$work/libvirt/qemu.conf"

# libvirtd looks for hooks only at its start; the hook has no VM yet.
if [[ ${IVGPU_OWN_ETC:-} ]]; then
  hook=/etc/libvirt/hooks/qemu.d/ivgpu
  mount -t tmpfs -o mode=755 none /etc/libvirt
  mkdir -p "${hook%/*}" "$work/prefix/bin" "$work/prefix/libexec/ivgpu"
  cp "$build/bin/ivgpu" "$work/prefix/bin/"
  cp "$top/tools/host/ivgpu-libvirt-hook" "$work/prefix/libexec/ivgpu/"
  sed "s,@CMAKE_INSTALL_PREFIX@,$work/prefix,; s,^folder=.*,folder=/nowhere," "$top/tools/host/libvirt-hook.in" >"$hook"
  chmod 755 "$hook"
fi

# Compares only the device, since this machine may lack KVM or a network for guests.
expect() {
  local form=$1 pattern
  sed "/<interface/,/<.interface>/d; s/domain type='kvm'/domain type='qemu'/; s/host-passthrough/maximum/" \
    "$files/$form.xml" >"$work/$form.xml"
  virsh_ domxml-to-native qemu-argv "$work/$form.xml" 2>&1 | tr ' ' '\n' >"$work/argv" || true
  shift
  for pattern in "$@"; do
    grep -qE -- "$pattern" "$work/argv" || { fail "$form.xml becomes no $pattern"; tail -n 3 "$work/argv"; }
  done
}
expect doorbell '^socket,id=charshmem0,path=/run/ivgpu/vm1.sock$' '"driver":"ivshmem-doorbell".*"vectors":1,'
expect plain-file '"qom-type":"memory-backend-file".*"mem-path":"/dev/shm/ivgpu-vm1","size":1073741824,"share":true' \
  '"driver":"ivshmem-plain"'
expect plain-memfd '^memory-backend-file,id=ivgpu,mem-path=/run/ivgpu/vm1.memory,size=1G,share=on$' '^ivshmem-plain,memdev=ivgpu,'
expect nvdimm-vsock '"qom-type":"memory-backend-file".*"mem-path":"/dev/shm/ivgpu-vm1","share":true.*"size":1075838976,"align":2097152' \
  '"driver":"nvdimm"' '"driver":"vhost-vsock-pci".*"guest-cid":3'
expect virtio-pmem '^memory-backend-file,id=ivgpu,mem-path=/dev/shm/ivgpu-vm1,size=1026M,align=2M,share=on$' \
  '^virtio-pmem-pci,memdev=ivgpu,' '"driver":"vhost-vsock-pci".*"guest-cid":3'

# The broker runs as QEMU's user, which the memfd requires and which may not be able to reach the build tree. No worker
# starts.
cp "$build/bin/ivgpud" "$build/bin/ivgpu-worker" "$build/simgpu/libcuda.so.1" "$work/"
serve() {
  end_broker
  printf '[broker]\nruntime_dir = "%s"\n[gpu]\nlibrary = "%s/libcuda.so.1"\n[defaults]\nspare = 0\n' "$work" "$work" \
    >"$work/ivgpud.toml"
  printf '%s\n' "$@" >>"$work/ivgpud.toml"
  rm -f "$work/ready"
  mkfifo "$work/ready"
  "${as_nobody[@]}" "$work/ivgpud" --config "$work/ivgpud.toml" --ready-fd 9 9>"$work/ready" 2>"$work/log" &
  broker=$!
  read -r _ <"$work/ready" || { cat "$work/log"; fail "no broker for $*"; }
}

# Defines the VM of the page, or the whole file, without its disk and network.
define() {
  sed "/<interface/,/<.interface>/d; /<disk/,/<.disk>/d; s/domain type='kvm'/domain type='qemu'/
    s/host-passthrough/maximum/; s/unit='GiB'>4</unit='MiB'>128</; s/<vcpu>4/<vcpu>1/; $2" "$files/$1.xml" >"$work/vm1.xml"
  virsh_ define "$work/vm1.xml" || fail "$1: libvirt does not take the VM"
}
# Attaches the device of the page: the lines from <shmem> to its end.
attach() {
  sed -n "/^<shmem/,/^<.shmem>/ p" "$top/$1" | sed "$2" >"$work/device.xml"
  virsh_ attach-device vm1 "$work/device.xml" --config || fail "$1: libvirt does not take the device"
}
starts() {
  local form=$1 memory=$2 pid i
  virsh_ start vm1 >"$work/said" 2>&1 || { cat "$work/said"; fail "$form: the VM does not start"; return; }
  # The device is behind a bridge, and is listed only when the firmware has assigned the bridge's bus.
  for ((i = 0; i < 600; ++i)); do
    virsh_ qemu-monitor-command --hmp vm1 'info pci' >"$work/said" 2>&1 || true
    grep -q 'PCI device 1af4:1110' "$work/said" && break
    sleep 0.1
  done
  grep -q 'PCI device 1af4:1110' "$work/said" || { cat "$work/said"; fail "$form: the VM has no device"; }
  pid=$(cat "$work"/libvirt/qemu/run/vm1.pid)
  grep -qE -- "rw-s .*$memory" "/proc/$pid/maps" || fail "$form: QEMU has not mapped $memory"
  virsh_ destroy vm1 || fail "$form: the VM does not end"
}
without="/<shmem/,/<.shmem>/d"

serve '[vm.vm1]' 'region_size = "1GiB"'
define doorbell "$without"
attach docs/host.md "s,/run/ivgpu/,$work/,"
starts doorbell memfd:ivgpu
end_broker
if virsh_ start vm1 >"$work/said" 2>&1; then fail "doorbell: the VM starts without a broker"; fi
# virsh repeats QEMU's message only if libvirtd reached QEMU's monitor in time; QEMU's log always has it.
log=$work/libvirt/qemu/log/vm1.log
grep -q "Failed to connect to '$work/vm1.sock'" "$log" || { cat "$work/said" "$log"; fail "doorbell: QEMU says something else"; }
virsh_ undefine vm1

serve '[vm.vm1]' 'transport = "plain"' "plain_file = \"/dev/shm/$shm\""
define plain-file "$without"
attach qemu-config/plain.md "s/ivgpu-vm1/$shm/"
starts plain-file "/dev/shm/$shm"
virsh_ undefine vm1

serve '[vm.vm1]' 'transport = "plain"'
define plain-memfd "s,/run/ivgpu/vm1.memory,$work/vm1.memory,"
starts plain-memfd memfd:ivgpu
virsh_ undefine vm1
end_broker

[[ ${IVGPU_OWN_ETC:-} ]] || { echo "only root can give libvirt a hook: it was not tried here"; exit "$status"; }
sed -i "s,^folder=.*,folder=$work," "$hook"
mkdir -m 777 "$work/vms.d"
serve
define doorbell "$without"
virsh_ start vm1 || fail "hook: a VM without the device does not start"
virsh_ destroy vm1
attach docs/host.md "s,/run/ivgpu/,$work/,"
say() { virsh_ metadata vm1 urn:ivgpu:libvirt:1 --config --key ivgpu --set "$1" >/dev/null; }
say "<vm slots='99'/>"
if virsh_ start vm1 >"$work/said" 2>&1; then fail "hook: the VM starts with a mistake"; fi
grep -q 'slots = 99: slots takes an integer from 1 to 64' "$work/said" || { cat "$work/said"; fail "hook: it says something else"; }
[[ ! -e $work/vm1.sock && ! -e $work/vms.d/vm1.toml ]] || fail "hook: what was refused stays"
# Uses the page's text, but with a region that fits a small machine.
page=$(sed -n "s/^virsh metadata vm1 urn.*--set \"\(.*\)\"$/\1/p" "$top/docs/host.md")
say "${page/2GiB/512MiB}"
starts hook memfd:ivgpu
grep -q 'VM vm1: added' "$work/log" || { cat "$work/log"; fail "hook: it adds no VM"; }
[[ ! -e $work/vm1.sock && ! -e $work/vms.d/vm1.toml ]] || fail "hook: the VM stays when QEMU has ended"
end_broker
if virsh_ start vm1 >"$work/said" 2>&1; then fail "hook: the VM starts without ivgpud"; fi
grep -q 'systemctl start ivgpud' "$work/said" || { cat "$work/said"; fail "hook: without ivgpud it says something else"; }
exit "$status"
