#!/usr/bin/env bash
# booted.sh runs this script in a guest that systemd has booted with the packages, Debian's libvirt and AppArmor. The
# VMs of the system's libvirtd must get ivgpu's device through the hook, while libvirtd and QEMU are confined. One VM
# boots; the other VMs have no disk.
set -uo pipefail
# shellcheck source=tests/packages/in_guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_guest.sh"
# shellcheck source=tests/packages/in_vm.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_vm.sh"
says() {
  local pattern=$1
  shift
  "$@" >/test/whole 2>&1
  cat /test/whole
  grep -qF -- "$pattern" /test/whole
}
toml=/etc/ivgpu/ivgpud.toml
denied() { dmesg | grep 'apparmor="DENIED"' | grep -F -- "$1"; }

check "AppArmor is in force" grep -qx Y /sys/module/apparmor/parameters/enabled
eventually systemctl is-active -q libvirtd || systemctl start libvirtd
check "libvirtd runs confined" grep -qx 'libvirtd (enforce)' "/proc/$(pidof libvirtd)/attr/current"
check "QEMU's user gets the group" adduser --quiet libvirt-qemu ivgpu
sed -i 's/^library = "auto"/library = "sim"/' "$toml"
printf '[defaults]\nregion_size = "64MiB"\nslots = 2\n' >>"$toml"
sed -i '0,/^\[defaults\]/{/^\[defaults\]/d}' "$toml"
check "ivgpud starts without a VM" systemctl enable --now ivgpud

domain() {
  printf "<domain type='qemu'><name>%s</name><memory unit='MiB'>64</memory><metadata>%s</metadata>
<os><type arch='x86_64' machine='q35'>hvm</type></os><devices>%s</devices></domain>\n" "$1" "$2" "$3" >"/test/$1.xml"
  virsh -q define "/test/$1.xml"
}
device() { echo "<shmem name='ivgpu-$1'><model type='ivshmem-doorbell'/><server path='/run/ivgpu/$1.sock'/><msi vectors='2' ioeventfd='on'/></shmem>"; }
connected() { ivgpu status | grep -q 'connections 1'; }

check "a VM without the device" domain plain '' ''
mv /usr/libexec/ivgpu/ivgpu-libvirt-hook /test/
check "starts, whatever has become of the hook" virsh -q start plain
check "and ends" virsh -q destroy plain
mv /test/ivgpu-libvirt-hook /usr/libexec/ivgpu/

check "a VM with the device" domain vm1 "<ivgpu:vm xmlns:ivgpu='urn:ivgpu:libvirt:1' weight='3'/>" "$(device vm1)"
check "starts" virsh -q start vm1
check "QEMU has the region" eventually connected
check "and runs in a profile of its own" grep -q '^libvirt-.* (enforce)$' "/proc/$(cat /run/libvirt/qemu/vm1.pid)/attr/current"
check "which libvirt has written the socket into" grep '"/run/ivgpu/vm1.sock" rw,' /etc/apparmor.d/libvirt/*.files
check "the hook has said what the domain says" says 'weight = 3' cat /run/ivgpu/vms.d/vm1.toml
check "and how many vectors" says 'vectors = 2' cat /run/ivgpu/vms.d/vm1.toml
check "libvirtd, started anew, leaves the VM alone" systemctl restart libvirtd
check "which goes on" eventually sh -c 'virsh list --name | grep -qx vm1'
check "with its device" connected
check "it cannot be saved, nor moved" fails virsh -q save vm1 /test/saved
check "it ends" virsh -q destroy vm1
check "and its socket with it" fails ls /run/ivgpu/vm1.sock
check "AppArmor has refused nothing of ours" fails denied ivgpu

# libvirt's profile of a VM names the files of ivshmem-plain and of an NVDIMM. libvirt does not see files in QEMU's own
# options.
named() { grep "\"/dev/shm/ivgpu-$1\" rw" "/etc/apparmor.d/libvirt/libvirt-$(virsh domuuid "$1").files"; }
page() { sed -n 's/vm1/pmem/g; s/^sudo \(sed .*apparmor\)/\1/p' /test/pmem.md; }
check "three VMs with files are added" add_files
try_file plain "its profile names it" named plain
try_file nvdimm "its profile names it" named nvdimm
check "one with virtio-pmem is refused" says 'Permission denied' boots pmem '' '' "$(file_words pmem)"
check "by AppArmor" denied /dev/shm/ivgpu-pmem
dmesg -C
page >/test/page
check "the page's line, for this VM" bash -eux /test/page
try_file pmem "and libvirt has named it nowhere" fails named pmem
check "they are taken out again" drop_files
try_vm "$(device booted)"
check "AppArmor has still refused nothing of ours" fails denied ivgpu

check "metadata with a mistake" domain vm2 "<ivgpu:vm xmlns:ivgpu='urn:ivgpu:libvirt:1' slots='99'/>" "$(device vm2)"
check "keeps the VM from starting, with the sentence" says 'slots = 99: slots takes an integer from 1 to 64' virsh -q start vm2
check "and leaves nothing" fails ls /run/ivgpu/vm2.sock /run/ivgpu/vms.d/vm2.toml
systemctl stop ivgpud
check "without ivgpud it does not start, and says so" says 'systemctl start ivgpud' virsh -q start vm1
systemctl start ivgpud

# Tests the line for all VMs in a profile that contains only libvirt's abstraction.
ivgpu add vm3 >/dev/null
cat >/etc/apparmor.d/trial <<'PROFILE'
#include <tunables/global>
profile trial flags=(attach_disconnected) {
  #include <abstractions/libvirt-qemu>
}
PROFILE
profile() { apparmor_parser --replace --skip-cache /etc/apparmor.d/trial; }
qemu() {
  timeout 300 setpriv --reuid=libvirt-qemu --regid=libvirt-qemu --init-groups aa-exec -p trial -- qemu-system-x86_64 \
    -machine q35 -S -m 64 -display none -nodefaults -monitor stdio -chardev socket,id=c,path=/run/ivgpu/vm3.sock \
    -device ivshmem-doorbell,chardev=c,vectors=1 <<<quit
}
check "a profile of the abstraction" profile
if qemu >/test/said 2>&1; then
  echo "ok    without the line: this kernel lets QEMU connect ($(uname -r))"
else
  echo "ok    without the line: $(grep -m 1 vm3 /test/said) ($(uname -r))"
  check "the kernel says who" denied vm3.sock
fi
mkdir -p /etc/apparmor.d/local/abstractions
echo '/run/ivgpu/*.sock rw,' >>/etc/apparmor.d/local/abstractions/libvirt-qemu
check "with the line" profile
check "QEMU connects" qemu
# Checks that the profile is in force, and that the kernel's log reports refusals.
check "and does not read the host's secrets" fails aa-exec -p trial -- qemu-system-x86_64 -S -display none -nodefaults \
  -bios /etc/shadow
check "as the kernel says" denied /etc/shadow
check "the packages are purged" dpkg --purge ivgpu-tools ivgpu-guest ivgpu-host
check "and libvirt's VMs start without them" sh -c 'virsh -q start plain && virsh -q destroy plain'
check "nothing is left of the hook" fails ls /etc/libvirt/hooks/qemu.d/ivgpu
[[ $status == 0 ]] && echo "ok    all of it"
systemctl poweroff --force --force
