#!/usr/bin/env bash
# usage: bench.sh IVGPU
# Tests `ivgpu bench` on the simulated GPU from end to end: its output and files, a failing comparison, bad input.
set -uo pipefail
ivgpu=$1
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../patient.sh"
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAIL: $1"; status=1; }

# expect CODE PATTERN WORDS...: checks the exit code, and a pattern of the output. The output is in $output.
expect() {
  local code=$1 pattern=$2 got
  shift 2
  output=$("$ivgpu" bench "$@" 2>&1 </dev/null)
  got=$?
  [[ $got == "$code" && $output =~ $pattern ]] ||
    fail "ivgpu bench $*: exit code $got (wanted $code), wanted to read '$pattern' in: $output"
}
# Same, but the output must be exactly one sentence.
refuses() {
  expect 2 "$@"
  (($(wc -l <<<"$output") == 1)) || fail "not one sentence: $output"
}

expect 0 'Usage: ivgpu bench' --help
expect 2 'fastness' fastness
expect 2 'watch-the-stars' --watch-the-stars
expect 2 'margin' --margin much
expect 2 'idle' --idle 0
echo 'not at all' >"$work/text.json"
refuses 'nowhere/old.json cannot be read: No such file or directory' --against /nowhere/old.json
refuses 'cannot be read: Is a directory' --against "$work"
refuses 'is no JSON of ivgpu bench' --against "$work/text.json"
refuses '/nowhere/a.svg cannot be written: No such file or directory' --plot /nowhere/a.svg
refuses 'cannot be written: Is a directory' --json "$work"
output=$(PATH=/nowhere "$ivgpu" bench --gpu sim --plot "$work/a.svg" 2>&1 </dev/null)
[[ $? == 3 && $output == 'ivgpu: cannot run python3: No such file or directory' ]] || fail "without python3: $output"
refuses 'the simulated one has no MPS' --gpu sim --mps sessions
refuses 'share is measured alone' --gpu sim share copy
refuses "there is no mix '9 wait'" --gpu sim share --mix '9 wait'
refuses '--mix is for share' --gpu sim copy --mix '4 wait'
for only_for_share in '--round 2' '--no-alone'; do
  # shellcheck disable=SC2086  # an option and its value
  refuses '--pairs, --round and --no-alone are for share' --gpu sim copy $only_for_share
done
expect 3 'libcuda is missing: /nowhere/libcuda' --gpu /nowhere/libcuda.so.1 start
"$ivgpu" bench start --gpu sim --quick >/dev/full 2>"$work/said"
[[ $? == 3 && $(cat "$work/said") == 'ivgpu: the output cannot be written: No space left on device' ]] ||
  fail "a full standard output: $(cat "$work/said")"
rm "$work/said"
# The refused commands left no file behind.
[[ $(ls "$work") == text.json ]] || fail "something is left behind: $(ls "$work")"

# Loads in four VMs, natively and under both policies. The load alone is measured first, once. The row then has the
# ratio to the load alone, the share by weight, and Jain's index before its last number.
expect 0 '\| 4 wait \| wait \|( [0-9.]+ \|){16} [01][.0-9]* \| [0-9.]+ \|' --gpu sim --quick share --mix '4 wait' --round 0.1 --json "$work/share.json" --plot "$work/share.svg"
[[ $output =~ '| wait | wait |'[^$'\n']*' | - | 1.000 | 1.000 | '[0-9.]*' |'$'\n''| 4 wait | wait |' ]] || fail "not alone, and then in four VMs: $output"
grep -q '"leases"' "$work/share.json" || fail "the JSON of share has no leases"
grep -q '>4 wait: wait<' "$work/share.svg" || fail "the picture of share has no row: $(cat "$work/share.svg")"
rm -f "$work/share.json" "$work/share.svg"
# VMs of different weights have a row each; the load is not measured alone.
expect 0 '\| wait, weight 4 \|' --gpu sim --quick share --no-alone --mix '3 wait, weights 1 2 4' --round 0.1 -v
[[ $(grep -cE '^\| 3 wait, weights 1 2 4 \| wait(, weight [24])? \|' <<<"$output") == 3 && $output != *'| wait | wait |'* ]] ||
  fail "not three VMs and nothing else: $output"

# Loads that run in PyTorch are left out if PyTorch is missing. Otherwise their program gets the same start signal as
# ivgpu-measure.
mkdir "$work/bin"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/python3"
chmod +x "$work/bin/python3"
PATH=$work/bin:$PATH "$ivgpu" bench --gpu sim share --mix '2 torch train' --plot "$work/a.svg" >"$work/said" 2>&1
[[ $? == 3 && ! -e $work/a.svg && $(cat "$work/said") == *'ivgpu: the picture was not drawn' ]] || fail "a script that fails: $(cat "$work/said")"
grep -q 'left out: 2 torch train: python3 has no torch' "$work/said" || fail "without torch: $(cat "$work/said")"
cat >"$work/bin/python3" <<'SH'
#!/bin/sh
case $1 in
-c) exit 0 ;;
*/torch_load.py)
  test -r "$1" && test "$2" = train || exit 7
  echo ready
  while read -r _; do echo "samples train 0 240 4000 3900 4500"; done
  ;;
esac
SH
expect_torch=$(PATH=$work/bin:$PATH "$ivgpu" bench --gpu sim --quick share --mix '2 torch train' 2>&1)
[[ $expect_torch == *'| 2 torch train | torch train | 240.0 |'* ]] || fail "with a torch that is played: $expect_torch"
rm -r "$work/bin" "$work/said"

expect 0 'say nothing about a GPU' --gpu sim --quick --json "$work/run.json" --plot "$work/run.svg"
for word in back_to_back_8_threads worker_launch_synchronize launch_issue kernels_back_to_back empty_call idle_host_processor idle_own_processor call_after_idle 'pageable_d2h 1 MiB' \
  register_4MiB unregister_4MiB \
  'pinned_h2d 4 MiB' 'pinned_d2h 4 MiB' 'registered_h2d 4 MiB' 'registered_d2h 4 MiB' 'zero_copy_read 1 MiB' 'registered_read 1 MiB' \
  'managed_read 1 MiB' texture_kernel vmm_granularity vmm_reserve vmm_create vmm_map vmm_set_access vmm_unmap vmm_release \
  vmm_address_free pool_allocate pool_free pool_pair 'first_result x4' 'launch_synchronize x8' 'kernels x2' 'spin_us 50' 'each session' '  native  '; do
  [[ $output == *"$word"* ]] || fail "'$word' is not in: $output"
done
[[ $output != *-nan* && $output != *inf* ]] || fail "a number is none: $output"
[[ $(head -c 5 "$work/run.svg") == '<svg ' ]] || fail "no picture was drawn"
[[ $output != *$'\r'* ]] || fail "progress was shown where there is no terminal"

# Both sides measure each figure of the group kernels, and only ivgpu has a worker. The run can then be compared.
expect 0 'call_stream_wait_event' --gpu sim --quick --markdown kernels --json "$work/kernels.json"
[[ $output != *'Left out'* && $(grep -cE '^\| [a-z_0-9A-Z]+( \| [0-9.]+){8} \| us \|$' <<<"$output") == 23 &&
  $(grep -cE '^\| worker_[a-z_]+( \| -){3}( \| [0-9.]+){3}( \| -){2} \| us \|$' <<<"$output") == 2 ]] ||
  fail "not 23 figures of the group kernels and 2 of the worker: $output"
refuses 'kernels.json has no figure of those that are asked for' copy --gpu sim --against "$work/kernels.json"
sed -E 's/("p50": )([0-9.e+-]+)/\10.0001/' "$work/kernels.json" >"$work/fast-kernels.json"
expect 1 'worker_back_to_back .*TOO MUCH' --gpu sim --quick kernels --against "$work/fast-kernels.json"
rm "$work/kernels.json" "$work/fast-kernels.json"

# Both sides measure each figure of the group memory. Nothing is left out if the memory suffices, and some figures are left out
# if it does not.
expect 0 'pool_pair' --gpu sim --quick --markdown memory
[[ $output != *'Left out'* && $(grep -cE '^\| [a-z_0-9A-Z]+( [0-9]+ MiB)?( \| [0-9.]+){8} \| (us|ms|GB/s) \|$' <<<"$output") == 21 ]] ||
  fail "not 21 figures of the group memory: $output"
[[ $output =~ 'texture_kernel |'[^$'\n']*' ms |' && $output =~ 'vmm_map |'[^$'\n']*' us |' ]] || fail "other units: $output"
expect 0 'Left out: registered_h2d, ivgpu: cuMemHostRegister' --gpu sim --quick --region-size 256MiB memory

sed 's/"group": "copy"/"group": "else"/' "$work/run.json" >"$work/no-copy.json"
refuses 'no-copy.json has no figure of those that are asked for' copy --gpu /nowhere/libcuda.so.1 --against "$work/no-copy.json"
# Compared with tiny ratios every figure is worse. Compared with ratios that no machine reaches, no figure is worse.
sed -E 's/("p50": )([0-9.e+-]+)/\10.0001/' "$work/run.json" >"$work/fast.json"
# large SIDE: makes the figures of that side large.
large() {
  awk -v side="$1" '/"(native|ivgpu)": \{/ { large = index($0, side) } large { gsub(/"p50": 0.0001/, "\"p50\": 1000000") } { print }' \
    "$work/fast.json"
}
large native >"$work/faster.json"
large ivgpu >"$work/slower.json"
expect 0 'Nothing is worse' --gpu sim --quick latency --idle 0.2 --against "$work/slower.json"
expect 1 'TOO MUCH' --gpu sim --quick --markdown --idle 0.2 latency --against "$work/faster.json"
[[ $output == *'| launch_issue |'* ]] || fail "no Markdown: $output"
exit "$status"
