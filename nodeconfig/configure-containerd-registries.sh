#!/bin/bash
# Tells containerd to pull through the registry caches of this cluster. Needs bash, curl, grep and coreutils.
#
# Each argument is <upstream_host>,<endpoint>,<upstream_url>[,<endpoint_ca>[,<upstream_ca>]]; together they are the full
# set. The last two are certificates: each one DER in base64, with dots between them.
# The script removes our hosts.toml of every other upstream. For each upstream it waits in the background until the cache
# answers, then writes hosts.toml. Until then containerd pulls directly. Then it watches its files and restores one that
# is lost or changed. A hosts.toml without our mark is never touched.
# The script always exits with 0: a cache that never comes up must not make the node look unhealthy.
#
# With the only argument --stopped, which systemd calls it by after each stop of the unit, it removes all of our files if the
# unit is disabled.
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
watch_interval=${WATCH_INTERVAL:-5}            # between two looks at the files; 0: do not watch

readonly unit=configure-containerd-registries.service
readonly mark='# managed by gardener-extension-registry-cache'
readonly host_pattern='([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]+)?'
readonly url_pattern="https?://$host_pattern"
readonly ca_line='ca = "hosts.toml"' # a relative path is one beside hosts.toml: the file itself
readonly ca_pattern='(MI[A-Za-z0-9+/]+=?=?(\.MI[A-Za-z0-9+/]+=?=?)*)?' # DER of a certificate begins like that
readonly toml_pattern=$'(^|\n)[ \t]*(\\[|[A-Za-z0-9_."\'-]+[ \t]*=)' # a table or a key: TOML says nothing without
readonly over=3 # exit status of a job that has ended for good

log() {
  printf '%s\n' "$*" >&2
}

pem() { # certificates...
  local certificate
  local -a all
  IFS=. read -r -a all <<<"$1.$2"
  for certificate in "${all[@]}"; do
    [[ -z $certificate ]] ||
      printf -- '-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n' "$(fold -w 64 <<<"$certificate")"
  done
}

# containerd fails a pull if it cannot read the file that "ca" names. So that is hosts.toml itself, which cannot get lost
# alone, and the certificates come before the first "ca": the file does not parse without them, however it is cut off.
hosts_toml() { # endpoint (empty for direct pulls) upstream_url endpoint_ca upstream_ca
  printf '%s\n' "$mark" '# Do not edit: this file goes away with the registry cache.'
  if [[ -n $3$4 ]]; then
    printf '%s\n' '# What "ca" below refers to: containerd reads the certificates from this very file.' \
      "certificates = '''" "$(pem "$3" "$4")" "'''"
  fi
  printf '%s\n' "server = \"$2\"" ${4:+"$ca_line"}
  if [[ -n $1 ]]; then
    printf '%s\n' '' "[host.\"$1\"]" '  capabilities = ["pull", "resolve"]' '  dial_timeout = "1s"' ${3:+"  $ca_line"}
  fi
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

is_right() { # file content
  local content=''
  [[ -f $1 && -n $2 ]] || return
  IFS= read -r -d '' content 2>/dev/null <"$1"
  [[ $content == "$2"$'\n' ]]
}

mirrors_to() { # file endpoint
  is_ours "$1" && grep --quiet --fixed-strings --line-regexp -e "[host.\"$2\"]" -- "$1"
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

# gardener-node-agent disables a unit, stops it and removes it, when it is in the OperatingSystemConfig no more: this is the
# last that runs of us then. The unit stays enabled in a restart, in the stop by the cleaner, and while the node goes down.
# Whatever else systemctl says, or if it cannot tell, the files stay.
remove_files_if_disabled() {
  if [[ $(systemctl is-enabled "$unit" 2>/dev/null) == disabled ]]; then
    remove_temporary_files
    remove_stale_files
  fi
}

# Succeeds if the endpoint answers with 200: any other answer comes from something that does not serve. It is trusted if
# containerd would trust it with this hosts.toml. Otherwise sets problem, which stays the same for the same kind of
# failure, and details.
probe() { # endpoint hosts_toml
  local status=0
  local -a trust=()
  [[ $2 != *$'\n'"  $ca_line"* ]] || trust=(--cacert /dev/stdin)
  details=$(curl --disable --silent --show-error --globoff --noproxy '*' --output /dev/null --write-out '%{http_code}' \
    --connect-timeout "$probe_connect_timeout" --max-time "$probe_timeout" "${trust[@]}" "$1/v2/" 2>&1 <<<"$2") || status=$?
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

wait_until_ready() { # host endpoint hosts_toml direct_toml
  local interval=$probe_interval problem='' details='' known_problem=''
  local steady_until=$((SECONDS + probe_steady_for)) deadline=$((SECONDS + give_up_after))
  until probe "$2" "$3"; do
    still_good "$certs_dir/$1/hosts.toml" "$2" || pull_directly "$1" "$4"
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

# Tells whether pulls may go on by a file that is to be replaced: by its certificates the endpoint is still trusted, as
# while authorities are rotated. Any other one goes: if it is damaged, containerd may fail pulls for it.
still_good() { # file endpoint
  local content='' problem details
  [[ $2 == https:* ]] && mirrors_to "$1" "$2" || return
  IFS= read -r -d '' content <"$1"
  [[ ${content//"$ca_line"/} != *'ca = '* ]] && probe "$2" "$content"
}

# Removes what is left of a file that was ours: without our mark, but nobody's configuration either, as containerd would
# read nothing in it.
remove_remains() { # file
  local content=''
  is_foreign "$1" && [[ -f $1 ]] || return 0
  IFS= read -r -d '' content <"$1"
  [[ $content =~ $toml_pattern ]] || rm -f -- "$1"
}

# Takes the mirror out of the way until it can be trusted. An upstream with certificates of its own keeps them.
pull_directly() { # host direct_toml
  local file="$certs_dir/$1/hosts.toml"
  is_right "$file" "$2" && return
  if [[ -z $2 ]] || ! write_atomically "$file" "$2" 2>/dev/null; then
    ! is_ours "$file" || remove "$file"
  fi
}

# Writes a file so that containerd sees all of it or nothing, also after a crash of the node.
write_atomically() { # file content
  local temp
  mkdir -p -- "$certs_dir" || return
  temp=$(mktemp -- "$certs_dir/.configure-containerd-registries.XXXXXXXXXX") || return
  if printf '%s\n' "$2" >"$temp" && chmod 0644 -- "$temp" && sync -- "$temp" && mkdir -p -- "${1%/*}" &&
    ! is_foreign "$1" && mv -f -T -- "$temp" "$1"; then
    sync -- "${1%/*}"
    return 0
  fi
  rm -f -- "$temp"
  return 1
}

configure() { # host endpoint hosts_toml direct_toml
  local file="$certs_dir/$1/hosts.toml" details interval=$probe_interval said=no begun=no
  local steady_until=$((SECONDS + probe_steady_for)) deadline=$((SECONDS + give_up_after))
  while true; do
    [[ $begun == no ]] || remove_remains "$file"
    begun=yes
    if is_foreign "$file"; then
      log "$1: $file is not ours, leaving it alone"
      return "$over"
    fi
    if is_right "$file" "$3"; then
      log "$1: pulls go through $2"
      return 0
    fi
    if ! mirrors_to "$file" "$2"; then
      ! exists "$file" || is_right "$file" "$4" || log "$1: the cache has moved to $2, pulls are direct until it answers"
      pull_directly "$1" "$4"
    fi
    wait_until_ready "$1" "$2" "$3" "$4" || return "$over"
    if details=$(write_atomically "$file" "$3" 2>&1) || is_foreign "$file"; then
      continue
    fi
    if ((SECONDS >= deadline)); then
      log "$1: giving up on writing $file after $give_up_after s ($details); pulls stay direct until this unit is restarted"
      return "$over"
    fi
    if [[ $said == no ]]; then
      log "$1: cannot write $file, trying again: ${details//$'\n'/ }"
      said=yes
    fi
    pause
  done
}

# Looks at a file that was right. Bash alone does that: no process is started for it.
notice() { # host hosts_toml
  local file="$certs_dir/$1/hosts.toml"
  is_right "$file" "$2" && return
  remove_remains "$file"
  log "$1: $file is lost or changed, restoring it"
  return 1
}

# Starts a job for each file that is not right any more, as long as there is one to look at.
watch() {
  local i status
  while ((${#pids[@]} > 0)); do
    sleep "$watch_interval" &
    wait "$!" 2>/dev/null # unlike a sleep in the foreground, a signal ends it at once
    for i in "${!pids[@]}"; do
      if [[ -n ${pids[i]} ]]; then
        kill -0 "${pids[i]}" 2>/dev/null && continue
        status=0
        wait "${pids[i]}" 2>/dev/null || status=$?
        pids[i]=''
        if ((status == over)); then
          unset "pids[i]"
          continue
        fi
      fi
      if ! notice "${hosts[i]}" "${files[i]}"; then
        configure "${hosts[i]}" "${endpoints[i]}" "${files[i]}" "${direct_files[i]}" &
        pids[i]=$!
      fi
    done
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

# Splits an argument into host, endpoint, upstream_url, endpoint_ca and upstream_ca, if it is one.
parse() { # argument
  local rest="$1,," field # what is not given is empty
  for field in host endpoint upstream_url endpoint_ca upstream_ca; do
    printf -v "$field" '%s' "${rest%%,*}"
    rest=${rest#*,}
  done
  [[ $host,$endpoint,$upstream_url =~ ^$host_pattern,$url_pattern,$url_pattern$ && ${rest:-,} == , &&
    $endpoint_ca =~ ^$ca_pattern$ && $upstream_ca =~ ^$ca_pattern$ ]] || return
  [[ $endpoint == https:* ]] || endpoint_ca=''
  [[ $upstream_url == https:* ]] || upstream_ca=''
}

main() {
  local argument host endpoint upstream_url endpoint_ca upstream_ca i
  local -a hosts=() endpoints=() files=() direct_files=() pids=()
  if [[ $* == --stopped ]]; then
    remove_files_if_disabled
    exit 0
  fi
  for argument in "$@"; do
    if ! parse "$argument"; then
      log "ignoring the argument $(printf '%q' "$argument"): it is not <upstream_host>,<endpoint>,<upstream_url>[,<ca>[,<ca>]]"
      continue
    fi
    hosts+=("$host")
    endpoints+=("$endpoint")
    files+=("$(hosts_toml "$endpoint" "$upstream_url" "$endpoint_ca" "$upstream_ca")")
    direct_files+=("${upstream_ca:+$(hosts_toml '' "$upstream_url" '' "$upstream_ca")}")
  done

  trap stop TERM INT HUP
  mkdir -p -- "$certs_dir"
  remove_temporary_files
  remove_stale_files "${hosts[@]}"
  for i in "${!hosts[@]}"; do
    configure "${hosts[i]}" "${endpoints[i]}" "${files[i]}" "${direct_files[i]}" &
    pids[i]=$!
  done
  [[ $watch_interval == 0 ]] || watch
  wait 2>/dev/null # bash reports jobs that systemd ends
  exit 0
}

main "$@"
