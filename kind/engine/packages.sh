#!/usr/bin/env bash
# Usage: packages.sh PACKAGE...
#
# Installs Debian packages as root, without recommended packages and without prompts. Tries up to
# three times. Concurrent runs wait for each other.
#
# On a host without systemd, an init script would hang or fail. There, the script's policy keeps
# packages from starting services (invoke-rc.d(8)), unless the host has its own policy. The script
# removes its policy even after SIGTERM, which apt-get also receives, or if its parent is killed.
set -uo pipefail
policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d}
mark='# Written by the registry-cache testbed for the time of one apt-get run.'
export DEBIAN_FRONTEND=noninteractive

trap 'exit 143' TERM
exec 9<"$(dirname "$policy")" && flock 9 || exit
if ! [ -d /run/systemd/system ] && { ! [ -e "$policy" ] || grep -qxF "$mark" "$policy"; }; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy" && chmod 755 "$policy" || exit
fi

# Standard input may be this script.
apt() { apt-get -y -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@" </dev/null 9<&-; }
for _ in 1 2 3; do
  dpkg --configure -a </dev/null 9<&- && # finishes an interrupted installation
    apt update && apt install --no-install-recommends "$@" && exit 0
done
exit 1
