# Helpers of the package tests; sourced, never run. The caller sets sources, build, work and release.
# shellcheck shell=bash disable=SC2154

# Copies the tree, so that the packages of the build folder are made beside the copy.
copy_tree() {
  mkdir "$work/ivgpu-$release"
  tar -C "$sources" --exclude='./build*' --exclude=./.git --exclude=./tests -c . | tar -C "$work/ivgpu-$release" -x
}
make_packages() {
  (cd "$work/ivgpu-$release" && IVGPU_PREBUILT=$build DEB_BUILD_OPTIONS=noautodbgsym DPKG_DEB_COMPRESSOR_TYPE=gzip \
    DPKG_DEB_COMPRESSOR_LEVEL=1 dpkg-buildpackage -b -us -uc) >"$work/log" 2>&1
}

# Makes a Debian once per build folder. It contains what dkms needs, mainly a compiler, but not what ivgpu's packages
# need.
base=$build/packages-base.tar
make_base() {
  local mirror
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Component: main' 2>/dev/null | head -n 1)
  debootstrap --variant=minbase bookworm "$work/base" ${mirror:+"$mirror"} &&
    echo force-unsafe-io >"$work/base/etc/dpkg/dpkg.cfg.d/test" &&
    chroot "$work/base" env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends dkms \
      systemd-standalone-sysusers systemd-standalone-tmpfiles &&
    chroot "$work/base" apt-get clean && tar -C "$work/base" -cf "$base.new" . && mv "$base.new" "$base"
}
need_base() {
  [[ -e $base ]] || make_base >"$work/log" 2>&1 || { tail -n 20 "$work/log"; return 1; }
  rm -rf "$work/base"
}
in_root() {
  chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive RELEASE="$release" KERNEL="${kernel:-}" "$@"
}
