#!/usr/bin/env bash
# usage: pictures_test.sh SOURCES
# The README's pictures: bench.json has medians of docs/measurements/calls.md, the script that draws makes bench.svg from it
# to the byte, and each picture is XML of less than 40 kB.
set -uo pipefail
cd "$1" || exit 1
status=0
fail() { echo "FAIL: $1"; status=1; }

python3 -I - <<'PYTHON' || fail "docs/pictures/bench.json has other medians than docs/measurements/calls.md"
import json, re
row = re.compile(r"\| `(\w+)`(?: (\d+) (KiB|MiB))? \| ([0-9.]+)[^|]* \| ([0-9.]+)[^|]* \| (us|GB/s) \|")
rows = set()
with open("docs/measurements/calls.md") as page:
    for name, size, unit, native, ivgpu, of in row.findall(page.read()):
        rows.add((name, int(size or 0) << (20 if unit == "MiB" else 10), of, float(native), float(ivgpu)))
with open("docs/pictures/bench.json") as run:
    for figure in json.load(run)["figures"]:
        medians = [figure[side]["p50"] for side in ("native", "ivgpu")]
        assert (figure["name"], figure.get("bytes", 0), figure["unit"], *medians) in rows, figure
PYTHON
tools/ivgpu/bench/plot docs/pictures/bench.json | cmp - docs/pictures/bench.svg ||
  fail "docs/pictures/bench.svg is not current: run tools/dev/pictures bench"
for picture in top bench; do
  file=docs/pictures/$picture.svg
  xmllint --noout "$file" && (($(wc -c <"$file") < 40000)) || fail "$file is missing, no XML, or too large"
done
exit "$status"
