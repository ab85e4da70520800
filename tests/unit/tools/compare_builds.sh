#!/usr/bin/env bash
# usage: compare_builds.sh COMPARE_BUILDS BUILD
# Tests the statistics of tools/compare-builds with fake builds that print invented figures. Also tests bad input, and
# one real build with the simulated GPU.
set -uo pipefail
compare=$1 build=$2
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../patient.sh"
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAIL: $1"; status=1; }

# A fake build. Its n-th run prints line n of SIDE.runs, which has the form NAME SAMPLE..., with ";" between figures.
# The last line is used for all further runs. A "|" begins the next process of the same run.
for side in old new; do
  mkdir -p "$work/$side/bin" "$work/$side/libexec/ivgpu"
  cat >"$work/$side/bin/ivgpu" <<TEXT
#!/usr/bin/env bash
[[ \$* != *' about' ]] || { echo 'about 13000 a GPU of paper'; exit; }
echo $side >>"$work/order"
[[ ! -e "$work/slow" ]] || sleep 0.5
line=\$(awk -v n="\$(grep -c $side "$work/order")" 'NR <= n { line = \$0 } END { print line }' "$work/$side.runs")
[[ \$line != fails ]] || { echo 'no worker starts: it is broken' >&2; exit 3; }
[[ \$line != refuses ]] || { echo 'error cuInit: CUDA_ERROR_NO_DEVICE'; exit 1; }
tr '|' '\n' <<<"\$line" | while read -r process; do
  echo ready
  tr ';' '\n' <<<"\$process" | sed -E 's/^ *([a-z]+)/begin \1 0\nsamples \1 0/'
done
TEXT
  chmod +x "$work/$side/bin/ivgpu"
  ln -s /bin/true "$work/$side/libexec/ivgpu/ivgpu-measure"
done

# told OLD NEW: sets the lines for the runs of both builds.
told() {
  rm -f "$work/order"
  printf '%s\n' "$1" >"$work/old.runs"
  printf '%s\n' "$2" >"$work/new.runs"
}
# expect CODE PATTERN WORDS...: checks the exit code (or a pattern of it), and a pattern of the output. The output is in
# $output.
expect() {
  local code=$1 pattern=$2 got
  shift 2
  output=$("$compare" "$@" 2>&1 </dev/null)
  got=$?
  # shellcheck disable=SC2053  # a pattern: 0 or 1
  [[ $got == $code && $output =~ $pattern ]] ||
    fail "compare-builds $*: exit code $got (wanted $code), wanted to read '$pattern' in: $output"
}
# Same for the fake builds, with one process per run.
judges() {
  expect "$@" --processes 1 --figures a --old "$work/old" --new "$work/new"
}
lines() { printf '%s\n' "$@"; }

# ---- bad input -----------------------------------------------------------------------------------------------------
both=(--old "$work/old" --new "$work/new")
expect 0 '^usage: tools/compare-builds' --help
expect 2 'old FOLDER is missing' --new "$work/new"
expect 2 'new FOLDER is missing' --old "$work/old"
expect 2 'there is no option --sideways' "${both[@]}" --sideways
expect 2 'old needs a value' --new "$work/new" --old
for pairs in 0 1 -3 many 10000 ''; do expect 2 '--pairs' "${both[@]}" --pairs "$pairs"; done
for processes in 0 100 x; do expect 2 'processes is a number' "${both[@]}" --processes "$processes"; done
for seconds in 0 1.5 x; do expect 2 'seconds is a whole number' "${both[@]}" --seconds "$seconds"; done
for figures in ',' 'a,' 'a b' "a';x"; do expect 2 'figures is names' "${both[@]}" --figures "$figures"; done
expect 2 '/nowhere/a.json cannot be written' "${both[@]}" --json /nowhere/a.json
expect 3 'nowhere/bin/ivgpu is not there' --old /nowhere --new "$work/new"
expect 3 'nowhere/bin/ivgpu is not there' --old "$work/old" --new /nowhere
expect 3 'nowhere/measure is not there' "${both[@]}" --measure /nowhere/measure
told 'a 1' 'fails'
judges 3 'no worker starts: it is broken.*a run of .*/new failed with exit code 3' --json "$work/fails.json"
[[ ! -e $work/fails.json && ! -e $work/fails.json.part ]] || fail "a comparison that failed left a file"
told 'a 1' 'refuses'
judges 3 'cuInit: CUDA_ERROR_NO_DEVICE.*/new failed with exit code 1'
told 'a 1' 'b 1'
judges 3 'a run of .*/new reported a 0 times instead of 1'
told 'a 1' 'a 0'
judges 3 'reported a 0 times instead of 1'
told 'a 1' 'a 1'
expect 3 'a run of .*/old reported a 1 times instead of 2' "${both[@]}" --figures a

# ---- verdicts ------------------------------------------------------------------------------------------------------
told 'a 5 5 5' 'a 5 5 5'
judges 0 '[|] `a` [|] 5.000 [|] 5.000 [|] \+0.0 % [|] \+0.0 % to \+0.0 % [|] 0.0 % [|] same [|]' --pairs 6
[[ $output == '6 pairs of 1 processes on a GPU of paper.'* ]] || fail "the pairs are not told: $output"
[[ $(tr '\n' ' ' <"$work/order") == 'old new new old old new new old old new new old ' ]] || fail "the order: $(cat "$work/order")"
# A little noise, and an increase of 3 per cent.
old=$(lines 'a 100' 'a 101' 'a 99' 'a 100' 'a 102' 'a 100' 'a 98' 'a 100' 'a 101' 'a 99')
new=$(lines 'a 103' 'a 104' 'a 102' 'a 103' 'a 104' 'a 103' 'a 101' 'a 104' 'a 104' 'a 102')
told "$old" "$new"
judges 1 '\+3\.[01] % [|] \+2\.[0-9] % to \+3\.[0-9] % [|] 0\.[0-9] % [|] slower' --pairs 10
told "$new" "$old"
judges 0 '-[23]\.[0-9] % [|] -3\.[0-9] % to -2\.[0-9] % [|] 0\.[0-9] % [|] faster' --pairs 10
told "$old" "$(lines 'a 150' 'a 70' 'a 99' 'a 90' 'a 140' 'a 100' 'a 60' 'a 130' 'a 101' 'a 99')"
judges 1 'not settled' --pairs 10
# One slower figure of two suffices.
told 'a 1;b 1' 'a 1;b 1.5'
expect 1 '`a` .* same .*`b` .* slower' "${both[@]}" --processes 1 --figures a,b --pairs 2

# ---- known numbers: t is 12.706 for two pairs, 3.182 for four, 2.776 for five ----------------------------------------
told 'a 100' "$(lines 'a 103' 'a 104')"
judges 1 '[|] \+3.5 % [|] -2.7 % to \+10.1 % [|] 6.4 % [|] not settled' --pairs 2 --json "$work/two.json"
told 'a 10' "$(lines 'a 10.1' 'a 10.3' 'a 9.9' 'a 10.2')"
judges 0 '' --pairs 4 --json "$work/four.json"
told 'a 10' "$(lines 'a 9.5' 'a 9.6' 'a 9.4' 'a 9.5' 'a 9.55')"
judges 0 '' --pairs 5 --json "$work/five.json"
has() { tr -d '\n' <"$work/$1.json" | grep -qF -- "$2" || fail "$1.json has no '$2': $(cat "$work/$1.json")"; }
has two '"difference_percent": 3.4988, "low_percent": -2.6632, "high_percent": 10.0509, "half_width_percent": 6.3571'
has four '"difference_percent": 1.2392, "low_percent": -1.4507, "high_percent": 4.0025, "half_width_percent": 2.7266'
has five '"difference_percent": -4.9023, "low_percent": -5.8199, "high_percent": -3.9758, "half_width_percent": 0.9221'
has five '"verdict": "faster"'
has two '{"first": "old", "old": {"a": [100]}, "new": {"a": [103]}},  {"first": "new", "old": {"a": [100]}, "new": {"a": [104]}}]}'
# Medians of odd and even numbers of samples in any order; several processes.
told 'a 3 100 1 2 0.5 | a 8 1 2 4' 'a 4 1 2 3 | a 3'
expect 1 '[|] 2.449 [|] 2.739 [|] \+11.8 % [|]' "${both[@]}" --figures a --pairs 2

# ---- the time is over ----------------------------------------------------------------------------------------------
: >"$work/slow"
told 'a 1' 'a 1'
judges 0 '^2 pairs of 1 processes on a GPU of paper, of 60 that were asked for: the time was over' --seconds 1
rm "$work/slow"

# ---- a build -------------------------------------------------------------------------------------------------------
expect '[01]' '`stream_query`' --old "$build" --new "$build" --gpu sim --quick --pairs 2 --json "$work/sim.json"
[[ $output == '2 pairs of 2 processes on ivgpu simulated GPU.'* ]] || fail "the simulated GPU: $output"
(($(grep -cE '^[|] `[a-z0-9_]+` [|] [0-9]+\.[0-9]{3} [|]' <<<"$output") == 8)) || fail "not eight figures: $output"
has sim '"gpu": "ivgpu simulated GPU", "pairs_asked_for": 2, "processes": 2,'
(($(grep -c '"first":' "$work/sim.json") == 2)) || fail "not two pairs: $(cat "$work/sim.json")"
measured=$(echo | "$build/bin/ivgpu" run --private --gpu sim "$build/libexec/ivgpu/ivgpu-measure" --quick \
  --only empty_call,stream_query latency | sed -n 's/^samples \([a-z_]*\) .*/\1/p' | sort | tr '\n' ' ')
[[ $measured == 'empty_call stream_query ' ]] || fail "of two figures that are asked for these are measured: '$measured'"
expect 3 'reported nonsense 0 times' --old "$build" --new "$build" --gpu sim --quick --pairs 2 --figures nonsense
expect 3 'libcuda.* failed with exit code 3' --old "$build" --new "$build" --gpu /nowhere/libcuda.so.1
exit "$status"
