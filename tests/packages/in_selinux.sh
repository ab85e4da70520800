#!/usr/bin/env bash
# booted.sh runs this script in a guest that systemd has booted with the packages, Debian's libvirt and SELinux in
# force. With the lines of docs/host.md, libvirt's VMs must get ivgpu's device through the hook, QEMU must be confined,
# and a VM must boot and use the device.
set -uo pipefail
# Runs in an administrator's domain, which the policy does not confine, instead of a service's domain.
[[ $(id -Z) == *:unconfined_t:* ]] || exec runcon unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023 bash "$0"
# shellcheck source=tests/packages/in_guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_guest.sh"
# shellcheck source=tests/packages/in_vm.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_vm.sh"
toml=/etc/ivgpu/ivgpud.toml
echo 0 >/proc/sys/kernel/printk_ratelimit
# denied PATTERN: prints the denials that concern ivgpu's types, files or programs.
denied() { dmesg | grep 'avc:  denied' | grep -E -- "$1"; }
file_context() { stat -c %C "/dev/shm/ivgpu-$1" | grep -E ":$2\$"; }
device() { sed -n '/^<shmem/,/^<.shmem>/p' /test/host.md | sed "s/vm1/$1/"; }
# Prints the commands for root in this section of the page, except those that install what is already installed.
page() {
  awk '/^## /{ ours = /SELinux/ } /^```/{ code = /sh$/ && ours; next } code && !/^sudo apt/' /test/host.md | sed 's/^sudo //; s/| sudo /| /
    s/"ivgpu-vm2"/"ivgpu-nvdimm"/'
}
domain_of() { tr -d '\0' <"/proc/$1/attr/current"; }
qemu_domain() { domain_of "$(qemu_of "$1")"; }
category() { qemu_domain "$1" | grep -E '^system_u:system_r:svirt_t:s0:c[0-9]+,c[0-9]+$'; }
apart() { [[ $(category "$1") != "$(category "$2")" ]]; }

check "SELinux is in force" grep -qx 1 /sys/fs/selinux/enforce
check "QEMU's user gets the group" adduser --quiet libvirt-qemu ivgpu
sed -i 's/^library = "auto"/library = "sim"/; s/^#region_size = .*/region_size = "128MiB"/; s/^#slots = 8/slots = 2/' "$toml"
check "ivgpud starts" systemctl enable --now ivgpud
cd /root || exit
page >/root/page
check "the page's lines, all of them" bash -eux /root/page
check "three VMs with files are added" add_files
check "QEMU may emulate" setsebool virt_use_execmem on
check "ivgpud's sockets have their type" sh -c 'ls -Z /run/ivgpu/ivgpud.control | grep :ivgpu_runtime_t:'
check "libvirtd is restarted" systemctl restart libvirtd
check "and confined" grep -q :virtd_t: "/proc/$(pidof libvirtd)/attr/current"
dmesg -C
check "a VM with the device starts" boots vm1 '' "$(device vm1)"
check "QEMU has the region" eventually sh -c 'ivgpu status | grep "connections 1"'
check "and is svirt_t with categories" category vm1
check "another VM starts" boots vm2 '' "$(device vm2)"
check "with other categories" apart vm1 vm2
ps -eZ | sed -nE '/qemu|ivgpu|libvirtd/s/^/      /p'
check "both end" sh -c 'virsh -q destroy vm1 && virsh -q destroy vm2'
check "and their sockets with them" fails ls /run/ivgpu/vm1.sock /run/ivgpu/vm2.sock

check "an NVDIMM's file has its type" file_context nvdimm ivgpu_region_t:s0
check "which no other VM may open" fails boots thief '' "$(file_device plain | sed s/ivgpu-plain/ivgpu-nvdimm/)"
check "as the kernel says" denied 'svirt_t.*ivgpu_region_t'
dmesg -C
try_file plain "with the type of all of them" file_context plain tmpfs_t:s0
try_file nvdimm "with the VM's own categories" file_context nvdimm 'svirt_image_t:s0:c[0-9]+,c[0-9]+'
check "and has its type again" eventually file_context nvdimm ivgpu_region_t:s0
try_file pmem "with the type of all of them" file_context pmem tmpfs_t:s0
check "they are taken out again" drop_files
try_vm "$(device booted)"
check "SELinux has refused nothing of ours" fails denied 'ivgpu|svirt_t.*tmpfs_t'
[[ $status == 0 ]] || dmesg | grep 'avc:  denied' | sed 's/^/      /'
[[ $status == 0 ]] && echo "ok    all of it"
systemctl poweroff --force --force
