#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools.sh BUILD: clang, lld and LLVM's tools under plain names in BUILD/bin, whether this machine has them or they were
# unpacked to BUILD/tools. One version of one compiler makes everything for Arm, so that what is counted, disassembled
# and emulated is what ships. 19 is the first that Debian 12 and 13 both have and that knows all of SME2.
set -euo pipefail

version=19
build=$(realpath -m "$1")
tools=(clang ld.lld ld64.lld llvm-ar llvm-ranlib llvm-install-name-tool llvm-objdump llvm-readelf llvm-nm llvm-otool)

# find_tool NAME: the program, here or unpacked.
find_tool() {
  for root in "" "$build/tools"; do
    program=$root/usr/lib/llvm-$version/bin/$1
    [[ -x $program ]] && return
  done
  return 1
}

rm -rf "$build/tools"
for tool in "${tools[@]}"; do
  find_tool "$tool" && continue
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  packages=(clang-$version lld-$version llvm-$version)
  "$(dirname "$0")/debian.sh" "$build/tools" "$(dpkg --print-architecture)" "$suite" "${packages[@]}"
  rm -f "$build"/tools/usr/lib/*-linux-gnu/lib{c,m}.so.* # the loader wants the ones it came with
  break
done

rm -rf "$build/bin"
mkdir -p "$build/bin"
for tool in "${tools[@]}"; do
  find_tool "$tool" || { echo "error: no $tool, neither on this machine nor in $build/tools" >&2; exit 1; }
  cat >"$build/bin/$tool" <<END
#!/bin/sh
export LD_LIBRARY_PATH="$build/tools/usr/lib/$(uname -m)-linux-gnu"
exec "$program" "\$@"
END
  chmod +x "$build/bin/$tool"
done
