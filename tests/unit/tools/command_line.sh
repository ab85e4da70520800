#!/usr/bin/env bash
# usage: command_line.sh IVGPU
# Tests exit codes and messages of `ivgpu` that need neither a broker nor a guest.
set -uo pipefail
ivgpu=$1
status=0

# expect CODE PATTERN WORDS...: checks the exit code, and a pattern of the output.
expect() {
  local code=$1 pattern=$2 output got
  shift 2
  output=$("$ivgpu" "$@" 2>&1 </dev/null)
  got=$?
  if [[ $got != "$code" || ! $output =~ $pattern ]]; then
    echo "FAIL: ivgpu $*: exit code $got (wanted $code), wanted to read '$pattern' in: $output"
    status=1
  fi
}

expect 0 'Usage: ivgpu \[OPTIONS\] SUBCOMMAND' --help
expect 0 'PROGRAM \[ARGUMENTS' run --help
expect 0 'PROGRAM \[ARGUMENTS' sim --help
expect 0 'COMMAND\.\.\.\]' vm --help
expect 0 'Exit codes' vm --help
expect 0 '^ivgpu [0-9.]+$' --version
expect 0 '--perfetto FILE' trace --help
expect 2 '^ivgpu: a command is missing; see ivgpu --help$'
expect 2 '^ivgpu: there is no command frobnicate; see ivgpu --help$' frobnicate
expect 2 '^ivgpu: there is no option --fast; see ivgpu --help$' --fast run
expect 2 '^ivgpu: status has no option --fast; see ivgpu status --help$' status --fast
expect 2 '^ivgpu: status takes no extra; see ivgpu status --help$' status extra
expect 2 '^ivgpu: --cpus: [^.]*; see ivgpu vm --help$' vm --cpus 65
expect 2 'run needs a PROGRAM' run
expect 2 'run needs a PROGRAM' run --
expect 2 'sim has no option --fast' sim --fast ls
expect 2 'vm has no option --fast' vm --fast
expect 2 'cpus' vm --cpus many
expect 2 'kernel' vm --kernel /nowhere/vmlinuz
expect 2 '^ivgpu: --transport: carrier not in \{doorbell,plain,pmem\}; see ivgpu vm --help$' vm --transport carrier -- true
expect 2 '^ivgpu: --vsock needs --transport pmem$' vm --vsock -- true
expect 2 '^ivgpu: --vsock needs --transport pmem$' vm --vsock --transport plain -- true
expect 0 'runtime-dir' status --help
expect 2 'watch-the-stars' status --watch-the-stars
expect 3 'no ivgpud answers at /nowhere/ivgpud.status: No such file or directory' status --runtime-dir /nowhere
expect 2 'too long for a socket' status --runtime-dir "/$(printf 'x%.0s' {1..200})"
expect 2 '0.1' status --watch 0
expect 2 'watch' status --watch often
expect 3 'no ivgpud answers at /nowhere' status --watch --runtime-dir /nowhere
expect 0 'q ends it' top --help
expect 2 'top has no option --fast' top --fast
expect 2 'top takes no extra' top extra
expect 2 '0.1' top --interval 0
expect 2 'interval' top --interval often
expect 2 'nonsense not in \{name,calls' top --sort nonsense
expect 3 '^ivgpu: no ivgpud answers at /nowhere/ivgpud.status: No such file or directory$' top --runtime-dir /nowhere
expect 3 'no ivgpud answers at /nowhere' top --once --json --runtime-dir /nowhere
expect 0 'until they have gone' reload --help
expect 2 'reload has no option --fast' reload --fast
expect 2 'reload takes no extra' reload extra
expect 3 '^ivgpu: no ivgpud answers at /nowhere/ivgpud.control: No such file or directory$' reload --runtime-dir /nowhere
expect 0 'vms.d/NAME.toml' add --help
expect 2 '^ivgpu: NAME is required; see ivgpu add --help$' add
expect 2 'add has no option --fast' add a --fast
expect 2 'begins with a letter or digit$' add ../a
expect 2 'KEY = VALUE' add a --set slots
expect 2 'one line of ASCII' add a --set $'slots = 4\n[broker]'
expect 3 '^ivgpu: no ivgpud answers at /nowhere/ivgpud.status: No such file or directory$' add a --runtime-dir /nowhere
expect 0 'its memory has gone' remove --help
expect 2 'remove has no option --fast' remove a --fast
expect 2 'begins with a letter or digit$' remove ../a
expect 1 'was not added by' remove a --runtime-dir /nowhere
expect 0 'PROGRAM \[ARGUMENTS' trace --help
expect 0 'is not shown' trace --help
expect 2 'trace has no option --fast' trace --fast
expect 2 'slot' trace --slot 64
expect 2 'process' trace --process 0
expect 2 'seconds' trace --seconds soon
expect 2 '--gpu needs a PROGRAM' trace --gpu sim
expect 2 '--slot is for sessions that run already, not for a PROGRAM' trace --slot 1 -- true
expect 2 'longer than a VM.s name' trace --vm "$(printf 'x%.0s' {1..64})"
expect 3 'no ivgpud answers at /nowhere/ivgpud.trace' trace --runtime-dir /nowhere
expect 2 '/nowhere/x cannot be written' trace --gpu sim --perfetto /nowhere/x -- true
expect 127 'cannot run /nowhere/program' trace --gpu sim -- /nowhere/program
expect 0 'ivgpu-check does the same' check --help
expect 2 'fast' check --fast
expect 2 'nowhere' check --root /nowhere
expect 2 'excludes' check --host --guest
expect 0 'PROGRAM \[ARGUMENTS' coverage --help
expect 2 'coverage needs a PROGRAM' coverage
expect 2 'coverage has no option --fast' coverage --fast ls
expect 2 'NAME=VALUE' vm --env word -- true
expect 3 'the GPU.s libcuda is missing: /nowhere/libcuda' run --gpu /nowhere/libcuda.so.1 true
exit "$status"
