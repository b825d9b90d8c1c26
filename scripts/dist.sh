#!/bin/sh
# Makes a release in dist: lind-VERSION-x86_64-linux.tar.xz, the wheels that are there, and their
# SHA256SUMS. `make install` decides what is in it; bin and lib may be moved anywhere together.
#
# The same tree gives the same bytes: names are sorted, and times are SOURCE_DATE_EPOCH, or that of
# the last commit.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
dist=$top/dist
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$top/Cargo.toml" | head -n 1)
name=lind-$version-$(uname -m)-linux
time=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' -C "$top" log -1 --format=%ct)}
stage=$top/build/dist/$name

mkdir -p "$dist" "$stage"
"$top/scripts/install.sh" install "$stage" /
for page in README.md LICENSE SECURITY.md; do install -m 644 "$top/$page" "$stage/$page"; done
install -d "$stage/docs"
install -m 644 "$top"/docs/*.md "$stage/docs"
rm -rf "$stage/deploy"
cp -R "$top/deploy" "$stage/deploy"
chmod -R u=rwX,go=rX "$stage/deploy"
tar -C "$top/build/dist" --sort=name --format=gnu --mtime="@$time" --owner=0 --group=0 --numeric-owner -cf - "$name" |
	xz -T1 -6 >"$dist/$name.tar.xz"
cd "$dist"
# shellcheck disable=SC2046
sha256sum $(find . -maxdepth 1 -type f \( -name '*.whl' -o -name '*.tar.*' \) | sed 's,^\./,,' | LC_ALL=C sort) >SHA256SUMS
cat SHA256SUMS
