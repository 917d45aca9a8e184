#!/bin/bash
# Makes containerd pull through the registry caches of this cluster while they answer. Needs
# bash 4.4, curl 7.64, coreutils and systemctl.
#
# Each argument is <upstream_host>,<endpoint>,<upstream_url>[,<endpoint_ca>[,<upstream_ca>]].
# Together the arguments list all upstreams that have a cache. The last two fields are certificates:
# DER in base64, joined by dots.
#
# A loop probes all caches, and keeps each hosts.toml up to date. While the cache answers, the file
# names it as a mirror. Otherwise the file is for direct pulls, or does not exist. The loop removes
# our hosts.toml of every other upstream. It never changes a hosts.toml of somebody else.
set -o nounset -o pipefail
umask 0022
export LC_ALL=C

# Tests change these.
certs_dir=${CERTS_DIR:-/etc/containerd/certs.d}
run_dir=${RUN_DIR:-/run/configure-containerd-registries} # the unit's RuntimeDirectory
probe_interval=${PROBE_INTERVAL:-6500}                   # in ms between rounds, or up to 8 % less
probe_again=${PROBE_AGAIN:-300}                          # in ms, while a change is likely
probe_timeout=${PROBE_TIMEOUT:-1.5}                      # in s
health_port=${HEALTH_PORT:-5001}                         # of caches, without TLS
silence=${SILENCE:-3000}                                 # in ms without a byte: two probe timeouts

declare -rA needed=([direct]=2 [mirror]=3) # answers in a row that change the state
readonly mark='# managed by gardener-extension-registry-cache'
readonly node_agent_mark='# managed by gardener-node-agent'
readonly host_pattern='([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]+)?'
readonly url_pattern="https?://$host_pattern"
readonly ca_line='ca = "hosts.toml"' # relative to the folder of hosts.toml: the file itself
readonly ca_pattern='(MI[A-Za-z0-9+/]+=?=?(\.MI[A-Za-z0-9+/]+=?=?)*)?' # DER of certificates
readonly toml_pattern=$'(^|\n)[ \t]*(\\[|[A-Za-z0-9_."\'-]+[ \t]*=)'   # a table or a key
readonly silent_pattern='^direct000($|.*(timed out|[Tt]imeout))' # curl before 7.75 gives no reason

# The state of each upstream, by the index of its argument.
hosts=() endpoints=()
mirrors=() directs=() # hosts.toml with and without the cache; an empty one needs no file
answers=() reasons=() # of the last probe: HTTP status and curl's error; the same in words
states=() doubts=()   # new, mirror or direct; how many answers in a row contradict it
doubtful=()           # upstreams whose state may change
strict=() resets=()   # yes: probe only the endpoint; how many rounds may reset connections
hurries=()            # how many more times to ask between rounds
seen=()               # the content of hosts.toml when it was last right
routes=()             # what hosts.toml is: mirror, direct, foreign, or stuck (not writable)
theirs=() requests=() # yes: gardener-node-agent wrote hosts.toml; curl's configuration
declare -A inputs=() problems=()  # files of curl in run_dir; by upstream: what log_once has logged

log() { printf '%s\n' "$*" >&2; }

log_once() { # upstream problem (empty: the problem is over)
  [[ -z $2 || $2 == "${problems[$1]-}" ]] || log "$1: $2"
  problems[$1]=$2
}

pem() { # certificates...
  local certificate
  for certificate in ${1//./ } ${2//./ }; do
    printf -- '-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n' \
      "$(printf '%s\n' "$certificate" | fold -w 64)"
  done
}

# containerd fails a pull if it cannot read the file of "ca", so "ca" names hosts.toml itself. The
# certificates come before the first "ca", so a truncated file that parses contains them. A file for
# direct pulls keeps them for a pull that has parsed the file before, and reads "ca" only now.
hosts_toml() { # endpoint (empty for direct pulls) upstream_url endpoint_ca upstream_ca
  printf '%s\n' "$mark" '# Do not edit: this file goes away with the registry cache.'
  if [[ -n $3$4 ]]; then
    printf '%s\n' \
      '# What "ca" below refers to: containerd reads the certificates from this very file.' \
      "certificates = '''" "$(pem "$3" "$4")" "'''"
  fi
  printf '%s\n' "server = \"$2\"" ${4:+"$ca_line"}
  # containerd 1 cannot parse the brackets of IPv6 in a table's name. containerd 2 needs the table.
  if [[ $1 == *'['* && $(containerd --version 2>/dev/null) =~ \ v?1\. ]]; then
    printf '\n[host]\n  "%s" = {capabilities = ["pull", "resolve"]%s}\n' "$1" "${3:+, $ca_line}"
  elif [[ -n $1 ]]; then
    printf '%s\n' '' "[host.\"$1\"]" '  capabilities = ["pull", "resolve"]' \
      '  dial_timeout = "500ms"' ${3:+"  $ca_line"}
  fi
}

has_mark() { # file mark
  local first_line=''
  [[ -f $1 && ! -L $1 ]] || return
  IFS= read -r first_line 2>/dev/null <"$1"
  [[ $first_line == "$2" ]]
}

is_ours() { has_mark "$1" "$mark"; } # file

is_foreign() { [[ -e $1 || -L $1 ]] && ! is_ours "$1"; } # file

is_right() { # file content
  local content=''
  [[ -f $1 && -n $2 ]] || return
  IFS= read -r -d '' content 2>/dev/null <"$1" && return 1 # it contains a zero byte
  [[ $content == "$2"$'\n' ]]
}

# Removes one of our files, and its directory if that is empty: an empty directory would hide the
# node owner's configuration in certs.d/_default.
remove() { # file
  rm -f -- "$1" && { rmdir -- "${1%/*}" 2>/dev/null || true; }
}

# Removes what is left of one of our files. It contains neither our mark nor a key or a table, so
# containerd ignores it.
remove_remains() { # file
  local content=''
  is_foreign "$1" && [[ -f $1 && ! -L $1 ]] || return 0
  IFS= read -r -d '' content 2>/dev/null <"$1"
  [[ $content =~ $toml_pattern ]] || rm -f -- "$1" 2>/dev/null
}

remove_temporary_files() { rm -f -- "$certs_dir"/.configure-containerd-registries.*; }

# Removes our files of upstreams that are not among hosts: their clean-up may have missed this node.
remove_stale_files() {
  local file host problem
  for file in "$certs_dir"/*/hosts.toml; do
    host=${file%/hosts.toml}
    host=${host##*/}
    if [[ " ${hosts[*]-} " != *" $host "* ]] && is_ours "$file"; then
      problem=$(remove "$file" 2>&1) && problem="removed $file"
      log_once "$host" "it has no cache any more, ${problem//$'\n'/ }"
    fi
  done
}

# Writes a file so that containerd sees all of it or nothing, even after a crash of the node.
write_atomically() { # file content
  local temp
  printf 'cannot write %s: ' "$1"
  mkdir -p -- "$certs_dir" || return
  temp=$(mktemp -- "$certs_dir/.configure-containerd-registries.XXXXXXXXXX") || return
  if printf '%s\n' "$2" >"$temp" && chmod 0644 -- "$temp" && sync -- "$temp" &&
    mkdir -p -- "${1%/*}" && ! is_foreign "$1" && mv -f -T -- "$temp" "$1"; then
    sync -- "${1%/*}"
    return 0
  fi
  rm -f -- "$temp"
  return 1
}

add() { # argument
  local host endpoint upstream_url endpoint_ca upstream_ca field i=${#hosts[@]}
  local rest="$1,," # missing fields are empty
  for field in host endpoint upstream_url endpoint_ca upstream_ca; do
    printf -v "$field" '%s' "${rest%%,*}"
    rest=${rest#*,}
  done
  if [[ ! $host,$endpoint,$upstream_url =~ ^$host_pattern,$url_pattern,$url_pattern$ ||
    ! $endpoint_ca =~ ^$ca_pattern$ || ! $upstream_ca =~ ^$ca_pattern$ || ${rest:-,} != , ||
    " ${hosts[*]-} " == *" $host "* ]]; then
    log "ignoring the argument $(printf '%q' "$1"): its upstream has one already, or it is not" \
      '<upstream_host>,<endpoint>,<upstream_url>[,<ca>[,<ca>]]'
    return
  fi
  [[ $endpoint == https:* ]] || endpoint_ca=''
  [[ $upstream_url == https:* ]] || upstream_ca=''
  hosts[i]=$host endpoints[i]=$endpoint states[i]=new doubts[i]=0 seen[i]='' strict[i]=''
  mirrors[i]=$(hosts_toml "$endpoint" "$upstream_url" "$endpoint_ca" "$upstream_ca") directs[i]=''
  case ${upstream_ca:+private}$host,$upstream_url in
    "$host,https://$host" | docker.io,https://registry-1.docker.io) ;; # containerd knows the URL
    *) directs[i]=$(hosts_toml '' "$upstream_url" "$endpoint_ca" "$upstream_ca") ;;
  esac
  requests[i]="write-out = \"$i %{http_code} %{errormsg}\\n\"
output = /dev/null
max-time = $probe_timeout
noproxy = \"*\"
globoff
"
  if [[ -n $endpoint_ca ]]; then
    requests[i]+="cacert = \"$run_dir/$i.pem\""$'\n'
    inputs[$i.pem]=${mirrors[i]} # curl finds the certificates in the text, as containerd does
  fi
}

# Probes caches with one curl process. With HTTPS, curl trusts a cache if containerd would. A TLS
# handshake is expensive for a cache, so 39 of 40 rounds probe only the health port of a healthy
# cache. If this port does not answer 200, the next probe asks the endpoint, whose answer decides.
# curl before 7.66 asks one cache after the other.
probe() { # i...
  local i url answer limit=$((${probe_timeout%.*} + 2))
  [[ -n $parallel ]] || limit=$((limit * $#))
  answers=() inputs[requests]=''
  for i in "$@"; do
    url=${endpoints[i]}/v2/
    if ((rounds % 40 == 0)); then
      strict[i]=''
    elif [[ ${states[i]}${doubts[i]}${strict[i]},$url =~ ^mirror0,https://$host_pattern ]]; then
      url=http://${BASH_REMATCH[1]}:$health_port/debug/health
    fi
    inputs[requests]+="${inputs[requests]:+$'next\n'}url = \"$url\""$'\n'${requests[i]}
  done
  {
    [[ -d $run_dir ]] || mkdir -p -- "$run_dir"
    for i in "${!inputs[@]}"; do
      is_right "$run_dir/$i" "${inputs[$i]}" || printf '%s\n' "${inputs[$i]}" >"$run_dir/$i"
    done
    : >"$run_dir/answers" || return
    timeout --foreground --kill-after=1 "$limit" \
      curl --disable ${parallel:+--parallel} --config "$run_dir/requests" >"$run_dir/answers" &
  } 2>/dev/null
  wait "$!"
  while read -r i answer; do
    [[ ! $i =~ ^(0|[1-9][0-9]*)$ ]] || answers[i]=${answer//[![:print:]]/}
  done <"$run_dir/answers"
}

judge() { # i
  local i=$1 answer=${answers[$1]:-000} says=direct
  case $answer in
    200) says=mirror reasons[i]=answers ;;
    000*) reasons[i]="does not answer ($answer)" ;;
    *) reasons[i]="answers $answer" ;;
  esac
  # A restart of the unit must not change the state.
  if [[ ${states[i]} == new ]] && is_right "$certs_dir/${hosts[i]}/hosts.toml" "${mirrors[i]}"; then
    states[i]=mirror
  fi
  if [[ ${states[i]} == "$says" ]]; then
    [[ $says${doubts[i]} != mirror1 ]] || strict[i]=yes # the cache answers after a failed probe
    doubts[i]=0
  elif ((++doubts[i] >= needed[$says])) || [[ ${states[i]} == new ]]; then
    states[i]=$says doubts[i]=0 resets[i]=10 hurries[i]=9
    log "${hosts[i]}: $says: ${endpoints[i]} ${reasons[i]}"
  fi
  [[ ! $says$answer =~ $silent_pattern ]] || hurries[i]=0
}

# Makes hosts.toml match the state.
apply() { # i
  local i=$1 host=${hosts[$1]} wanted=${mirrors[$1]} problem='' file
  file="$certs_dir/$host/hosts.toml" routes[i]=${states[i]}
  [[ ${states[i]} == mirror ]] || wanted=${directs[i]}
  [[ -z ${seen[i]} ]] || remove_remains "$file"
  unset "theirs[$i]"
  if is_foreign "$file"; then
    routes[i]=foreign problem="$file is not ours, leaving it alone"
    ! has_mark "$file" "$node_agent_mark" || theirs[i]=yes
  elif is_right "$file" "$wanted"; then
    seen[i]=$wanted
  elif [[ -z $wanted ]]; then
    seen[i]=''
    ! is_ours "$file" || problem=$(remove "$file" 2>&1) || routes[i]=stuck
  elif ((doubts[i] == 0)); then
    if problem=$(write_atomically "$file" "$wanted" 2>&1); then
      [[ ${seen[i]} != "$wanted" ]] || log "$host: $file was lost or changed, restored it"
      seen[i]=$wanted problem=''
    else
      routes[i]=stuck
      # A slow pull is better than none: without a file containerd guesses the URL of the upstream.
      if is_ours "$file" && ! is_right "$file" "${directs[i]}" &&
        { [[ -z ${directs[i]} ]] || ! is_right "$file" "${mirrors[i]}"; }; then
        remove "$file" 2>/dev/null
      fi
    fi
  fi
  log_once "$host" "${problem//$'\n'/ }"
}

# Resets connections on which no byte has ever arrived, or none for some time. A pull that waits for
# the cache then bypasses it. A connection with bytes that the pull has not read yet is kept: that
# pull does not wait for the cache.
reset() { # filter of ss...
  local line unread='' from='' to='' filter=()
  while read -r line; do
    if [[ $line =~ ^[A-Z][A-Z0-9-]*\ +([0-9]+)\ +[0-9]+\ +([^ ]+)\ +([^ ]+) ]]; then
      unread=${BASH_REMATCH[1]} from=${BASH_REMATCH[2]} to=${BASH_REMATCH[3]}
    elif [[ $unread == 0 ]] && { [[ $line != *' bytes_received:'* ]] ||
      { [[ $line =~ \ lastrcv:([0-9]+) ]] && ((BASH_REMATCH[1] >= silence)); }; }; then
      filter+=(${filter:+or} '(' src "$from" and dst "$to" ')')
    fi
  done < <(ss -tin "$@" 2>/dev/null) # of iproute2, if available
  ((${#filter[@]} == 0)) || ss -tn --kill "${filter[@]}" >/dev/null 2>&1
}

# Writes one line for each upstream. The age of the file shows that the loop is alive.
report() {
  local i
  for i in "${!hosts[@]}"; do
    printf '%s %s %s\n' "${hosts[i]}" "${routes[i]}" \
      "${problems[${hosts[i]}]:-${endpoints[i]} ${reasons[i]}}"
  done >"$run_dir/.state" && mv -f -- "$run_dir/.state" "$run_dir/state"
}

round() { # i...
  local i later=() filter=()
  doubtful=()
  (($# == 0)) || probe "$@"
  for i in "$@"; do
    judge "$i"
    ((doubts[i] == 0)) || doubtful+=("$i")
    # Writes are slow on a busy disk, so first remove the files that must not exist.
    if [[ ${states[i]} == direct && -z ${directs[i]} ]]; then apply "$i"; else later+=("$i"); fi
  done
  for i in "${later[@]}"; do
    apply "$i"
  done
  # A cache that refuses connections may be stopping. It completes its answers, so do not reset its
  # connections.
  for i in "$@"; do
    [[ ! ${routes[i]}${answers[i]-} =~ $silent_pattern ]] || ((resets[i]-- < 1)) ||
      filter+=(${filter:+or} dst "${endpoints[i]#*//}")
  done
  ((${#filter[@]} == 0)) || reset "${filter[@]}"
  report 2>/dev/null || log_once "$run_dir" 'cannot write the state file'
}

# Asks caches until no answer contradicts their state: the third answer decides.
settle() { # i...
  round "$@"
  while ((${#doubtful[@]} > 0)); do
    pause "$probe_again"
    round "${doubtful[@]}"
  done
}

pause() { # ms
  sleep "$(($1 > 0 ? $1 : 0))e-3" &
  wait "$!" # a signal ends this at once, unlike a sleep in the foreground
}

uptime() { # variable that receives the time in ms
  local seconds # with two decimals
  read -r seconds _ </proc/uptime
  printf -v "$1" %s "$((10#${seconds/./}0))"
}

# gardener-node-agent starts the unit, and then removes each hosts.toml that it wrote for the
# extension that this one replaces. This loop writes ours at once: without a file, containerd
# guesses the URL of the upstream. After 200 checks, only the rounds write ours.
follow_node_agent() { # until (ms)
  local i now
  while uptime now && ((${#theirs[@]} > 0 && now < $1 && looks-- > 0)); do
    pause "$probe_again"
    for i in "${!theirs[@]}"; do
      apply "$i"
    done
    report 2>/dev/null
  done
}

# Asks caches that have just failed, but not silently, between two rounds: they may be starting. A
# probe begins only if its timeout ends before the next round.
hurry() { # until (ms)
  local i now starting
  while uptime now && ((now + probe_interval / 5 + silence / 2 < $1)); do
    starting=()
    for i in "${!hosts[@]}"; do
      [[ ${states[i]} != direct ]] || ((hurries[i]-- < 1)) || starting+=("$i")
    done
    ((${#starting[@]} > 0)) || return 0
    pause $((probe_interval / 5))
    settle "${starting[@]}"
  done
}

# shellcheck disable=SC2046,SC2317 # the trap calls it
stop() {
  kill $(jobs -p) 2>/dev/null
  wait 2>/dev/null
  remove_temporary_files
  exit 0
}

main() {
  local argument parallel='' now due rounds=$RANDOM looks=200
  if [[ $* == --stopped ]]; then
    # systemd calls this after each stop of the unit. The unit is disabled only when it has left the
    # OperatingSystemConfig: gardener-node-agent then removes it, and nothing of ours runs again.
    if [[ $(systemctl is-enabled configure-containerd-registries.service) == disabled ]]; then
      remove_temporary_files
      remove_stale_files
    fi
    exit 0
  fi
  trap stop TERM INT HUP
  mkdir -p -- "$certs_dir"
  remove_temporary_files
  for argument in "$@"; do
    add "$argument"
  done
  ! curl --disable --parallel --version >/dev/null 2>&1 || parallel=yes
  while true; do
    uptime due
    remove_stale_files
    ((++rounds))
    settle "${!hosts[@]}"
    ((due += probe_interval * (920 + RANDOM % 81) / 1000))
    follow_node_agent "$due"
    hurry "$due"
    uptime now
    pause $((due - now))
  done
}

main "$@"
