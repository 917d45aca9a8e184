#!/bin/bash
# Tells containerd to pull through the registry caches of this cluster. Needs bash, curl and coreutils.
#
# Each argument is <upstream_host>,<endpoint>,<upstream_url>; together they are the full set. The script removes our
# hosts.toml of every other upstream. For each upstream it waits in the background until the cache answers, then writes
# hosts.toml. Until then containerd pulls directly. A hosts.toml without our mark is never touched.
# The script always exits with 0: a cache that never comes up must not make the node look unhealthy.
set -o nounset -o pipefail
set -o monitor # each background job is a process group, so that a signal ends it with all its children
umask 0022
export LC_ALL=C

# For tests; the defaults hold on nodes. Intervals and timeouts are in seconds.
certs_dir=${CERTS_DIR:-/etc/containerd/certs.d}
probe_interval=${PROBE_INTERVAL:-3}            # between two probes of an endpoint at first
probe_steady_for=${PROBE_STEADY_FOR:-60}       # after that the interval is doubled for each probe
probe_interval_max=${PROBE_INTERVAL_MAX:-60}   # but not beyond this
probe_connect_timeout=${PROBE_CONNECT_TIMEOUT:-2}
probe_timeout=${PROBE_TIMEOUT:-5}
give_up_after=${GIVE_UP_AFTER:-86400}

readonly mark='# managed by gardener-extension-registry-cache'
readonly host_pattern='([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]+)?'
readonly url_pattern="https?://$host_pattern"

log() {
  printf '%s\n' "$*" >&2
}

hosts_toml() { # endpoint upstream_url
  printf '%s\n' \
    "$mark" \
    '# Do not edit: this file goes away with the registry cache.' \
    "server = \"$2\"" \
    '' \
    "[host.\"$1\"]" \
    '  capabilities = ["pull", "resolve"]' \
    '  dial_timeout = "1s"'
}

exists() { # file
  [[ -e $1 || -L $1 ]]
}

is_ours() { # file
  local first_line=''
  [[ -f $1 ]] || return
  IFS= read -r first_line 2>/dev/null <"$1"
  [[ $first_line == "$mark" ]]
}

is_foreign() { # file
  exists "$1" && ! is_ours "$1"
}

# Removes one of our files, and its directory if nothing else is in it: an empty directory would hide the
# configuration that the node's owner may have in certs.d/_default.
remove() { # file
  rm -f -- "$1"
  rmdir -- "${1%/*}" 2>/dev/null || true
}

remove_temporary_files() {
  rm -f -- "$certs_dir"/.configure-containerd-registries.*
}

# Removes the files of ours whose upstream is not among hosts: the clean-up of a removed upstream may have missed a node.
remove_stale_files() { # hosts...
  local file host
  for file in "$certs_dir"/*/hosts.toml; do
    host=${file%/hosts.toml}
    host=${host##*/}
    if [[ " $* " != *" $host "* ]] && is_ours "$file"; then
      log "$host: it has no cache any more, removing $file"
      remove "$file"
    fi
  done
}

# Succeeds if the endpoint answers with 200: any other answer comes from something that does not serve. Otherwise sets
# problem, which stays the same for the same kind of failure, and details.
probe() { # endpoint
  local status=0
  details=$(curl --disable --silent --show-error --globoff --noproxy '*' --output /dev/null --write-out '%{http_code}' \
    --connect-timeout "$probe_connect_timeout" --max-time "$probe_timeout" "$1/v2/" 2>&1) || status=$?
  details=${details//$'\n'/ }
  if ((status != 0)); then
    problem="curl exit status $status"
    return 1
  fi
  problem="HTTP status $details"
  [[ $details == 200 ]]
}

# Sleeps between two tries. interval is doubled for each once steady_until has passed.
pause() {
  sleep "$interval"
  if ((SECONDS >= steady_until)); then
    interval=$((interval * 2 < probe_interval_max ? interval * 2 : probe_interval_max))
  fi
}

wait_until_ready() { # host endpoint
  local interval=$probe_interval problem='' details='' known_problem=''
  local steady_until=$((SECONDS + probe_steady_for)) deadline=$((SECONDS + give_up_after))
  until probe "$2"; do
    if ((SECONDS >= deadline)); then
      log "$1: giving up on $2 after $give_up_after s ($problem); pulls stay direct until this unit is restarted"
      return 1
    fi
    if [[ $problem != "$known_problem" ]]; then
      log "$1: waiting for $2: $problem ($details)"
      known_problem=$problem
    fi
    pause
  done
}

# Writes a file so that containerd sees all of it or nothing, also after a crash of the node.
write_atomically() { # file content
  local temp
  temp=$(mktemp -- "$certs_dir/.configure-containerd-registries.XXXXXXXXXX") || return
  if printf '%s\n' "$2" >"$temp" && chmod 0644 -- "$temp" && sync -- "$temp" && mkdir -p -- "${1%/*}" &&
    ! is_foreign "$1" && mv -f -T -- "$temp" "$1"; then
    sync -- "${1%/*}"
    return 0
  fi
  rm -f -- "$temp"
  return 1
}

configure() { # host endpoint upstream_url
  local file="$certs_dir/$1/hosts.toml" content details interval=$probe_interval said=no
  local steady_until=$((SECONDS + probe_steady_for)) deadline=$((SECONDS + give_up_after))
  content=$(hosts_toml "$2" "$3")
  while true; do
    if is_foreign "$file"; then
      log "$1: $file is not ours, leaving it alone"
      return
    fi
    if exists "$file" && [[ $(<"$file") == "$content" ]]; then
      log "$1: pulls go through $2"
      return
    fi
    if exists "$file" && ! grep --quiet --fixed-strings --line-regexp -e "[host.\"$2\"]" -- "$file"; then
      log "$1: the cache has moved to $2, removing $file until it answers"
      remove "$file"
    fi
    wait_until_ready "$1" "$2" || return
    if details=$(write_atomically "$file" "$content" 2>&1) || is_foreign "$file"; then
      continue
    fi
    if ((SECONDS >= deadline)); then
      log "$1: giving up on writing $file after $give_up_after s ($details); pulls stay direct until this unit is restarted"
      return
    fi
    if [[ $said == no ]]; then
      log "$1: cannot write $file, trying again: ${details//$'\n'/ }"
      said=yes
    fi
    pause
  done
}

# shellcheck disable=SC2317 # the trap calls it
stop() {
  local -a groups
  mapfile -t groups < <(jobs -p)
  {
    ((${#groups[@]} == 0)) || kill -KILL -- "${groups[@]/#/-}"
    wait
  } 2>/dev/null
  remove_temporary_files
  exit 0
}

main() {
  local argument host endpoint upstream_url i
  local -a hosts=() endpoints=() upstream_urls=()
  for argument in "$@"; do
    if [[ ! $argument =~ ^($host_pattern),($url_pattern),($url_pattern)$ ]]; then
      log "ignoring the argument $(printf '%q' "$argument"): it is not <upstream_host>,<endpoint>,<upstream_url>"
      continue
    fi
    IFS=, read -r host endpoint upstream_url <<<"$argument"
    hosts+=("$host")
    endpoints+=("$endpoint")
    upstream_urls+=("$upstream_url")
  done

  trap stop TERM INT HUP
  mkdir -p -- "$certs_dir"
  remove_temporary_files
  remove_stale_files "${hosts[@]}"
  for i in "${!hosts[@]}"; do
    configure "${hosts[i]}" "${endpoints[i]}" "${upstream_urls[i]}" &
  done
  wait 2>/dev/null # bash reports jobs that systemd ends
  exit 0
}

main "$@"
