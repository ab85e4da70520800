#!/bin/bash
# ivgpu-worker (IVGPU_SIM_WORKER), but that it cheats where the file IVGPU_SIM_CHEATS is there: it is told of no GPU on
# which turns are taken, so it passes no gate and answers nothing. For tests/loopback/turns.cc.
arguments=("$@")
if [ -e "$IVGPU_SIM_CHEATS" ]; then
  for i in "${!arguments[@]}"; do
    if [ "${arguments[i]}" = --turn-devices ]; then arguments[i + 1]=0; fi
  done
fi
exec "$IVGPU_SIM_WORKER" "${arguments[@]}"
