#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks Debian packages into a folder without installing them: no root, and apt's own state stays as it is.
#
#   debian.sh FOLDER missing PACKAGE...              what this machine lacks of PACKAGE... and of what they need
#   debian.sh FOLDER ARCHITECTURE SUITE PACKAGE...   PACKAGE... and all they need, of another suite or architecture
#
# The archive's address is the one that this machine's apt uses, whether it stands in debian.sources or in sources.list:
# apt itself is asked. apt gets lists, cache and lock of its own beside FOLDER; signatures are checked as always. A mirror
# may be frozen and a clock may be off, so the age of the lists is not.
set -euo pipefail

folder=$(realpath -m "$1")
shift
private=$folder.apt
rm -rf "$folder" "$private"
mkdir -p "$folder" "$private"/{etc/sources.list.d,etc/apt.conf.d,etc/preferences.d,lists/partial,cache/archives/partial}
options=(
  -qq
  -o "Dir::State::lists=$private/lists"
  -o "Dir::Cache=$private/cache"
  -o Acquire::Languages=none
  -o Acquire::Check-Valid-Until=false
  -o Acquire::Check-Date=false
  -o Acquire::Retries=3
  -o APT::Sandbox::User=
  -o Debug::NoLocking=true
)

if [[ $1 == missing ]]; then
  shift
else
  architecture=$1 suite=$2
  shift 2
  here=$(. /etc/os-release && echo "$VERSION_CODENAME")
  archive=$(apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/$here/InRelease' .*|\1|p" | head -n 1)
  [[ -n $archive ]] || { echo "error: apt knows no archive with the suite $here" >&2; exit 1; }
  cat >"$private/etc/sources.list.d/archive.sources" <<END
Types: deb
URIs: $archive
Suites: $suite
Components: main
Architectures: $architecture
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
  # Nothing counts as installed but debconf, which would bring along what only a machine that boots needs.
  cat >"$private/status" <<END
Package: debconf
Status: install ok installed
Architecture: all
Version: 9
Maintainer: none
Description: not needed
END
  options+=(
    -o "Dir::Etc=$private/etc"
    -o Dir::Etc::sourcelist=/dev/null
    -o "Dir::Etc::sourceparts=$private/etc/sources.list.d"
    -o "Dir::State::status=$private/status"
    -o APT::Architecture="$architecture"
    -o APT::Architectures="$architecture"
  )
fi

apt-get "${options[@]}" update
apt-get "${options[@]}" install --download-only --yes --no-install-recommends "$@" >/dev/null

# The tree is merged: /bin, /lib and /sbin are those of /usr.
mkdir -p "$folder"/usr/{bin,lib,sbin}
ln -s usr/bin usr/lib usr/sbin "$folder"
for package in "$private"/cache/archives/*.deb; do
  [[ -e $package ]] || break # a machine that lacks nothing
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" --keep-directory-symlink --no-same-owner
done
rm -rf "$private"
