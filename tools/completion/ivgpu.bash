# bash completion for ivgpu, ivgpud and the scripts in tools/. It reads commands and options from --help, so no list can
# become stale.
# shellcheck shell=bash

# Completes with the words of $1 that begin with $2.
_ivgpu_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2"); }

_ivgpu_paths() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

# Extracts the long options from a help text: at the start of a line or in the usage line.
_ivgpu_options() {
  sed -nE -e '/^ *(-[a-zA-Z], ?)?--[a-z]/p' -e '/^usage:/Ip' -e '/^ +\[--/p' | grep -oE '(^|[^a-z-])--[a-z][a-z-]*' | grep -oE -- '--.*' | sort -u
}

# Extracts the commands: the indented lines below "Subcommands:".
_ivgpu_commands() { sed -nE '/^Subcommands:/,/^$/ s/^  ([a-z]+) .*/\1/p'; }

# Completes the value of option $1. Fails if the option's values are unknown.
_ivgpu_value() {
  case $1 in
    --gpu) _ivgpu_paths -f "$2"; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W 'auto sim' -- "$2") ;;
    --transport) _ivgpu_words 'doorbell plain pmem' "$2" ;;
    --config | --extra-config | --kernel | --json | --plot | --against | --perfetto) _ivgpu_paths -f "$2" ;;
    --runtime-dir | --program-dir | --build | --out) _ivgpu_paths -d "$2" ;;
    *) return 1 ;;
  esac
}

_ivgpu() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} ivgpu=${COMP_WORDS[0]} help i
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    help=$("$ivgpu" --help 2>/dev/null)
    _ivgpu_words "$(_ivgpu_commands <<<"$help") $(_ivgpu_options <<<"$help")" "$word"
    return
  fi
  # Words after a program belong to the program.
  for ((i = 2; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == -- ]] && { _ivgpu_paths -f "$word"; return; }
  done
  help=$("$ivgpu" "${COMP_WORDS[1]}" --help 2>/dev/null)
  if [[ $before == -* && $word != -* ]] && grep -qE -- "$before [A-Z]+" <<<"$help" &&
    _ivgpu_value "$before" "$word"; then return; fi
  local figures
  figures=$(sed -nE '/^Positionals:/,/^$/ s/.*\{([a-z,]+)\}.*/\1/p' <<<"$help")
  if [[ $word == -* ]]; then
    _ivgpu_words "$(_ivgpu_options <<<"$help")" "$word"
  elif [[ $figures ]]; then
    _ivgpu_words "${figures//,/ }" "$word"
  else
    _ivgpu_paths -f "$word"
  fi
}

# Completes commands without subcommands: ivgpud and the scripts.
_ivgpu_plain() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  if [[ $before == -* && $word != -* ]] && _ivgpu_value "$before" "$word"; then return; fi
  if [[ $word == -* ]]; then _ivgpu_words "$(_ivgpu_options < <("${COMP_WORDS[0]}" --help 2>/dev/null))" "$word"; else _ivgpu_paths -f "$word"; fi
}

complete -F _ivgpu ivgpu
complete -F _ivgpu_plain ivgpud
# Other commands may share a script's name (test, demo), so scripts are completed by path only.
for _ivgpu_script in dev/bench-runs boundary-check compare-builds conformance demo deps fuzz gpu-check guest-tarball dev/parts dev/ptx-architectures test dev/tidy; do
  complete -F _ivgpu_plain "tools/$_ivgpu_script" "./tools/$_ivgpu_script"
done
unset _ivgpu_script
