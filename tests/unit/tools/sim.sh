#!/usr/bin/env bash
# usage: sim.sh BUILD
# Tests that `ivgpu sim` reports a call that `ivgpu run` would refuse, once and on standard error. No other command
# reports the call, and a program whose calls both commands serve gets no report.
set -euo pipefail
build=$1
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../patient.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }

cat >"$work/program.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef int call();
int main(int argc, char** argv) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
  unsigned long long memory = 0;
  ((call*)dlsym(cuda, "cuInit"))(0);
  ((call*)dlsym(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0);
  ((call*)dlsym(cuda, "cuCtxSetCurrent"))(context);
  call* allocate = (call*)dlsym(cuda, "cuMemAlloc_v2");
  allocate(&memory, (size_t)4096);
  int code = 0;
  for (int i = 0; i < 2; ++i) {
    int answer = argc > 1 ? ((call*)dlsym(cuda, argv[1]))(&memory, 0) : allocate(&memory, (size_t)4096);
    if (i == 0) code = answer;
  }
  printf("%d\n", code);
  return 0;
}
C
cc -w -o "$work/program" "$work/program.c" -ldl

# said PREFIX...: prints the program's standard error; the program's output is in $work/out.
said() { "$@" 2>&1 >"$work/out"; }
line='ivgpu simulated GPU: cuMemExportToShareableHandle is served here, but refused by `ivgpu run` and in a VM; '
line+='`ivgpu coverage PROGRAM` shows the state of each call that a program makes'
sim=("$build/bin/ivgpu" sim "$work/program") run=("$build/bin/ivgpu" run --private --gpu sim "$work/program")

[[ $(said "${sim[@]}" cuMemExportToShareableHandle) == "$line" ]] || fail "sim: $(said "${sim[@]}" cuMemExportToShareableHandle)"
[[ -z $(said env IVGPU_SIM_WARN=0 "${sim[@]}" cuMemExportToShareableHandle) ]] || fail "IVGPU_SIM_WARN=0 is not obeyed"
[[ -z $(said "${sim[@]}") ]] || fail "a call that both serve: $(said "${sim[@]}")"
refused=$(said env IVGPU_SIM_WARN=1 "${run[@]}" cuMemExportToShareableHandle)
[[ $refused == *'cuMemExportToShareableHandle is refused'* && $refused != *'served here'* ]] || fail "run: $refused"
[[ $(cat "$work/out") == 801 ]] || fail "run serves it: $(cat "$work/out")"
exit "$status"
