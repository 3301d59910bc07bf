#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks Debian packages and all they need into a folder, without installing them: no root is needed, and what this
# machine has installed neither matters nor changes.
#
#   debian.sh FOLDER ARCHITECTURE SUITE PACKAGE...
#
# The archive's address is the one that this machine's apt uses, whether it stands in debian.sources or in sources.list:
# apt itself is asked. apt then works with lists, cache and status of its own, beside FOLDER; signatures are checked as
# always. A mirror may be frozen and a clock may be off, so the age of the lists is not.
set -euo pipefail

folder=$(realpath -m "$1") architecture=$2 suite=$3
shift 3

command -v apt-get >/dev/null || { echo "error: cross builds take their tools from Debian's archive, by apt-get" >&2; exit 1; }
here=$(. /etc/os-release && echo "$VERSION_CODENAME")
archive=$(apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/$here/InRelease' .*|\1|p" | head -n 1)
[[ -n $archive ]] || { echo "error: apt knows no archive with the suite $here" >&2; exit 1; }

private=$folder.apt
rm -rf "$folder" "$private"
mkdir -p "$folder" "$private"/{etc/sources.list.d,etc/apt.conf.d,etc/preferences.d,lists/partial,cache/archives/partial}
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

options=(
  -qq
  -o "Dir::Etc=$private/etc"
  -o Dir::Etc::sourcelist=/dev/null
  -o "Dir::Etc::sourceparts=$private/etc/sources.list.d"
  -o "Dir::State::lists=$private/lists"
  -o "Dir::State::status=$private/status"
  -o "Dir::Cache=$private/cache"
  -o APT::Architecture="$architecture"
  -o APT::Architectures="$architecture"
  -o APT::Sandbox::User=
  -o Acquire::Languages=none
  -o Acquire::Check-Valid-Until=false
  -o Acquire::Check-Date=false
  -o Acquire::Retries=3
  -o Debug::NoLocking=true
)
apt-get "${options[@]}" update
apt-get "${options[@]}" install --download-only --yes --no-install-recommends "$@" >/dev/null

# The tree is merged: /bin, /lib and /sbin are those of /usr.
mkdir -p "$folder"/usr/{bin,lib,sbin}
ln -s usr/bin usr/lib usr/sbin "$folder"
for package in "$private"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" --keep-directory-symlink --no-same-owner
done
rm -rf "$private"
