#!/bin/sh
# Fetches a file of a Debian source package, of any release, into build/downloads and checks its
# SHA-256. If two processes want the same file, as parts of one `make -j`, it is fetched once.
# Usage: fetch.sh PACKAGE FILE SHA256
set -eu

package=$1 file=$2 sha256=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$top/build/downloads

mkdir -p "$dir"
cd "$dir"
exec 9>".$file.lock"
flock 9
if [ ! -f "$file" ]; then
	command -v apt-get >/dev/null || { echo "fetch.sh: no apt: put $file into $dir" >&2; exit 1; }
	# By file, not by version: the mirror has the sources of all releases side by side, and apt knows
	# those of one.
	mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
		sed -n 's/^Debian Debian //p' | head -n 1)
	[ -n "$mirror" ] || { echo "fetch.sh: no Debian mirror among apt's sources: put $file into $dir" >&2; exit 1; }
	case $package in
	lib?*) letter=$(echo "$package" | cut -c 1-4) ;;
	*) letter=$(echo "$package" | cut -c 1) ;;
	esac
	log=$(mktemp)
	trap 'rm -f "$log" "$file.part"' EXIT
	/usr/lib/apt/apt-helper -o APT::Sandbox::User= download-file \
		"${mirror%/}/pool/main/$letter/$package/$file" "$file.part" "SHA256:$sha256" >"$log" 2>&1 ||
		{ cat "$log" >&2; exit 1; }
	# The file appears under its name only when it is whole.
	mv "$file.part" "$file"
fi
echo "$sha256  $file" | sha256sum -c --status - 2>/dev/null || { echo "fetch.sh: $dir/$file has another SHA-256 than the one we know" >&2; exit 1; }
