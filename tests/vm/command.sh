#!/usr/bin/env bash
# usage: command.sh BUILD
# Tests what `ivgpu vm` promises about a command: separate and exact output and errors, exit code, environment, folders,
# and the end of a hanging command. Programs must compute the same with each device, and the output must name the
# guest's device.
set -euo pipefail
build=$1
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../patient.sh"
ivgpu=$build/bin/ivgpu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }

mkdir "$work/mine"
head -c 300000 /dev/urandom >"$work/mine/bytes"

# The transports of the guests below. Debian may lack the modules of a bundle's kernel.
ways=(plain pmem) code=0
"$build/share/ivgpu/guest-image" --output "$build/guest-image" --guest-lib "$build/guest" --programs "$build/programs" \
  --check "$build/bin/ivgpu-check" --way pmem >/dev/null || code=$?
if [[ $code == 4 && ${IVGPU_BUNDLE:-} ]]; then
  echo "no modules of the bundle's kernel: pmem is left out"
  ways=(plain)
fi
echo 'slots = 2' >"$work/extra"
declare -A booted
for way in "${ways[@]}"; do
  "$ivgpu" vm --gpu sim --transport "$way" --extra-config "$work/extra" --region-size 256M --steps --timeout 500 -- \
    'vector_add --n 1000; ivgpu-check --guest >&2; IVGPU_LOG=info vector_add --n 1000 >/dev/null' \
    >"$work/$way.out" 2>"$work/$way.err" &
  booted[$way]=$!
done

code=0
"$ivgpu" vm --gpu sim --program-dir "$work/mine" --env "WORD=it's here" --timeout 500 -- \
  '[ "$IVGPU_HOST_PATIENCE" = 600 ] || exit 8; cat /programs/mine/bytes; echo "$WORD" >&2; dmesg -n 8; echo noise >/dev/kmsg; exit 7' \
  >"$work/out" 2>"$work/err" || code=$?
[[ $code == 7 ]] || fail "exit code $code instead of 7"
cmp "$work/mine/bytes" "$work/out" || fail "the output is not what the command wrote"
[[ $(cat "$work/err") == "it's here" ]] || fail "the errors are not what the command wrote: $(cat "$work/err")"

# Repeats with more time if the guest has not reached the command.
for seconds in 20 80 320; do
  code=0
  "$ivgpu" vm --gpu sim --timeout $seconds -- 'echo begun; sleep 1000' >"$work/out" 2>"$work/err" || code=$?
  [[ $code == 124 ]] || fail "exit code $code instead of 124 after the time ran out"
  grep -q "^ivgpu: the command did not end within $seconds s\$" "$work/err" || fail "no word about the time that ran out"
  [[ ! -s $work/out ]] || break
done
[[ $(cat "$work/out") == begun ]] || fail "what the command wrote before its end is lost"

"$ivgpu" sim "$build/programs/vector_add" --n 1000 >"$work/direct"
for way in "${ways[@]}"; do
  wait "${booted[$way]}" || fail "$way: exit code $?"
  cmp "$work/direct" "$work/$way.out" || fail "$way: the program computes something else"
done
# said WAY PATTERN...: expects each pattern in a line of the guest's check, of its library, or of the steps.
said() {
  local way=$1 pattern
  shift
  for pattern in "$@"; do grep -qE "$pattern" "$work/$way.err" || { fail "$way: nothing says: $pattern"; cat "$work/$way.err"; }; done
}
said plain "guest's device: ivshmem-plain of 256 MiB, doorbells by bits in memory\$" '^ok +region +256 MiB in 2 slots, ivshmem-plain$' '^ok +broker ' \
  '^ok +nvml +/lib/ivgpu/libnvidia-ml.so.1 is the guest library$'
[[ ${ways[*]} == plain ]] || said pmem "guest's device: virtio-pmem of 258 MiB, doorbells by 2 ports of virtio-serial\$" '^ok +region +256 MiB in 2 slots, devdax$' \
  '^ok +broker ' '^ok +doorbells +2 doorbell channels' '^ivgpu: /dev/vport[0-9]+p1 is the doorbell channel$'
exit "$status"
