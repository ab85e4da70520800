# A VM that boots under the system's libvirtd, and whose programs use the simulated GPU by the device that libvirt gave it;
# sourced by in_libvirt.sh and in_selinux.sh. What boots is /test/vmlinuz with /test/initrd, emulated in an emulated machine,
# which takes minutes.
# shellcheck shell=bash

images=/var/lib/libvirt/images
# Where virtlogd may write, whatever confines it.
ports=/var/log/libvirt/qemu
export LIBVIRT_DEFAULT_URI=qemu:///system

# boots NAME WORDS DEVICES: a domain whose guest says in $ports/NAME.1 what its programs say; WORDS are the kernel's.
boots() {
  local name=$1 i serial=
  for i in 0 1 2 3; do serial+="<serial type='file'><source path='$ports/$name.$i'/></serial>"; done
  [[ -e $images/initrd ]] || install -m 644 /test/vmlinuz /test/initrd "$images/"
  cat >"/root/$name.xml" <<XML
<domain type='qemu'><name>$name</name><memory unit='MiB'>768</memory>
<os><type arch='x86_64' machine='q35'>hvm</type><kernel>$images/vmlinuz</kernel><initrd>$images/initrd</initrd>
<cmdline>console=ttyS0 quiet loglevel=1 panic=-1 tsc=reliable mitigations=off cryptomgr.notests random.trust_cpu=on $2</cmdline></os>
<features><acpi/></features><cpu mode='maximum'/>
<devices>$serial<video><model type='none'/></video><memballoon model='none'/>$3</devices></domain>
XML
  virsh -q define "/root/$name.xml" && virsh -q start "$name"
}
guest_said() { grep -qE -- "$2" "$ports/$1.1"; }
# A guest has half an hour to say it.
guest_says() {
  for ((round = 0; round < 900; ++round)); do
    guest_said "$@" && return
    sleep 2
  done
  tail -n 5 "$ports/$1".[0-3]
  return 1
}
# Its session lives: what a guest's calls say while no ivgpud answers for 0.7 s is over.
goes_on() {
  ! guest_said "$1" '^(wrong|ended)' && [[ $(grep -E '^(lost|back)' "$ports/$1.1" | tail -n 1) != lost* ]] &&
    ivgpu status | grep -E 'claimed .* faults_program'
}
no_vm() { ! virsh list --name | grep -qx "$1"; }

# What a VM's life must look like, whatever confines QEMU: try_vm DEVICE, the XML of the host's page for VM "booted".
try_vm() {
  local programs
  # An emulated machine may take longer to start a service than a worker waits.
  sed -i '0,/^\[broker\]/s//[broker]\noutlive_s = 60/' /etc/ivgpu/ivgpud.toml
  check "workers wait longer" systemctl restart ivgpud
  check "a VM with a kernel starts" boots booted '' "$1"
  check "its guest finds the device" guest_says booted '^ok +region .* ivshmem-doorbell$'
  check "and the broker" guest_says booted '^ok +broker '
  check "a program runs in it" guest_says booted '^vector_add: float, 1000 elements, checksum 8a539b971d86987c$'
  check "another works, with every result checked" guest_says booted '^begun'
  check "libvirtd is restarted meanwhile" systemctl restart libvirtd
  check "and knows the VM" eventually sh -c 'virsh list --name | grep -qx booted'
  check "ivgpud is restarted meanwhile" systemctl restart ivgpud
  programs=$(grep -c '^program ' "$ports/booted.1")
  check "programs start after that" guest_says booted "^program $((programs + 2))\$"
  check "and the one at work goes on" goes_on booted
  check "as does QEMU's connection" sh -c 'ivgpu status | grep "connections 1"'
  check "the VM is destroyed" virsh -q destroy booted
  check "its socket goes with it" eventually fails ls /run/ivgpu/booted.sock
  check "and its file" fails ls /run/ivgpu/vms.d/booted.toml
  check "no worker of it is left" eventually fails grep -qs ivgpu-worker /proc/[0-9]*/comm
  virsh -q undefine booted
  check "a VM that turns itself off starts" boots booted ivgpu.short "$1"
  check "runs a program" guest_says booted '^vector_add: float, 1000 elements, checksum 8a539b971d86987c$'
  check "and has turned itself off" eventually no_vm booted
  check "whereupon its socket goes" eventually fails ls /run/ivgpu/booted.sock
}
