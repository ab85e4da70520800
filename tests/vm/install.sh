#!/usr/bin/env bash
# usage: install.sh SOURCES BUILD
# Uses the files that `cmake --install` puts below a prefix while the build tree is hidden: a program, a VM, a broker
# and its status. No installed file may contain the path of the build tree or of the sources.
set -uo pipefail
sources=$1 build=$2
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../patient.sh"
work=$(mktemp -d)
prefix=$work/prefix
broker=''
# shellcheck disable=SC2317
finish() {
  if [[ $broker ]]; then kill "$broker" 2>/dev/null; wait "$broker"; fi
  rm -rf "$work"
}
trap finish EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }

cmake --install "$build" --prefix "$prefix" --strip >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
mkdir "$work/programs"
cp "$build/programs/vector_add" "$work/programs/"
# The guest's kernel is downloaded once; the rest of the cache is built from the installed files.
mkdir -p "$work/cache/ivgpu"
fetched=$build/guest-image
[[ -e $fetched/vmlinuz ]] || fetched=${XDG_CACHE_HOME:-$HOME/.cache}/ivgpu  # if the build tree belongs to another user
[[ ${IVGPU_BUNDLE:-} ]] || cp "$fetched"/{vmlinuz,busybox} "$work/cache/ivgpu/"
export XDG_CACHE_HOME=$work/cache

# away COMMAND...: runs with an empty folder mounted over the build tree. If the kernel permits no mount namespace, only
# the last test checks that no file contains the build tree's path.
apart=(unshare -m)
((EUID == 0)) || apart=(unshare -rm)
# shellcheck disable=SC2016
apart+=(sh -c 'mount -t tmpfs none "$1" && shift && exec "$@"' away "$build")
"${apart[@]}" true 2>/dev/null || apart=(env)
away() { "${apart[@]}" "$@"; }
[[ ${apart[0]} == env || -z $(away ls -A "$build") ]] || fail "the build tree is still in sight"

# expect CODE PATTERN COMMAND...: checks the exit code, and a line of output or errors.
expect() {
  local code=$1 pattern=$2 output got
  shift 2
  output=$(cd "$work" && away "$@" 2>&1 </dev/null)
  got=$?
  # shellcheck disable=SC2053
  if [[ $got != $code ]] || ! grep -qE -- "$pattern" <<<"$output"; then
    fail "$*: exit code $got (wanted $code), wanted to read: $pattern"$'\n'"$output"
  fi
}

sum='^vector_add: float, 1000 elements, checksum [0-9a-f]{16}$'
expect 0 "$sum" "$prefix/bin/ivgpu" run --gpu sim "$work/programs/vector_add" --n 1000
expect 0 "$sum" "$prefix/bin/ivgpu" sim "$work/programs/vector_add" --n 1000
expect 0 '^cuInit +1 +local$' "$prefix/bin/ivgpu" coverage --gpu sim "$work/programs/vector_add" --n 1000
expect 0 ' cuLaunchKernel$' "$prefix/bin/ivgpu" trace --gpu sim --summary -- "$work/programs/vector_add" --n 1000
expect 0 '"name": ?"launch' sh -c '"$@" && cat bench.json' bench "$prefix/bin/ivgpu" bench --gpu sim --quick --json bench.json latency
expect 0 "$sum" "$prefix/bin/ivgpu" vm --gpu sim --timeout 500 --program-dir "$work/programs" -- vector_add --n 1000
[[ $(find "$work/cache/ivgpu" -name 'initramfs-*.cpio') ]] || fail "the guest's image is not in the user's cache"

# Runs the installed broker as a service would.
printf '[broker]\nruntime_dir = "%s/run"\n[gpu]\nlibrary = "sim"\n[vm.local]\nregion_size = "256MiB"\nslots = 2\n' "$work" >"$work/ivgpud.toml"
expect 0 ': good: 1 VM' "$prefix/bin/ivgpud" --check --config "$work/ivgpud.toml"
mkfifo "$work/ready"
"${apart[@]}" "$prefix/bin/ivgpud" --config "$work/ivgpud.toml" --ready-fd 9 9>"$work/ready" 2>"$work/log" &
broker=$!
read -r _ <"$work/ready" || fail "the installed ivgpud does not start: $(cat "$work/log")"
expect 0 '^VM local' "$prefix/bin/ivgpu" status --runtime-dir "$work/run"
expect 0 "$sum" env IVGPU_REGION="$work/run/local.sock" "$prefix/bin/ivgpu" run "$work/programs/vector_add" --n 1000
expect '[01]' "^ok +broker +ivgpud .* answers at $work/run" "$prefix/bin/ivgpu" check --host --runtime-dir "$work/run"

# Checks man pages and other files.
for page in "$sources"/docs/man/*; do
  [[ -e $prefix/share/man/man${page##*.}/$(basename "$page") ]] || fail "the man page $(basename "$page") is not installed"
done
for file in share/bash-completion/completions/{ivgpu,ivgpud} share/doc/ivgpu/{README.md,SECURITY.md,CHANGELOG.md,LICENSE} \
  share/doc/ivgpu/docs/{guest.md,configuration.md,design/005-jail-layers.md} \
  share/doc/ivgpu/qemu-config/{README.md,doorbell.xml,plain-file.args} lib/systemd/system/{ivgpud,ivgpu-guest}.service \
  lib/sysusers.d/ivgpu.conf lib/tmpfiles.d/ivgpu.conf libexec/ivgpu/ivgpu-guest-setup share/ivgpu/host/ivgpud.toml \
  lib/ivgpu/guest/{libcuda,libnvidia-ml}.so.1 share/ivgpu/guest/{60-ivgpu.rules,60-ivgpu-module.rules,ivgpu.conf,README}; do
  [[ -e $prefix/$file ]] || fail "$file is not installed"
done
grep -qx "ExecStart=$prefix/bin/ivgpud --config /etc/ivgpu/ivgpud.toml" "$prefix/lib/systemd/system/ivgpud.service" ||
  fail "the unit starts something else"
[[ ! -e $prefix/share/doc/ivgpu/docs/man ]] || fail "the man pages lie among the documents, too"

# No installed file may contain the path of either tree, as a library search path or a compiled-in path.
while IFS= read -r -d '' file; do
  if readelf -d "$file" 2>/dev/null | grep -E 'RPATH|RUNPATH'; then fail "$file has a search path"; fi
done < <(find "$prefix" -type f -print0)
for tree in "$build" "$sources"; do
  named=$(grep -rlF -- "$tree" "$prefix")
  [[ -z $named ]] || fail "$tree is named in"$'\n'"$named"
done

# The error must name a missing file with its path.
rm "$prefix/bin/ivgpu-worker"
expect 3 "worker: $prefix/bin/ivgpu-worker: No such file" "$prefix/bin/ivgpu" run --private --gpu sim true
rm "$prefix/bin/ivgpud"
expect 3 "the broker ivgpud is missing: $prefix/bin/ivgpud" "$prefix/bin/ivgpu" run --private --gpu sim true
rm "$prefix/lib/ivgpu/simgpu/libcuda.so.1"
expect 3 "the simulated GPU is missing: $prefix/lib/ivgpu/simgpu/libcuda.so.1" "$prefix/bin/ivgpu" sim true
exit "$status"
