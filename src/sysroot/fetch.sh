#!/bin/sh
# Fetches a file of a Debian source package into build/downloads and checks its SHA-256.
# Usage: fetch.sh PACKAGE FILE SHA256
set -eu

package=$1 file=$2 sha256=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$top/build/downloads

mkdir -p "$dir"
cd "$dir"
if [ ! -f "$file" ]; then
	command -v dpkg-source >/dev/null || { echo "fetch.sh: no dpkg-source: run scripts/setup.sh, or put $file into $dir" >&2; exit 1; }
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	# The name of the file says the version; apt checks the archive's signature.
	release=${file#*_}
	release=${release%%.orig*}
	full=$(apt-cache showsrc "$package" 2>/dev/null | sed -n 's/^Version: //p' | grep -F "$release-" | head -n 1)
	[ -n "$full" ] || { echo "fetch.sh: no source of $package $release known to apt: run scripts/setup.sh, or put $file into $dir" >&2; exit 1; }
	apt-get source -qq --download-only -o APT::Sandbox::User= "$package=$full" >"$log" 2>&1 ||
		{ cat "$log" >&2; exit 1; }
fi
echo "$sha256  $file" | sha256sum -c --status - 2>/dev/null || { echo "fetch.sh: $dir/$file has another SHA-256 than the one we know" >&2; exit 1; }
