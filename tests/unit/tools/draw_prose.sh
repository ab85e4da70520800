#!/usr/bin/env bash
# usage: draw_prose.sh TOP
# Tests that draw-prose draws as many samples as its heading states, draws the same samples for the same seed, and
# rejects bad arguments.
set -uo pipefail
cd "$1" || exit 1
git rev-parse --verify -q HEAD >/dev/null || { echo "no history: nothing to draw from"; exit 77; }
status=0
fail() { echo "FAIL: $1"; status=1; }
first=$(tools/dev/draw-prose --seed 7) || fail "exit code $?"
[[ $first == "$(tools/dev/draw-prose --seed 7)" ]] || fail "the same seed draws another sample"
[[ $first != "$(tools/dev/draw-prose --seed 8)" ]] || fail "another seed draws the same sample"
grep -q '^comments: 60 of ' <<<"$first" || fail "no 60 comments"
grep -q '^sentences: 40 of ' <<<"$first" || fail "no 40 sentences"
tools/dev/draw-prose --seed many >/dev/null 2>&1
[[ $? == 2 ]] || fail "a seed that is no number"
[[ $(tools/dev/draw-prose --help) == *$'\nusage: '* ]] || fail "no help"
exit "$status"
