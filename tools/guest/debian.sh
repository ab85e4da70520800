# Unpacks Debian packages without installing them. The caller sources this after set -euo pipefail and sets `work`, its
# own folder, and `die SENTENCE [CODE]`.
# shellcheck shell=bash disable=SC2154

# unpack PACKAGE FOLDER [CODE]: exits with 3 or CODE if it fails.
unpack() {
  rm -rf "$work/deb"
  mkdir -p "$work/deb" "$2"
  (cd "$work/deb" && apt-get download -q "$1" >"$work/apt.log" 2>&1) ||
    { cat "$work/apt.log" >&2; die "Debian's package $1 could not be fetched; 'apt-get update' may help" "${3:-3}"; }
  dpkg-deb -x "$work/deb/$1"_*.deb "$2"
}

# kernel_release VMLINUZ: the boot header stores at 0x20e the offset of the version string, less 512.
kernel_release() {
  local at release
  at=$(od -An -tu2 -j 526 -N 2 "$1" 2>/dev/null) || true
  release=$(dd if="$1" bs=1 skip=$((${at:-0} + 512)) count=128 status=none | tr '\0' ' ' | cut -d ' ' -f 1)
  [[ $release =~ ^[0-9]+\.[0-9][0-9A-Za-z.+_~-]*$ ]] || die "$1 is no kernel: it says no version"
  echo "$release"
}

# kernel_modules VMLINUZ CACHE NAME...: prints the modules' paths in load order, dependencies first. CACHE keeps the
# modules; an empty file marks a built-in one. They come from this machine if it runs this kernel, else from Debian. If
# Debian no longer has the kernel, exits with code 4.
kernel_modules() {
  local -A listed=()
  local release kept name
  release=$(kernel_release "$1") || exit
  kept=$2/modules-$release
  shift 2
  mkdir -p "$kept"
  for name in "$@"; do list_module "${name//-/_}"; done
}

# Part of kernel_modules, whose variables it uses. Reads a module's dependencies from the module.
list_module() {
  local name=$1 needs needed
  [[ ! ${listed[$name]:-} ]] || return 0
  listed[$name]=1
  [[ -e $kept/$name.ko ]] || keep_module "$name"
  [[ -s $kept/$name.ko ]] || return 0
  needs=$(tr '\0' '\n' <"$kept/$name.ko" | sed -n 's/^depends=//p' | tr ',-' ' _')
  for needed in $needs; do list_module "$needed"; done
  echo "$kept/$name.ko"
}

# Later Debian kernels have compressed modules below /usr. $work/kernel is the package.
keep_module() {
  local name=$1 tree found
  if [[ -e /lib/modules/$release/modules.builtin ]]; then
    tree=/lib/modules/$release
  else
    [[ -d $work/kernel ]] || unpack "linux-image-$release" "$work/kernel" 4
    tree=$(find "$work/kernel" -path "*/lib/modules/$release" -print -quit)
  fi
  found=$(find "${tree:-/nowhere}" -name "${name//_/[-_]}.ko*" -print -quit 2>/dev/null)
  case $found in
    *.ko) cp "$found" "$kept/$name.ko.new" ;;
    *.xz) xz -dc "$found" >"$kept/$name.ko.new" ;;
    *.zst) zstd -qdc "$found" >"$kept/$name.ko.new" ;;
    *)
      grep -qs "/${name//_/[-_]}\.ko" "${tree:-/nowhere}/modules.builtin" || die "the kernel $release has no module $name"
      : >"$kept/$name.ko.new"
      ;;
  esac
  mv "$kept/$name.ko.new" "$kept/$name.ko"
}
