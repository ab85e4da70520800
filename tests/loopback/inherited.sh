#!/usr/bin/env bash
# usage: inherited.sh BUILD
# Starts `ivgpu` with closed standard descriptors, and with ignored or blocked signals. The program must exit and print
# as natively, inherit the same state, and leave no file or process behind.
set -uo pipefail
build=$1
# shellcheck source=tests/bad_input.sh
source "$(dirname "${BASH_SOURCE[0]}")/../bad_input.sh"
ivgpu=$build/bin/ivgpu
run=("$ivgpu" run --private --gpu sim) sim=("$ivgpu" sim)

# without WHICH NAME COMMAND...: runs the command with the descriptors WHICH closed. Writes the output to NAME.out and
# NAME.err, and the exit code to NAME.code.
without() {
  local which=$1 name=$2
  shift 2
  rows=$((rows + 1))
  (
    exec </dev/null >"$name.out" 2>"$name.err"
    [[ $which != *0* ]] || exec 0<&-
    [[ $which != *1* ]] || exec 1>&-
    [[ $which != *2* ]] || exec 2>&-
    exec timeout 60 "$@"
  )
  echo $? >"$name.code"
}

# same WHICH NAME OTHER: expects equal exit codes and output.
same() {
  local part
  for part in code out err; do
    cmp -s "$2.$part" "$3.$part" ||
      fail "without $1, $part of $2 and of $3: $(diff "$2.$part" "$3.$part" | head -5)"
  done
}

# Reports which of the program's descriptors 0 to 2 are open.
cat >descriptors <<'SH'
#!/bin/sh
for fd in 0 1 2; do
  if test -e "/proc/$$/fd/$fd"; then found="$found $fd open"; else found="$found $fd closed"; fi
done
echo "$found" >"$1"
SH
chmod +x descriptors

for which in none 0 1 2 01 02 12 012; do
  without "$which" sim "${sim[@]}" "$build/programs/device_printf"
  without "$which" run "${run[@]}" "$build/programs/device_printf"
  same "$which" sim run
  without "$which" native ./descriptors "$work/natively"
  for command in sim run; do
    declare -n started=$command
    without "$which" "$command" "${started[@]}" ./descriptors "$work/here"
    same "$which" native "$command"
    cmp -s natively here || fail "without $which the program of ivgpu $command finds: $(cat here)"
    rm -f here
  done
  nothing_is_left "a run without $which"
done

# `ivgpu --version` without standard output cannot write its output and must exit with code 3.
without 1 version "$ivgpu" --version
[[ $(cat version.code) == 3 ]] || fail "the version went nowhere, and the exit code is $(cat version.code)"

# The signal masks that the program inherits.
signals() { "$@" grep -E '^Sig(Blk|Ign)' /proc/self/status 2>&1; }
for how in --ignore-signal=CHLD --ignore-signal=PIPE --ignore-signal=HUP --ignore-signal=XFSZ --block-signal=CHLD \
  --block-signal=TERM --block-signal=USR1 '--ignore-signal=CHLD,PIPE,INT,QUIT --block-signal=TERM,HUP'; do
  read -ra words <<<"$how"
  row 0 '' env "${words[@]}" "${run[@]}" "$build/programs/vector_add" --n 1000
  natively=$(signals timeout 60 env "${words[@]}")
  for command in run sim; do
    declare -n started=$command
    rows=$((rows + 1))
    got=$(signals timeout 60 env "${words[@]}" "${started[@]}")
    [[ $got == "$natively" ]] || fail "env $how: ivgpu $command gives its program $got, not $natively"
  done
done
row 7 '' env --ignore-signal=CHLD "${run[@]}" sh -c 'exit 7'
row 143 '' env --ignore-signal=CHLD "${run[@]}" sh -c 'kill -TERM $$'
finish 60
