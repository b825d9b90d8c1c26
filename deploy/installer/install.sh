#!/bin/sh
# Installs Lind on a node, and tells its engine of the handler lind.
#
#     install.sh install|check|uninstall ROOT       ROOT is the node's root directory
#
# It is part of a release, which it installs; LIND names another. With RESTART=no no engine is
# restarted. Each step may be done again, and changes nothing then.
set -eu

what=${1:?install, check or uninstall} root=${2:?the root directory of the node}
root=${root%/}
deploy=$(cd "$(dirname "$0")/.." && pwd) prefix=$root/opt/lind
lind=${LIND:-$deploy/..}
k3s=$root/var/lib/rancher/k3s/agent/etc/containerd crio=$root/etc/crio/crio.conf.d/50-lind.conf
begin='# BEGIN lind: written by the installer' end='# END lind'

die() { echo "install.sh: $*" >&2; exit 1; }
say() { echo "install.sh: $*"; }

# An engine whose files have changed has to be restarted. That is noted before they change, until it
# is done, so that an installation that fails in between is completed by the next. After a start of
# the node all engines have read their files.
owed=$root/run/lind-installer
owe() { mkdir -p "$owed" && : >"$owed/$1" || die "cannot write ${owed#"$root"}/$1"; }
owes() { [ -e "$owed/$1" ]; }

# The node's systemd restarts the engine; pods go on meanwhile.
restart() {
	[ "${RESTART:-yes}" != no ] || return 0
	nsenter -t 1 -m -- systemctl try-restart "$1" || die "cannot restart $1: restart it on the node, or do this again"
	rm -f "$owed/$1"
	say "restarted $1"
}

copy() {
	[ -x "$lind/bin/lind-oci" ] || die "$lind: is no release of Lind: \`make dist\` makes one"
	if [ -x "$prefix/bin/lind-oci" ]; then
		differs=$(diff -rq "$lind" "$prefix" 2>&1) || :
		case $differs in '' | "Only in $prefix/lib/lind: runc") return ;; esac
	fi
	new=$prefix.new
	rm -rf "$new"
	mkdir -p "$new"
	cp -a "$lind/." "$new"
	# For containerd-shim-lind-v2, which finds its runtime as runc in PATH.
	mkdir -p "$new/lib/lind/runc"
	ln -sf ../../../bin/lind-oci "$new/lib/lind/runc/runc"
	# Containers that run keep the files that they have opened.
	rm -rf "$prefix.old"
	[ ! -e "$prefix" ] || mv "$prefix" "$prefix.old"
	mv "$new" "$prefix"
	rm -rf "$prefix.old"
	say "installed /opt/lind"
}

# A directory that has something in it: volumes of pods make empty ones.
is_used() { [ -n "$(ls -A "$1" 2>/dev/null)" ]; }

# Also a link is there whose target is there on the node alone.
exists() { [ -e "$1" ] || [ -L "$1" ]; }

# The file at the end of links, which are those of the node.
target_of() {
	file=$1
	for _ in 1 2 3 4 5 6 7 8; do
		[ -L "$file" ] || break
		link=$(readlink "$file") || die "${file#"$root"}: cannot read the link"
		case $link in /*) file=$root$link ;; *) file=$(dirname "$file")/$link ;; esac
	done
	[ ! -L "$file" ] || die "${1#"$root"}: too many links"
	echo "$file"
}

# Prints a file without the lines between the marks. Each line ends with a newline.
without() {
	awk -v begin="$begin" -v end="$end" '
		$0 == begin { inside = 1 }
		!inside { print }
		$0 == end { inside = 0 }
		END { exit inside }' "$1" || die "${1#"$root"}: the line \"$begin\" has no line \"$end\" behind it: correct the file"
}

# Whether a text names the handler.
names_handler() { printf '%s\n' "$1" | grep -q "^[^#]*runtimes\.[\"']*lind[\"']*[].]"; }

# The path of the node's containerd below the node's root directory.
program_of_containerd() {
	for program in /usr/bin/containerd /usr/local/bin/containerd; do
		[ ! -x "$root$program" ] || { echo "$program"; return; }
	done
}

# Gives a file of containerd's a new text, with the mode and the owner that it had: the whole text,
# which containerd understands, or none. Errors are looked for here, since `set -e` is off in
# conditions.
write() {
	file=$(target_of "$1") || exit 1
	text=$2
	[ "$text" != "$(cat "$file")" ] || return 0
	made=$file.lind
	rm -f "$made" && cp -p "$file" "$made" || { rm -f "$made"; die "cannot write ${made#"$root"}"; }
	printf '%s\n' "$text" >"$made" && [ "$text" = "$(cat "$made")" ] || { rm -f "$made"; die "cannot write ${made#"$root"}"; }
	program=$(program_of_containerd)
	if [ -n "$program" ] && ! why=$(chroot "${root:-/}" "$program" -c "${made#"$root"}" config dump 2>&1 >/dev/null); then
		rm -f "$made"
		die "${file#"$root"} is left as it was: containerd would not read it with the handler: $why"
	fi
	owe containerd
	mv "$made" "$file" || { rm -f "$made"; die "cannot replace ${file#"$root"}"; }
	say "wrote ${file#"$root"}"
}

# The version of a configuration of containerd's: the number of its format.
version_of() { sed -n '/^ *\[/q; s/^ *version *= *\([0-9][0-9]*\).*/\1/p' "$1" 2>/dev/null; }

# Whether a configuration leaves out the plugin that serves Kubernetes.
disables_cri() {
	awk '
		/^[ \t]*\[/ && !inside { exit }
		/^[ \t]*disabled_plugins[ \t]*=/ { inside = 1 }
		inside { sub(/#.*/, ""); all = all $0 }
		inside && /\]/ { exit }
		END { exit all !~ /["'"'"'](cri|io\.containerd\.grpc\.v1\.cri|io\.containerd\.cri\.v1\.[a-z]+)["'"'"']/ }' "$1"
}

# The lines for a configuration of containerd. A configuration that names handlers has no others, so
# runc is named too where it was the default one. The driver of control groups is that of the node.
lines_for() {
	text=$1
	case $2 in
	3) name=containerd-2.toml plugin=io.containerd.cri.v1.runtime ;;
	*) name=containerd-1.7.toml plugin=io.containerd.grpc.v1.cri ;;
	esac
	driver=false
	! printf '%s\n' "$text" | grep -q '^[^#]*SystemdCgroup *= *true' || driver=true
	sed "s/SystemdCgroup = true/SystemdCgroup = $driver/" "$deploy/$name"
	printf '%s\n' "$text" | grep -q '^[^#]*runtimes\.["'"'"']*runc["'"'"']*\]' || printf '[plugins."%s".containerd.runtimes.runc]\n  runtime_type = "io.containerd.runc.v2"\n' "$plugin"
}

of_containerd() {
	config=$root/etc/containerd/config.toml
	# Without a file containerd has defaults, which a file without a version would change.
	if ! exists "$config"; then
		version=2
		! chroot "${root:-/}" "$(program_of_containerd)" --version 2>/dev/null | grep -q ' v\?2\.' || version=3
		mkdir -p "$(dirname "$config")"
		echo "version = $version" >"$config"
	fi
	file=$(target_of "$config")
	[ -f "$file" ] || die "${config#"$root"} is no file: correct it"
	version=$(version_of "$file")
	case $version in
	2 | 3) ;;
	*) die "${config#"$root"} has no \`version = 2\` or \`version = 3\`, so containerd would not see the handler: \`containerd config migrate\` (1.7 and later) prints the file with one; or replace it by what \`containerd config default\` prints" ;;
	esac
	! disables_cri "$file" || die "${config#"$root"} has cri in disabled_plugins, so containerd serves no pods: take it out, and do this again"
	text=$(without "$file")
	if names_handler "$text"; then
		say "${config#"$root"} names the handler lind outside of the installer's lines: they are left as they are"
	else
		lines=$(lines_for "$text" "$version")
		text=$(printf '%s\n' "$text" "$begin" "$lines" "$end")
	fi
	write "$config" "$text"
	! owes containerd || restart containerd
}

unit_of_k3s() { if [ -e "$root/etc/systemd/system/k3s-agent.service" ]; then echo k3s-agent; else echo k3s; fi; }

of_k3s() {
	case $(version_of "$k3s/config.toml") in
	3) template="config-v3.toml.tmpl" ;;
	*) template="config.toml.tmpl" ;;
	esac
	file=$k3s/$template unit=$(unit_of_k3s)
	if [ ! -e "$file" ]; then
		owe "$unit"
		copy_file "$deploy/k3s-$template" "$file"
	elif cmp -s "$deploy/k3s-$template" "$file"; then
		:
	elif names_handler "$(cat "$file")"; then
		say "${file#"$root"} names the handler lind, and is not the installer's: it is left as it is"
	else
		die "${file#"$root"} is there already: add the tables of deploy/k3s-$template to it"
	fi
	! owes "$unit" || restart "$unit"
}

# Copies a file of deploy/: the whole of it, or nothing.
copy_file() {
	cp "$1" "$2.lind" && mv "$2.lind" "$2" || { rm -f "$2.lind"; die "cannot write ${2#"$root"}"; }
	say "wrote ${2#"$root"}"
}

of_crio() {
	if ! cmp -s "$deploy/crio-lind.conf" "$crio"; then
		mkdir -p "$(dirname "$crio")"
		owe crio
		copy_file "$deploy/crio-lind.conf" "$crio"
	fi
	! owes crio || restart crio
}

engines() {
	found=
	if exists "$root/etc/containerd/config.toml" || [ -n "$(program_of_containerd)" ]; then found=yes; of_containerd; fi
	if is_used "$k3s"; then found=yes; of_k3s; fi
	if is_used "$root/etc/crio"; then found=yes; of_crio; fi
	[ -n "$found" ] || die "there is neither containerd nor k3s nor CRI-O below ${root:-/}"
}

remove() {
	config=$root/etc/containerd/config.toml
	file=$(target_of "$config")
	if [ -f "$file" ]; then
		text=$(without "$file")
		write "$config" "$text"
		! owes containerd || restart containerd
		! names_handler "$text" || say "${config#"$root"} still names the handler lind: take the tables out, and restart containerd"
	fi
	if [ -e "$crio" ]; then
		owe crio
		rm "$crio"
	fi
	! owes crio || restart crio
	unit=$(unit_of_k3s)
	for template in config.toml.tmpl config-v3.toml.tmpl; do
		file=$k3s/$template
		if cmp -s "$deploy/k3s-$template" "$file"; then
			owe "$unit"
			rm "$file"
		elif [ -e "$file" ] && names_handler "$(cat "$file")"; then
			say "${file#"$root"} still names the handler lind: take the tables out, and restart k3s"
		fi
	done
	! owes "$unit" || restart "$unit"
	rm -rf "$prefix" "$owed"
	say "removed /opt/lind"
}

case $what in
# The doctor's findings are for people, and do not undo what is installed.
install) copy; engines; "$prefix/bin/lind-boot" doctor --node="${root:-/}" || : ;;
check)
	until [ -x "$prefix/bin/lind-boot" ]; do sleep 5 & wait; done
	while :; do "$prefix/bin/lind-boot" doctor --node="${root:-/}" || :; sleep "${EVERY:-3600}" & wait; done
	;;
uninstall) remove ;;
*) die "unknown: $what" ;;
esac
