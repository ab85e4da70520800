# A VM that boots under the system's libvirtd, and whose programs use the simulated GPU through the device that libvirt
# gave the VM; sourced by in_libvirt.sh and in_selinux.sh. The VM boots /test/vmlinuz with /test/initrd by KVM, which an
# emulated machine has, too (docs/design/040-kvm-in-emulation.md); without KVM such a boot takes ten times as long.
# shellcheck shell=bash

images=/var/lib/libvirt/images
# The folder where virtlogd may write, whichever security module confines it.
ports=/var/log/libvirt/qemu
export LIBVIRT_DEFAULT_URI=qemu:///system
accelerator=qemu
modprobe kvm_amd 2>/dev/null || modprobe kvm_intel 2>/dev/null || true
[[ ! -e /dev/kvm ]] || accelerator=kvm

# boots NAME WORDS DEVICES [REST]: starts a domain whose guest writes its programs' output to $ports/NAME.1. WORDS are
# arguments of the kernel, REST is XML that follows the devices.
boots() {
  local name=$1 i serial='' room='' node='' uuid
  # A domain that exists already keeps its UUID.
  uuid=$(virsh domuuid "$name" 2>/dev/null)
  # Persistent memory needs these elements.
  if [[ $3${4:-} == *memory* ]]; then
    room="<maxMemory slots='1' unit='GiB'>2</maxMemory>" node="<numa><cell id='0' cpus='0' memory='768' unit='MiB'/></numa>"
  fi
  for i in 0 1 2 3; do serial+="<serial type='file'><source path='$ports/$name.$i'/></serial>"; done
  [[ -e $images/initrd ]] || install -m 644 /test/vmlinuz /test/initrd "$images/"
  cat >"/root/$name.xml" <<XML
<domain type='$accelerator' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>$name</name>${uuid:+<uuid>$uuid</uuid>}$room<memory unit='MiB'>768</memory>
<os><type arch='x86_64' machine='q35'>hvm</type><kernel>$images/vmlinuz</kernel><initrd>$images/initrd</initrd>
<cmdline>console=ttyS0 quiet loglevel=1 panic=-1 $(cat /test/clock) mitigations=off cryptomgr.notests random.trust_cpu=on $2</cmdline></os>
<features><acpi/></features><cpu mode='maximum'>$node</cpu>
<devices>$serial<video><model type='none'/></video><memballoon model='none'/>$3</devices>${4:-}</domain>
XML
  virsh -q define "/root/$name.xml" && virsh -q start "$name"
}
guest_said() { grep -qE -- "$2" "$ports/$1.1"; }
# Waits up to half an hour for a line of the guest.
guest_says() {
  for ((round = 0; round < 900; ++round)); do
    guest_said "$@" && return
    sleep 2
  done
  tail -n 5 "$ports/$1".[0-3]
  return 1
}
# Checks that the guest's session is alive: errors of calls during a pause of 0.7 s without ivgpud must have ended.
goes_on() {
  ! guest_said "$1" '^(wrong|ended)' && [[ $(grep -E '^(lost|back)' "$ports/$1.1" | tail -n 1) != lost* ]] &&
    ivgpu status | grep -E 'claimed .* faults_program'
}
no_vm() { ! virsh list --name | grep -qx "$1"; }

# Adds VMs whose regions are files in /dev/shm: ivshmem-plain, an NVDIMM and virtio-pmem, each in a VM of that name.
add_files() {
  local vm
  mkdir -p /etc/ivgpu/vms.d
  for vm in plain nvdimm pmem; do
    printf '[vm.%s]\nregion_size = "64MiB"\nslots = 2\ntransport = "%s"\nplain_file = "/dev/shm/ivgpu-%s"\n' "$vm" \
      "${vm/nvdimm/pmem}" "$vm" >"/etc/ivgpu/vms.d/$vm.toml"
  done
  systemctl reload ivgpud && for vm in plain nvdimm pmem; do eventually ls "/dev/shm/ivgpu-$vm" || return; done
}
drop_files() {
  rm /etc/ivgpu/vms.d/{plain,nvdimm,pmem}.toml
  systemctl reload ivgpud && eventually fails compgen -G '/dev/shm/ivgpu-*'
}
# Prints the devices as the pages show them, with another name and size: in libvirt's XML, and in QEMU's options.
of_file() { sed "s/ivgpu-vm1/ivgpu-$1/; s/unit='GiB'>1</unit='MiB'>64</; s/>1026</>66</; s/size=1026M/size=66M/"; }
file_device() {
  case $1 in
    plain) sed -n '/^<shmem/,/^<.shmem>/p' /test/plain.md ;;
    nvdimm) sed -n '/<memory model/,/<.memory>/p' /test/nvdimm-vsock.xml ;;
  esac | of_file "$1"
}
file_words() { if [[ $1 == pmem ]]; then sed -n '/<qemu:command/,/<.qemu:command/p' /test/virtio-pmem.xml | of_file pmem; fi; }
qemu_of() { cat "/run/libvirt/qemu/$1.pid"; }
has_file() { grep -E "rw-s .*/ivgpu-$1\$" "/proc/$(qemu_of "$1")/maps"; }
# After the VM's end the file belongs to ivgpud again, for the next VM.
file_goes_back() { [[ $(stat -c '%U:%G %a' "/dev/shm/ivgpu-$1") == 'root:ivgpu 660' ]]; }
# try_file NAME CHECK...: further checks while the VM runs, each a description and a command.
try_file() {
  local vm=$1
  shift
  check "a VM with $vm's file starts" boots "$vm" "ivgpu.short ivgpu.$vm" "$(file_device "$vm")" "$(file_words "$vm")"
  check "and QEMU has it" eventually has_file "$vm"
  check "$@"
  check "a program runs in it" guest_says "$vm" '^vector_add: float, 1000 elements, checksum 8a539b971d86987c$'
  check "and it has turned itself off" eventually no_vm "$vm"
  check "whereupon the file is as it was" eventually file_goes_back "$vm"
}

# try_vm DEVICE: checks a VM's life, whichever security module confines QEMU. DEVICE is the XML of the host's page for
# VM "booted".
try_vm() {
  local programs
  # An emulated machine may need longer to start a service than a worker waits.
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
