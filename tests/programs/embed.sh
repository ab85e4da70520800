#!/usr/bin/env bash
# usage: embed.sh BIN2C FOLDER HEADER
# Writes FOLDER/HEADER with the files fatbin, ptx and cubin of the folder in it, as arrays driver_api_fatbin and so on.
# Of 64-bit numbers, so that they are aligned; padded with zeros, so that PTX ends as text does.
set -euo pipefail
cd "$2"
for kind in fatbin ptx cubin; do
  "$1" --const --static --type longlong --padd 0 --name "driver_api_$kind" "$kind"
done >"$3"
