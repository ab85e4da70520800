#!/usr/bin/env bash
# usage: bench_runs.sh BENCH_RUNS
# Tests how tools/dev/bench-runs combines several runs. A fake `ivgpu` prints one prepared table after another.
# shellcheck disable=SC2016  # Markdown's code marks are not commands
set -uo pipefail
runs=$1
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../patient.sh"
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $1"; status=1; }

mkdir "$work/bin"
cat >"$work/bin/ivgpu" <<TEXT
#!/usr/bin/env bash
echo "\$*" >>"$work/told"
cat "$work/run\$(grep -c '' "$work/told")"
TEXT
chmod +x "$work/bin/ivgpu"

# run OPTION...: stores the output in $output, and the exit code in $code.
run() {
  : >"$work/told"
  output=$(TMPDIR=$work "$runs" --build "$work" "$@" 2>&1 </dev/null)
  code=$?
}
head='native p50 | p99 | worst | ivgpu p50 | p99 | worst | ratio p50 | p99 | unit |'
# row NAME NATIVE IVGPU UNIT [P99_NATIVE P99_IVGPU]
row() { echo "| $1 | $2 | ${5:-1} | 1 | $3 | ${6:-1} | 1 | 1 | 1 | $4 |"; }
says() { [[ $output == *"$1"* ]] || fail "'$1' is not in: $output"; }

# The same label in two groups names two different figures.
for run in 1 2; do
  {
    echo "| copy | $head"
    row 'pinned_h2d 4 MiB' 10 $((run * 5)) GB/s
    echo "| memory | $head"
    row 'pinned_h2d 4 MiB' 20 20 GB/s
    row 'registered_h2d 4 MiB' 20 $((16 + run * 2)) GB/s
    row 'zero_copy_read 1 MiB' 50 1 GB/s
    row 'managed_read 1 MiB' 400 $((40 + run * 10)) GB/s
    row pool_pair - 7 us
  } >"$work/run$run"
done
run --runs 2 copy memory -- --gpu sim
[[ $code == 0 ]] || fail "exit code $code: $output"
[[ $(sort -u "$work/told") == 'bench copy memory --idle 0.2 --markdown --gpu sim' ]] || fail "it ran: $(cat "$work/told")"
says '| `pinned_h2d 4 MiB` | 10.000 | 7.500 | GB/s | 0.75 | 0.50 | 1.00 | 1.000 | 1.000 | 1.00 | 1.00 | 1.50 |'
says '| `pinned_h2d 4 MiB` | 20.000 | 20.000 | GB/s | 1.00 | 1.00 | 1.00 |'
says '| ivgpu registered_h2d to ivgpu pinned_h2d | 0.950 | 0.900 | 1.000 |'
says '| ivgpu managed_read to native zero_copy_read | 1.100 | 1.000 | 1.200 |'
says '| `pool_pair` | - | 7.000 | us | - | - | - | - | 1.000 | - | - | 1.00 |'
[[ $output != *registered_read* ]] || fail "a figure without samples is compared: $output"

# Of times the largest median is the worst, and the median of an even number of processes lies between the middle two.
medians=(0 9 4 3 5)
for run in 1 2 3 4; do
  {
    echo "| kernels | $head"
    row back_to_back 2 "${medians[run]}" us 4 $((run * 4))
    row worker_back_to_back - "$run" us - 9
  } >"$work/run$run"
done
run --runs 4 kernels
[[ $(sort -u "$work/told") == 'bench kernels --idle 0.2 --markdown' ]] || fail "it ran: $(cat "$work/told")"
says '| 4 runs | native | ivgpu |'
says '| `back_to_back` | 2.000 | 5.250 | us | 2.62 | 1.50 | 4.50 | 4.000 | 10.000 | 2.50 | 1.00 | 2.00 |'
says '| `worker_back_to_back` | - | 2.500 | us | - | - | - | - | 9.000 | - | - | 1.60 |'

echo "| latency | $head" >"$work/run1"
row launch_issue 4 1 us >>"$work/run1"
run --runs 1
[[ $(cat "$work/told") == 'bench latency --idle 0.2 --markdown' ]] || fail "without a group it ran: $(cat "$work/told")"
says '| `launch_issue` | 4.000 | 1.000 | us | 0.25 | 0.25 | 0.25 |'
[[ $output != *'of one run'* ]] || fail "a second table without the group memory: $output"

# The busy processes run beside ivgpu, and end with the script, however the script ends.
cp "$work/bin/ivgpu" "$work/plain"
cat >>"$work/bin/ivgpu" <<TEXT
cat /proc/[0-9]*/stat 2>/dev/null |  # processes may end meanwhile
  awk -v parent="\$PPID" -v self="\$\$" '\$4 == parent && \$1 != self { print \$1 }' >"$work/busy"
[[ ! -e "$work/deadly" ]] || kill -9 "\$PPID"
TEXT
# shellcheck disable=SC2317  # wait_for calls it
gone() {
  local process
  while read -r process; do
    [[ ! -e /proc/$process || $(sed 's/.*) //' "/proc/$process/stat" 2>/dev/null) == [ZX]* ]] || return 1
  done <"$work/busy"
}
for deadly in '' deadly; do
  [[ ! $deadly ]] || touch "$work/deadly"
  run --runs 1 --load 3
  [[ $(grep -c . "$work/busy") == 3 ]] || fail "not three busy processes: $(cat "$work/busy")"
  if [[ $deadly ]]; then
    [[ $code == 137 ]] || fail "a script that is killed: exit code $code"
  else
    says '| 1 runs, 3 busy processes | native |'
  fi
  wait_for gone || fail "busy processes outlive the script: $(cat "$work/busy")"
done
cp "$work/plain" "$work/bin/ivgpu"

rm "$work/run2"
run --runs 2
[[ $code == 1 && $output == *'run 2 failed'* ]] || fail "a run that fails: exit code $code: $output"
run nonsense
[[ $code == 2 && $output == usage:* ]] || fail "nonsense: exit code $code: $output"
for load in 0 -1 many 1000 ''; do
  run --load "$load"
  [[ $code == 2 && $output == usage:* && ! -s $work/told ]] || fail "--load '$load': exit code $code: $output"
done
exit "$status"
