#!/usr/bin/env bash
# usage: libvirt_hook.sh SOURCES BUILD
# Tests libvirt's hook: with good and bad XML of domains and a fake `ivgpu` that records its arguments, and then with a
# real ivgpud. Also tests that the hook's list of keys equals ivgpud's list.
set -uo pipefail
sources=$1 build=$2
command -v python3 >/dev/null || { echo "there is no python3 here"; exit 77; }
work=$(mktemp -d)
broker=''
# shellcheck disable=SC2317
finish() {
  if [[ $broker ]]; then kill "$broker" 2>/dev/null; wait "$broker"; fi
  rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 1
status=0
fail() { echo "FAIL: $1"; status=1; }

# Has the layout of an installation, except that the hook's folder is this test's.
run=$work/run
mkdir -p prefix/libexec/ivgpu prefix/bin "$run/vms.d"
cp "$sources/tools/host/ivgpu-libvirt-hook" prefix/libexec/ivgpu/
sed "s,@CMAKE_INSTALL_PREFIX@,$work/prefix,; s,^folder=.*,folder=$run," "$sources/tools/host/libvirt-hook.in" >hook
chmod +x hook
cat >prefix/bin/ivgpu <<'FAKE'
#!/usr/bin/env bash
echo "$*" >>"$FAKE/asked"
[[ $1 != "$(cat "$FAKE/fails" 2>/dev/null)" ]] || { cat "$FAKE/says" >&2; exit 1; }
[[ $1 != status ]] || cat "$FAKE/status"
FAKE
chmod +x prefix/bin/ivgpu
export FAKE=$work
echo '{"vms": []}' >status

uuid=11111111-2222-3333-4444-555555555555
# domain METADATA DEVICES: prints a domain's XML.
domain() {
  printf "<domain type='kvm'>\n<name>vm1</name><uuid>%s</uuid>\n<metadata>%s</metadata>\n" "$uuid" "$1"
  printf "<os><type>hvm</type></os><devices><emulator>/usr/bin/qemu-system-x86_64</emulator>%s</devices></domain>\n" "$2"
}
# device PATH [MSI]: prints the device's XML, in libvirt's form.
device() { printf "<shmem name='s'><model type='ivshmem-doorbell'/><server path='%s'/>%s</shmem>" "$1" "${2-<msi vectors='1'/>}"; }
ours() { printf "<ivgpu:vm xmlns:ivgpu='urn:ivgpu:libvirt:1' %s/>" "$1"; }

# expect CODE SENTENCE ASKED WORDS...: runs the hook with the domain's XML from the file xml. Checks the exit code, the
# complete standard error, and the arguments that ivgpu got. Standard output belongs to libvirt and stays empty.
expect() {
  local code=$1 sentence=$2 asked=$3 said got
  shift 3
  rm -f asked
  PATH=${hook_path:-$PATH} ./hook "$@" <xml >out 2>said
  got=$?
  said=$(sed 's/line [0-9]*, column [0-9]*/its place/' said)
  [[ $got == "$code" && $said == "$sentence" && ! -s out && $(cat asked 2>/dev/null) == "$asked" ]] ||
    fail "hook $*: code $got (wanted $code), says '$said' (wanted '$sentence'), printed '$(cat out)', asked:"$'\n'"$(
      cat asked 2>/dev/null)"$'\n'"wanted:"$'\n'"$asked"
}
look="status --runtime-dir $run --json"
owner="libvirt's domain $uuid"
add="add --runtime-dir $run vm1 --owner $owner --set vectors ="
remove="remove --runtime-dir $run vm1 --owner $owner"

# ---- other domains start, whatever is wrong with them
# ------------------------------------------------------------------
stranger() { expect 0 '' '' vm1 prepare begin -; }
domain '' '' >xml
stranger
domain '' "$(device /var/lib/libvirt/shmem-s-sock)" >xml
stranger
domain '' "<shmem name='s'><model type='ivshmem-plain'/><size unit='M'>4</size></shmem>" >xml
stranger
domain "$(ours "nonsense='1'")" "$(device "$run-elsewhere/vm1.sock")" >xml
stranger
# A domain whose description only mentions the device.
domain "<d>ivshmem-doorbell $run/vm1.sock</d>$(ours "nonsense='1'")" '' >xml
stranger
: >xml
stranger
head -c 100000 /dev/urandom >xml
stranger
domain '' '' >xml
mv prefix/libexec/ivgpu/ivgpu-libvirt-hook kept
stranger
domain '' "$(device "$run/vm1.sock")" >xml
stranger  # the package was removed, but its hook is still installed
echo 'raise Nonsense' >prefix/libexec/ivgpu/ivgpu-libvirt-hook
domain '' '' >xml
stranger
mv kept prefix/libexec/ivgpu/ivgpu-libvirt-hook

# ---- a domain with the device ---------------------------------------------------------------------------------------
domain '' "$(device "$run/vm1.sock")" >xml
expect 0 '' "$look"$'\n'"$add 1" vm1 prepare begin -
expect 0 '' "$remove" vm1 release end -
for nothing in 'start begin' 'started begin' 'stopped end' 'reconnect begin' 'attach begin' 'restore begin' 'prepare end' 'x y'; do
  # shellcheck disable=SC2086
  expect 0 '' '' vm1 $nothing -
done
expect 1 "ivgpu: domain vm1: it has ivgpu's device, whose sessions stay on the other host: detach it, then migrate" '' \
  vm1 migrate begin -
domain '' "$(device "$run/vm1.sock" "<msi vectors='8' ioeventfd='on'/>")" >xml
expect 0 '' "$look"$'\n'"$add 8" vm1 prepare begin -
domain '' "$(device "$run/vm1.sock" '')" >xml
expect 0 '' "$look"$'\n'"$add 1" vm1 prepare begin -
domain '' "$(device "$run/vm1.sock")$(device "$run/b-2.x.sock")" >xml
expect 0 '' "$look"$'\n'"$add 1"$'\n'"$look"$'\n'"${add/vm1/b-2.x} 1" vm1 prepare begin -
expect 0 '' "$remove"$'\n'"${remove/vm1/b-2.x}" vm1 release end -

domain "<other xmlns='urn:x'/>$(ours "slots='4' region_size='2GiB' weight='3' latency='true' reserve='20' gpus='0, GPU-1a,0000:81:00.0'")" \
  "$(device "$run/vm1.sock")" >xml
expect 0 '' "$look"$'\n'"$add 1 --set slots = 4 --set region_size = \"2GiB\" --set weight = 3 --set latency = true --set reserve = 20 --set \
gpus = [0, \"GPU-1a\", \"0000:81:00.0\"]" vm1 prepare begin -
domain "$(ours "gpus='all' cpu_max='4' gpu_memory='none'")" "$(device "$run/vm1.sock")" >xml
expect 0 '' "$look"$'\n'"$add 1 --set gpus = \"all\" --set cpu_max = \"4\" --set gpu_memory = \"none\"" vm1 prepare begin -

# A VM of the broker's own configuration stays unchanged.
echo '{"vms": [{"name": "vm0"}, {"name": "vm1"}]}' >status
domain '' "$(device "$run/vm1.sock")" >xml
expect 0 '' "$look" vm1 prepare begin -
domain "$(ours "slots='4'")" "$(device "$run/vm1.sock")" >xml
expect 1 "ivgpu: domain vm1: VM vm1 has its table in ivgpud's configuration, so that what the domain's metadata says would \
count for nothing: take one of the two out" "$look" vm1 prepare begin -
# A VM that the hook itself has added earlier, and that was left behind, is added anew.
: >"$run/vms.d/vm1.toml"
expect 0 '' "$look"$'\n'"$add 1 --set slots = 4" vm1 prepare begin -
rm "$run/vms.d/vm1.toml"
echo '{"vms": []}' >status

# ---- refusals, in one sentence
# -----------------------------------------------------------------------------------------
# refuses SENTENCE [METADATA [DEVICES]]
refuses() {
  domain "${2-}" "${3-$(device "$run/vm1.sock")}" >xml
  expect 1 "ivgpu: domain vm1: $1" '' vm1 prepare begin -
  expect 0 "${4+ivgpu: domain vm1: $1}" "${4-$remove}" vm1 release end -
}
names="these are $run/NAME.sock, where a NAME has 1 to 63 letters, digits, '-', '_' and '.', and begins with a letter or digit"
# shellcheck disable=SC2016
for name in '' ../vm1 a/b . -x 'a b' "\$(touch $work/x)" '`x`' "a'b" 'a\nb' "$(printf 'x%.0s' {1..64})"; do
  path="$run/$name.sock"
  escaped=${path//\\/\\\\}
  [[ $name != "a'b" ]] || escaped="$run/a'b.sock"
  xml_path=${path//\'/\&apos;}
  refuses "$escaped is no VM's socket: $names" '' "$(device "$xml_path")" ''
done
refuses "$run/vm1.socket is no VM's socket: $names" '' "$(device "$run/vm1.socket")" ''
refuses "$run/vm1\\n.sock is no VM's socket: $names" '' "$(device "$run/vm1&#10;.sock")" ''
refuses "its device has vectors='many', which is no number" '' "$(device "$run/vm1.sock" "<msi vectors='many'/>")" ''
refuses "two of its devices have the socket $run/vm1.sock" '' "$(device "$run/vm1.sock")$(device "$run/vm1.sock")" ''
keys=$(sed -n '/^KEYS = {/,/^}/p' "$sources/tools/host/ivgpu-libvirt-hook" | grep -oE '"[a-z_]+":' | tr -d '":' | paste -sd, | sed 's/,/, /g')
for key in jail worker_uid socket_mode plain_file transport vectors nonsense; do
  refuses "ivgpu's element in its metadata takes no $key, but $keys" "$(ours "$key='1'")"
done
refuses "slots='four' in its metadata is no number" "$(ours "slots='four'")"
refuses "slots='-1' in its metadata is no number" "$(ours "slots='-1'")"
refuses "latency='yes' in its metadata is no boolean" "$(ours "latency='yes'")"
refuses "gpus='0,,1' in its metadata is no list" "$(ours "gpus='0,,1'")"
refuses "region_size='1GiB\"\\n[broker]' in its metadata is no text" "$(ours "region_size='1GiB&quot;&#10;[broker]'")"
refuses "gpu_memory='\$(x)' in its metadata is no text" "$(ours "gpu_memory='\$(x)'")"
refuses "ivgpu's element in its metadata takes attributes only, as in <ivgpu:vm slots='4'/>" \
  "<vm xmlns='urn:ivgpu:libvirt:1'>slots = 4</vm>"
refuses "ivgpu's element in its metadata takes attributes only, as in <ivgpu:vm slots='4'/>" \
  "<vm xmlns='urn:ivgpu:libvirt:1'><slots>4</slots></vm>"
refuses "its metadata has more than one element vm of ivgpu" "$(ours "slots='4'")$(ours "spare='4'")"

domain '' "$(device "$run/vm1.sock")" >good
sed 's,</devices>,,' good >xml
expect 1 "ivgpu: domain vm1: its XML cannot be read: mismatched tag: its place" '' vm1 prepare begin -
sed "s,<domain,<!DOCTYPE a [<!ENTITY b 'c'>]><domain," good >xml
expect 1 "ivgpu: domain vm1: its XML has a document type, which libvirt never writes" '' vm1 prepare begin -
sed "s,$uuid,nonsense," good >xml
expect 1 "ivgpu: domain vm1: its XML has no UUID" '' vm1 prepare begin -
expect 1 "ivgpu: domain a\\nb\\x1b[0m\\xe4: its XML has no UUID" '' $'a\nb\e[0m\xc3\xa4' prepare begin -
cp good xml

# The broker's error message becomes the hook's message, and neither of two VMs remains.
echo status >fails
echo 'ivgpu: no ivgpud answers at /run/ivgpu/ivgpud.status: No such file or directory' >says
expect 1 "ivgpu: domain vm1: no ivgpud answers at /run/ivgpu/ivgpud.status: No such file or directory; \`systemctl start \
ivgpud\` starts it" "$look" vm1 prepare begin -
echo add >fails
printf 'ivgpu: another VM is bad\nivgpu: VM vm1 is not served: a reason\n' >says
expect 1 "ivgpu: domain vm1: VM vm1 is not served: a reason" "$look"$'\n'"$add 1" vm1 prepare begin -
: >says
expect 1 "ivgpu: domain vm1: $work/prefix/bin/ivgpu ended with 1" "$look"$'\n'"$add 1" vm1 prepare begin -
rm fails
echo nonsense >status
expect 1 "ivgpu: domain vm1: ivgpud's status is not understood: it and ivgpu-tools are of different releases" "$look" \
  vm1 prepare begin -
mv prefix/bin/ivgpu fake
expect 1 "ivgpu: domain vm1: $work/prefix/bin/ivgpu cannot be run: No such file or directory; the package ivgpu-tools has it" \
  '' vm1 prepare begin -
mkdir no-python
for tool in cat sh; do ln -s "$(command -v $tool)" no-python/; done
hook_path=$work/no-python
expect 1 "ivgpu: this VM has ivgpu's device, and the hook that adds it needs python3: install it" '' vm1 prepare begin -
expect 0 '' '' vm1 release end -
expect 0 '' '' vm1 reconnect begin -
hook_path=

# ---- its keys are ivgpud's ------------------------------------------------------------------------------------------
"$build/bin/ivgpud" --print-config | sed '1,/^\[defaults\]/d' >defaults.toml
python3 -I - "$sources/tools/host/ivgpu-libvirt-hook" <<'PYTHON' || fail "the hook's keys are not those of ivgpud"
import importlib.machinery, importlib.util, re, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("hook", sys.argv[1])
hook = importlib.util.module_from_spec(importlib.util.spec_from_loader("hook", loader))
loader.exec_module(hook)
defaults = dict(re.findall(r"^([a-z_]+) = (.*)$", open("defaults.toml").read(), re.M))
form = lambda value: "boolean" if value in ("true", "false") else "text" if value.startswith('"') else "number"
for key, kind in hook.KEYS.items():
    assert key in defaults, f"ivgpud has no key {key}"
    assert form(defaults[key]) == {"list": "text"}.get(kind, kind), f"{key} is no {kind}"
PYTHON

for key in ${keys//,/}; do
  grep '^\.Cm ' "$sources/docs/man/ivgpu-libvirt-hook.8" | grep -qw -- "$key" || fail "the man page names no $key"
  grep -qF "\`$key\`" <(sed -n '/^The XML may have these \[keys of a VM\]/,/^$/p' "$sources/docs/host.md") || fail "docs/host.md names no $key"
done

# ---- a real ivgpud --------------------------------------------------------------------------------------------------
ln -s "$build/bin/ivgpu" prefix/bin/ivgpu
printf '[broker]\nruntime_dir = "%s"\ncgroups = "off"\n[gpu]\nlibrary = "%s/simgpu/libcuda.so.1"\n[defaults]\nspare = 0\n%s' \
  "$run" "$build" $'region_size = "128MiB"\nslots = 2\n' >ivgpud.toml
mkfifo ready
"$build/bin/ivgpud" --config ivgpud.toml --ready-fd 9 9>ready 2>log &
broker=$!
read -r _ <ready || fail "ivgpud does not start without a VM: $(cat log)"
domain "$(ours "slots='4'")" "$(device "$run/vm1.sock" "<msi vectors='3'/>")" >xml
expect 0 '' '' vm1 prepare begin -
[[ -S $run/vm1.sock ]] || fail "the hook adds no socket: $(cat log)"
[[ $(cat "$run/vms.d/vm1.toml") == "# for $owner"$'\n[vm.vm1]\nvectors = 3\nslots = 4' ]] || fail "$(cat "$run/vms.d/vm1.toml")"
sed -i "s/$uuid/99999999-2222-3333-4444-555555555555/" xml
expect 1 "ivgpu: domain vm2: VM vm1 is there already, for $owner: \`ivgpu remove vm1\` takes it away" '' vm2 prepare begin -
expect 0 '' '' vm2 release end -
[[ -S $run/vm1.sock ]] || fail "another domain's end removes the VM"
domain "$(ours "slots='4'")" "$(device "$run/vm1.sock")" >xml
expect 0 '' '' vm1 release end -
[[ ! -e $run/vm1.sock && ! -e $run/vms.d/vm1.toml ]] || fail "the hook leaves the VM: $(cat log)"
domain "$(ours "slots='99'")" "$(device "$run/vm1.sock")" >xml
expect 1 "ivgpu: domain vm1: $run/vms.d/vm1.toml: [vm.vm1] slots = 99: slots takes an integer from 1 to 64; the file is not \
taken" '' vm1 prepare begin -
[[ -z $(ls "$run/vms.d") ]] || fail "what was refused is kept"
kill "$broker"
wait "$broker" || fail "ivgpud ended with $?: $(cat log)"
broker=''
expect 1 "ivgpu: domain vm1: no ivgpud answers at $run/ivgpud.status: No such file or directory; \`systemctl start ivgpud\` \
starts it" '' vm1 prepare begin -
[[ ! -e $work/x ]] || fail "a name was run"
exit "$status"
