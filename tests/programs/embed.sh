#!/usr/bin/env bash
# usage: embed.sh BIN2C FOLDER HEADER
# Writes FOLDER/HEADER with the contents of the files fatbin, ptx and cubin of the folder, as arrays driver_api_fatbin
# and so on. The arrays consist of 64-bit numbers for alignment, and are padded with zeros, so that the PTX ends with a
# NUL.
set -euo pipefail
cd "$2"
for kind in fatbin ptx cubin; do
  "$1" --const --static --type longlong --padd 0 --name "driver_api_$kind" "$kind"
done >"$3"
