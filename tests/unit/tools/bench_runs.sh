#!/usr/bin/env bash
# usage: bench_runs.sh BENCH_RUNS
# Tests how tools/dev/bench-runs combines several runs. A fake `ivgpu` prints one prepared table after another.
# shellcheck disable=SC2016  # Markdown's code marks are not commands
set -uo pipefail
runs=$1
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
  output=$("$runs" --build "$work" "$@" 2>&1 </dev/null)
  code=$?
}
head='native p50 | p99 | worst | ivgpu p50 | p99 | worst | ratio p50 | p99 | unit |'
row() { echo "| $1 | $2 | 1 | 1 | $3 | 1 | 1 | 1 | 1 | $4 |"; }
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
says '| `pinned_h2d 4 MiB` | 10.000 | 7.500 | GB/s | 0.75 | 0.50 | 1.00 |'
says '| `pinned_h2d 4 MiB` | 20.000 | 20.000 | GB/s | 1.00 | 1.00 | 1.00 |'
says '| ivgpu registered_h2d to ivgpu pinned_h2d | 0.950 | 0.900 | 1.000 |'
says '| ivgpu managed_read to native zero_copy_read | 1.100 | 1.000 | 1.200 |'
[[ $output != *'`pool_pair`'* && $output != *registered_read* ]] || fail "a figure without one side is shown: $output"

echo "| latency | $head" >"$work/run1"
row launch_issue 4 1 us >>"$work/run1"
run --runs 1
[[ $(cat "$work/told") == 'bench latency --idle 0.2 --markdown' ]] || fail "without a group it ran: $(cat "$work/told")"
says '| `launch_issue` | 4.000 | 1.000 | us | 0.25 | 0.25 | 0.25 |'
[[ $output != *'of one run'* ]] || fail "a second table without the group memory: $output"

rm "$work/run2"
run --runs 2
[[ $code == 1 && $output == *'run 2 failed'* ]] || fail "a run that fails: exit code $code: $output"
run nonsense
[[ $code == 2 && $output == usage:* ]] || fail "nonsense: exit code $code: $output"
exit "$status"
