#!/usr/bin/env bash
# usage: bad_input.sh BUILD
# Tests bad input of each command. Each row has the exit code, a pattern of the one sentence on standard error, and the
# command, which must leave no file behind. tests/vm/bad_input.sh has the rows that need a guest's image.
set -uo pipefail
build=$1
# shellcheck source=tests/bad_input.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../bad_input.sh"

ivgpu=$build/bin/ivgpu ivgpud=$build/bin/ivgpud
echo text >text
printf 'slots = "x"\n' >bad.toml
printf '[vm.a]\n' >vm.toml
printf '[broker]\nruntime_dir = "%s/run"\n[gpu]\nlibrary = "/nowhere/libcuda.so.1"\n[vm.a]\n' "$PWD" >no-gpu.toml
printf '[broker]\nruntime_dir = "/proc/nowhere"\n[gpu]\nlibrary = "sim"\n[vm.a]\n' >no-folder.toml
printf '[broker]\nworker = "/nowhere/worker"\n[gpu]\nlibrary = "sim"\n[vm.a]\n' >no-worker.toml
printf '[gpu]\nlibrary = "sim"\n[vm.a]\nregion_sise = "1GiB"\n' >typo.toml
printf '[broker]\nmetrics = "0.0.0.0:9910"\n[gpu]\nlibrary = "sim"\n[vm.a]\n' >anybody.toml

one_sentence=1
#   code pattern                                        command
row 2 'run has no option --fast'                        "$ivgpu" run --fast true
row 2 'run needs a PROGRAM'                             "$ivgpu" run --gpu sim
row 127 'cannot run /nowhere/program: No such file'     "$ivgpu" run --gpu sim /nowhere/program
row 126 'cannot run ./text: Permission denied'          "$ivgpu" run --gpu sim ./text
row 3 "the GPU's libcuda is missing: /nowhere/libcuda"  "$ivgpu" run --gpu /nowhere/libcuda.so.1 true
row 3 'no worker starts: local: slot 0: '               "$ivgpu" run --gpu text true
row 3 'not start: its configuration: [vm.local] region' "$ivgpu" run --gpu sim --region-size 3MiB true
row 3 'region_size = "1GB": region_size takes a power'  "$ivgpu" run --gpu sim --region-size 1GB true
row 3 'not start: its configuration: [vm.local] slots'  "$ivgpu" run --gpu sim --extra-config bad.toml true
row 2 'File does not exist: /nowhere/extra'             "$ivgpu" run --extra-config /nowhere/extra true
row 2 'sim has no option --fast'                        "$ivgpu" sim --fast true
row 2 'sim needs a PROGRAM'                             "$ivgpu" sim
row 127 'cannot run /nowhere/program: No such file'     "$ivgpu" sim /nowhere/program
row 126 'cannot run ./text: Permission denied'          "$ivgpu" sim ./text
row 2 'vm has no option --fast'                         "$ivgpu" vm --fast
row 2 'File does not exist: /nowhere/vmlinuz'           "$ivgpu" vm --kernel /nowhere/vmlinuz -- true
row 2 'Directory does not exist: /nowhere'              "$ivgpu" vm --program-dir /nowhere -- true
row 2 'cpus'                                            "$ivgpu" vm --cpus 65 -- true
row 2 'timeout'                                         "$ivgpu" vm --timeout 0 -- true
row 2 'transport'                                       "$ivgpu" vm --transport carrier -- true
row 2 '--vsock needs --transport pmem'                  "$ivgpu" vm --vsock -- true
if [[ ! -e /dev/vhost-vsock ]]; then
  row 3 "has no /dev/vhost-vsock: 'modprobe vhost_vsock'" "$ivgpu" vm --transport pmem --vsock -- true
fi
# A cache folder that another user may have filled: root's, or a folder that root has given to another user.
anothers=/
if ((EUID == 0)); then mkdir anothers && chown 65534 anothers && anothers=anothers; fi
row 3 "is another user's; XDG_CACHE_HOME names"         "$build/share/ivgpu/guest-image" --output $anothers --guest-lib "$build/guest"
mkdir -m 777 open-to-all
row 3 "any user may write to open-to-all"               "$build/share/ivgpu/guest-image" --output open-to-all --guest-lib "$build/guest"
row 2 'NAME=VALUE'                                      "$ivgpu" vm --env word -- true
# An unknown log level is reported once: by the guest library, or by the command if no guest library is loaded.
for level in loud WARN ' warn' 3; do
  row 0 "IVGPU_LOG: there is no level $level; it takes off, error"  env IVGPU_LOG="$level" "$ivgpu" sim true
done
row 0 'IVGPU_LOG: there is no level loud'               env IVGPU_LOG=loud "$ivgpu" run --gpu sim "$build/programs/vector_add" --n 1000
one_sentence=3  # the program has two of these sentences
row 0 'IVGPU_LOG: there is no level loud'               env IVGPU_LOG=loud "$ivgpu" coverage --gpu sim "$build/programs/vector_add" --n 1000
one_sentence=1
row 2 'status has no option --fast'                     "$ivgpu" status --fast
row 3 'no ivgpud answers at /nowhere/ivgpud.status'     "$ivgpu" status --runtime-dir /nowhere
row 2 'nonsense not in {name,calls,submitted,'          "$ivgpu" top --sort nonsense
row 3 'no ivgpud answers at /nowhere/ivgpud.status'     "$ivgpu" top --once --runtime-dir /nowhere
row 2 'letters, digits'                                 "$ivgpu" add 'a b'
row 3 'no ivgpud answers at /nowhere/ivgpud.status'     "$ivgpu" add vm1 --runtime-dir /nowhere
row 1 'VM vm1 was not added by'                         "$ivgpu" remove vm1 --runtime-dir /nowhere
row 2 'reload takes no now'                             "$ivgpu" reload now
row 3 'no ivgpud answers at /nowhere/ivgpud.control'    "$ivgpu" reload --runtime-dir /nowhere
row 2 'bench has no option --fast'                      "$ivgpu" bench --fast
row 2 'nonsense not in {latency,kernels,copy,memory,start,sessions,share}'   "$ivgpu" bench nonsense
row 2 '/nowhere/a.json cannot be read'                  "$ivgpu" bench latency --quick --against /nowhere/a.json
row 2 'text is no JSON of ivgpu bench'                  "$ivgpu" bench latency --quick --against text
row 2 '/nowhere/a.svg cannot be written'                "$ivgpu" bench latency --quick --plot /nowhere/a.svg
row 3 "the GPU's libcuda is missing: /nowhere/libcuda"  "$ivgpu" bench latency --quick --gpu /nowhere/libcuda.so.1
row 2 '0.1'                                             "$ivgpu" status --watch 0
row 2 'trace has no option --fast'                      "$ivgpu" trace --fast
row 3 'no ivgpud answers at /nowhere/ivgpud.trace'      "$ivgpu" trace --runtime-dir /nowhere
row 2 '/nowhere/x cannot be written: No such file'      "$ivgpu" trace --gpu sim --perfetto /nowhere/x -- true
row 2 '--gpu needs a PROGRAM'                           "$ivgpu" trace --gpu sim
row 127 'cannot run /nowhere/program: No such file'     "$ivgpu" trace --gpu sim -- /nowhere/program
row 2 'there is no command nonsense; see ivgpu --help'  "$ivgpu" nonsense
row 2 'there is no option --fast; see --help'           "$ivgpud" --fast
row 2 '--config FILE is needed'                         "$ivgpud"
row 2 '/nowhere/a.toml: cannot be read'                 "$ivgpud" --config /nowhere/a.toml
row 2 "has no key 'region_sise'"                        "$ivgpud" --config typo.toml
row 2 '/nowhere/libcuda.so.1'                           "$ivgpud" --config no-gpu.toml
row 2 'worker: /nowhere/worker: No such file'           "$ivgpud" --config no-worker.toml
row 2 'runtime_dir = "/proc/nowhere" cannot be made'    "$ivgpud" --config no-folder.toml
row 2 'metrics = "0.0.0.0:9910": metrics takes "" for'  "$ivgpud" --config anybody.toml
row 2 'descriptor 99 is not open'                       "$ivgpud" --config no-folder.toml --ready-fd 99
row 2 'descriptor 98 is not open'                       "$ivgpud" --config no-folder.toml --last-status-fd 98
row 2 "'--fast 1' is no option of a worker"             "$build/bin/ivgpu-worker" --fast 1
row 2 'are needed; ivgpud starts workers'               "$build/bin/ivgpu-worker"

# A user without permission cannot read the file, but root can. Root therefore becomes the user nobody for this row. If
# that user cannot reach the build, there is nothing to test.
echo x >unreadable
chmod 000 unreadable
chmod 755 "$work"
if ((EUID != 0)); then as_nobody=(); else as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
if "${as_nobody[@]}" test -x "$ivgpud"; then
  row 2 'unreadable: cannot be read'                    "${as_nobody[@]}" "$ivgpud" --config unreadable
  mkdir -m 000 locked
  row 3 'this user may not talk to ivgpud at locked/'   "${as_nobody[@]}" "$ivgpu" status --runtime-dir locked
  row 126 'cannot run ./unreadable: Permission denied'  "${as_nobody[@]}" "$ivgpu" sim ./unreadable
fi

# The commands use /tmp if TMPDIR is no writable folder. A TMPDIR that is too long for a socket's path is no mistake.
program=("$build/programs/vector_add" --n 1000)
mkdir relative "$work/$(printf 'x%.0s' {1..80})"
for command in 'run --gpu sim' 'trace --gpu sim --perfetto new.trace --'; do
  read -ra words <<<"$command"
  row 0 '/nowhere does not serve: No such file or directory; taking /tmp' env TMPDIR=/nowhere "$ivgpu" "${words[@]}" "${program[@]}"
  row 0 'text does not serve: Not a directory; taking /tmp'               env TMPDIR=text "$ivgpu" "${words[@]}" "${program[@]}"
  row 0 ''  env TMPDIR=relative "$ivgpu" "${words[@]}" "${program[@]}"
  row 0 ''  env TMPDIR="$work/$(printf 'x%.0s' {1..80})" "$ivgpu" "${words[@]}" "${program[@]}"
done
[[ -z $(find . -name 'ivgpu-*') ]] || fail "what was made is left: $(find . -name 'ivgpu-*')"

# ivgpu and its broker raise the soft limit of file sizes for themselves. If the hard limit is too low, the message
# names it.
soft=(bash -c 'ulimit -S -f 0; exec "$0" "$@"') hard=(bash -c 'ulimit -f 0; exec "$0" "$@"')
middle=(bash -c 'ulimit -f 1024; exec "$0" "$@"')  # KiB
row 0 ''                                                "${soft[@]}" "$ivgpu" run --gpu sim "${program[@]}"
row 0 ''                                                "${soft[@]}" "$ivgpu" run --gpu sim bash -c '[[ $(ulimit -S -f) == 0 ]]'
row 2 'limited.trace cannot be written: File too large' "${soft[@]}" "$ivgpu" trace --gpu sim --perfetto limited.trace -- "${program[@]}"
row 3 'File too large; `ulimit -f` bounds'              "${hard[@]}" "$ivgpu" run --gpu sim "${program[@]}"
row 3 'File too large; `ulimit -f` bounds'              "${middle[@]}" "$ivgpu" run --gpu sim "${program[@]}"

# A command whose output cannot be written fails.
no_room=(bash -c 'exec "$0" "$@" >/dev/full')
row 3 'the output cannot be written: No space'          "${no_room[@]}" "$ivgpu" --help
row 3 'the output cannot be written: No space'          "${no_room[@]}" "$ivgpu" check
row 3 'the output cannot be written: No space'          "${no_room[@]}" "$ivgpu" coverage --static "$ivgpu"
row 3 'the output cannot be written: No space'          "${no_room[@]}" "$ivgpu" coverage --static --json "$ivgpu"
row 2 '/dev/full cannot be written: No space'           "$ivgpu" trace --gpu sim --perfetto /dev/full -- true

# An incomplete file is not left behind, and an older file stays unchanged.
echo older >older.json
row 3 'no ivgpud answers'                               "$ivgpu" trace --runtime-dir /nowhere --perfetto older.json
row 127 'cannot run /nowhere/program'                   "$ivgpu" trace --gpu sim --perfetto new.json -- /nowhere/program
[[ $(<older.json) == older ]] || fail "an older trace is gone"
compgen -G '*.json*' | grep -qvx older.json && fail "a trace that did not begin leaves a file"

cat >endless.c <<'C'
#include <dlfcn.h>
#include <stddef.h>
typedef int call();
int main(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
  unsigned long long memory = 0;
  ((call*)dlsym(cuda, "cuInit"))(0);
  ((call*)dlsym(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0);
  ((call*)dlsym(cuda, "cuCtxSetCurrent"))(context);
  call* allocate = (call*)dlsym(cuda, "cuMemAlloc_v2");
  int (*free)(unsigned long long) = (int (*)(unsigned long long))dlsym(cuda, "cuMemFree_v2");
  while (allocate(&memory, (size_t)4096) == 0 && free(memory) == 0) continue;
  return 1;
}
C
cc -w -o endless endless.c -ldl || fail "no compiler"
stops_reading "$ivgpu" trace --gpu sim -- ./endless
finish 30
