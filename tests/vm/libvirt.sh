#!/usr/bin/env bash
# usage: libvirt_xml.sh
# The domains of qemu-config/ are libvirt's XML, and libvirt makes of them the QEMU options that the pages show. The
# conversion runs in a libvirtd of its own, as a user without rights, where there is one. 77: nothing could be tried.
set -euo pipefail
files=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../qemu-config" && pwd)
command -v virt-xml-validate >/dev/null || { echo "there is no virt-xml-validate here"; exit 77; }
work=$(mktemp -d)
# shellcheck disable=SC2317
finish() {
  local pid
  pid=$(cat "$work/libvirt/libvirtd.pid" 2>/dev/null || true)
  if [[ $pid ]]; then kill "$pid" 2>/dev/null || true; fi
  while [[ $pid && -e /proc/$pid ]]; do sleep 0.05; done
  rm -rf "$work"
}
trap finish EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }

for form in doorbell plain-file plain-memfd; do
  virt-xml-validate "$files/$form.xml" domain >"$work/said" 2>&1 || { cat "$work/said"; fail "$form.xml"; }
done
sed 's/<shmem /<shmen /' "$files/plain-file.xml" >"$work/wrong.xml"
if virt-xml-validate "$work/wrong.xml" domain >/dev/null 2>&1; then fail "a broken domain passes"; fi

command -v libvirtd >/dev/null || { echo "there is no libvirtd here: nothing was converted"; exit "$status"; }
# Its own part is what matters: this machine need not have KVM or a network for guests.
as_nobody=()
if ((EUID == 0)); then as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups); fi
chmod 777 "$work"
arguments_of() {
  sed "/<interface/,/<.interface>/d; s/domain type='kvm'/domain type='qemu'/; s/host-passthrough/maximum/" \
    "$files/$1.xml" >"$work/$1.xml"
  HOME=$work XDG_RUNTIME_DIR=$work XDG_CONFIG_HOME=$work XDG_CACHE_HOME=$work timeout 60 "${as_nobody[@]}" \
    virsh -q -c qemu:///session domxml-to-native qemu-argv "$work/$1.xml" 2>&1 | tr ' ' '\n'
}
expect() {
  local form=$1 pattern
  arguments_of "$form" >"$work/argv" || true
  shift
  for pattern in "$@"; do
    grep -qE -- "$pattern" "$work/argv" || { fail "$form.xml becomes no $pattern"; tail -n 3 "$work/argv"; }
  done
}
expect doorbell '^socket,id=charshmem0,path=/run/ivgpu/vm1.sock$' '"driver":"ivshmem-doorbell".*"vectors":1,'
expect plain-file '"qom-type":"memory-backend-file".*"mem-path":"/dev/shm/ivgpu-vm1","size":1073741824,"share":true' \
  '"driver":"ivshmem-plain"'
expect plain-memfd '^memory-backend-file,id=ivgpu,mem-path=/proc/PID/fd/N,size=1G,share=on$' '^ivshmem-plain,memdev=ivgpu$'
exit "$status"
