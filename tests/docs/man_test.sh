#!/usr/bin/env bash
# usage: man_test.sh SOURCES BUILD
# The man pages against the commands: each command of ivgpu has a page and each page a command, with the same options;
# groff reports no error. Bash completes every command and option.
set -uo pipefail
sources=$1 build=$2
man=$sources/docs/man ivgpu=$build/bin/ivgpu
status=0
fail() { echo "FAIL: $1"; status=1; }

# The long options in a help text, and those in a page's list.
help_options() { grep -E '^ +(-[a-zA-Z],)?--' | grep -oE -- '--[a-z-]+' | sort -u; }
page_options() { grep -E '^\.It Fl' "$1" | grep -oE 'Fl -[a-z-]+' | sed 's/Fl -/--/' | sort -u; }
compare() {
  local page=$1 wanted=$2 found
  [[ -e $man/$page ]] || { fail "there is no page docs/man/$page"; return; }
  found=$(page_options "$man/$page")
  [[ $wanted && $found == "$wanted" ]] || fail "docs/man/$page has other options:"$'\n'"$(diff <(echo "$wanted") <(echo "$found"))"
}

commands=$("$ivgpu" --help | sed -nE '/^Subcommands:/,/^$/ s/^  ([a-z]+) .*/\1/p')
[[ $(wc -w <<<"$commands") -ge 4 ]] || fail "ivgpu --help lists no commands"
compare ivgpu.1 "$("$ivgpu" --help | help_options)"
for command in $commands; do
  compare "ivgpu-$command.1" "$("$ivgpu" "$command" --help | help_options)"
  grep -q "^\.It Xr ivgpu-$command 1" "$man/ivgpu.1" || fail "docs/man/ivgpu.1 does not name ivgpu-$command"
done
compare ivgpud.8 "$("$build/bin/ivgpud" --help | help_options)"
compare ivgpu-worker.8 "$(grep -oE 'name == "--[a-z-]+"' "$sources/host/worker/options.cc" | grep -oE -- '--[a-z-]+' | sort -u)"
compare ivgpu-guest-setup.8 "$("$sources/tools/guest/ivgpu-guest-setup" --help | grep -oE -- '--[a-z-]+' | cat - <(echo --help) | sort -u)"
compare ivgpu-libvirt-hook.8 "$(python3 -I "$sources/tools/host/ivgpu-libvirt-hook" --help | sed 's/, --/,--/' | help_options)"
for page in "$man"/*; do
  name=$(basename "$page")
  case $name in
    ivgpu.1 | ivgpud.8 | ivgpu-worker.8 | ivgpu-gputime.8 | ivgpu-guest-setup.8 | ivgpu-libvirt-hook.8 | ivgpu-mps.8 | ivgpu-nvml.8) ;;
    ivgpu-*.1) grep -qw "$(sed -E 's/ivgpu-(.*)\.1/\1/' <<<"$name")" <<<"$commands" || fail "docs/man/$name is no command's" ;;
    *) fail "docs/man/$name belongs to nothing" ;;
  esac
  said=$(groff -mandoc -Tutf8 -ww -z "$page" 2>&1)
  [[ -z $said ]] || fail "groff says of $name: $said"
  awk 'length > 120 { exit 1 }' "$page" || fail "docs/man/$name has a line of more than 120 letters"
done

# offers WORD...: bash's completions of the last word.
offers() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  "$function"
  printf '%s\n' "${COMPREPLY[@]}" | sort -u
}
# shellcheck source=tools/completion/ivgpu.bash
source "$sources/tools/completion/ivgpu.bash"
same() { [[ $2 == "$3" ]] || fail "completion of $1:"$'\n'"$(diff <(echo "$2") <(echo "$3"))"; }
function=_ivgpu
same "ivgpu" "$(printf "%s\n" "$commands" --help --version | sort)" "$(offers "$ivgpu" '')"
same "ivgpu st" "status" "$(offers "$ivgpu" st)"
same "ivgpu --nonsense" "" "$(offers "$ivgpu" --nonsense)"
for command in $commands; do
  same "ivgpu $command --" "$("$ivgpu" "$command" --help | help_options)" "$(offers "$ivgpu" "$command" --)"
done
cd "$sources" || exit 1
same "ivgpu run --gpu s" "sim" "$(offers "$ivgpu" run --gpu si)"
same "ivgpu run --extra-config READ" "README.md" "$(offers "$ivgpu" run --extra-config READ)"
same "ivgpu run READ" "README.md" "$(offers "$ivgpu" run READ)"
same "ivgpu bench copy s" $'sessions\nshare\nstart' "$(offers "$ivgpu" bench copy s)"
same "ivgpu bench m" "memory" "$(offers "$ivgpu" bench m)"
same "ivgpu vm -- READ" "README.md" "$(offers "$ivgpu" vm -- READ)"
same "ivgpu status --runtime-dir qemu" "qemu-config" "$(offers "$ivgpu" status --runtime-dir qemu)"
function=_ivgpu_plain
same "ivgpud --" "$("$build/bin/ivgpud" --help | help_options)" "$(offers "$build/bin/ivgpud" --)"
same "tools/test --" $'--all\n--executions\n--filter\n--fix\n--quick\n--seed\n--since' "$(offers tools/test --)"
for script in dev/bench-runs boundary-check compare-builds conformance demo deps fuzz gpu-check guest-tarball dev/parts dev/ptx-architectures test dev/tidy; do
  complete -p "tools/$script" >/dev/null || fail "tools/$script is not completed"
  [[ -x tools/$script ]] || fail "tools/$script is completed, but not there"
done
exit "$status"
