#!/usr/bin/env bash
# Manages the faults of a node. Each fault is a folder with its description and the script that ends it. A
# restart of the node ends all faults and removes the folders.
#
#   begin ID SECONDS DESCRIPTION KIND ARGUMENT   applies a fault and ends it after SECONDS; 0 means never
#   end ID                                       ends a fault; does nothing if there is no such fault
#   join ID                                      restores gardener-node-agent on a lost machine that runs again
#   list                                         prints the descriptions of active faults, one per line, and ends the others
#   look                                         like list, but changes nothing; safe while faults begin and end
#   check KIND ARGUMENT                          fails, with a reason, if this node cannot apply such a fault
#
# KIND and ARGUMENT:
#
#   drop ADDRESSES, reject ADDRESSES   drops or rejects packets from the node and its pods to IP addresses
#   question EXPRESSIONS               rejects DNS questions that match nft expressions
#   port NUMBER                        rejects connections to a TCP port of the node from elsewhere
#   delay PROGRAM TIME PORT SERVICES   redirects connections to an API server from elsewhere to PROGRAM, which delays
#                                      answers by TIME. PORT is the server's, SERVICES are IP addresses with port 443.
#   answer PROGRAM STATUS ADDRESSES    redirects the node's connections to ports 5000 and 5001 of ADDRESSES to PROGRAM
#   stop PODS                          stops (SIGSTOP) the processes of pods, each NAMESPACE/NAME
#   unit NAME                          stops a systemd unit
#   full VOLUMES                       fills volumes of pods of kube-system, each POD=PATH
#   loss LABELS                        keeps the files that a machine needs to join again; the caller removes the machine
set -euo pipefail

faults=${TESTBED_FAULTS:-/run/testbed-faults}

begin() {
  local id=$1 seconds=$2 description=$3 kind=$4 argument=$5 new
  mkdir -p -- "$faults"
  new=$(mktemp -d -- "$faults/.new-XXXXXX")
  printf '%s\n' "$description" >"$new/description"
  printf '%s\n' "$kind" >"$new/kind"
  printf '%s\n' "$argument" >"$new/argument"
  printf '%s\n' "$BASH_EXECUTION_STRING" >"$new/node.sh"
  mv -T -- "$new" "$faults/$id"
  # Schedule the end first, so that it happens even if this process is killed.
  if [[ $seconds != 0 ]]; then
    systemd-run --quiet --collect --unit "testbed-fault-$id" --on-active "${seconds}s" --timer-property AccuracySec=100ms \
      /bin/bash "$faults/$id/node.sh" end "$id"
  fi
  "begin_$kind" "$id" "$argument"
  # A caller that timed out may have ended the fault in the meantime.
  [[ -d $faults/$id ]] || "end_$kind" "$id" "$argument"
}

end() {
  local id=$1 fault=$faults/$1
  [[ -d $fault ]] || return 0
  "end_$(<"$fault/kind")" "$id" "$(<"$fault/argument")"
  rm -rf -- "$fault"
  systemctl stop "testbed-fault-$id.timer" 2>/dev/null || true # there may be none
}

list() { holding end; }

look() { holding :; }

check() { "check_$1" "$2"; }

# holding prints active faults and calls $1 with the ID of each inactive fault.
holding() {
  local fault id kind argument
  for fault in "$faults"/*; do
    id=${fault##*/}
    # A fault that ends in the meantime loses its files.
    { kind=$(cat -- "$fault/kind") && argument=$(cat -- "$fault/argument"); } 2>/dev/null || continue
    if "holds_$kind" "$id" "$argument"; then
      cat -- "$fault/description" 2>/dev/null || [[ ! -e $fault ]]
    else
      "$1" "$id"
    fi
  done
}

# filter applies rules to packets of the node and its pods, before kube-proxy's DNAT (priority -100).
filter() {
  nft -f - <<TABLE
table inet testbed-fault-$1 {
  chain output { type filter hook output priority -300; $2}
  chain forward { type filter hook forward priority -300; $2}
}
TABLE
}

# addressed drops or rejects packets to addresses.
addressed() {
  local id=$1 verdict=$3 rules='' address family
  for address in $2; do
    family=ip
    if [[ $address == *:* ]]; then family=ip6; fi
    rules+="$family daddr $address $verdict; "
  done
  filter "$id" "$rules"
}

unfilter() {
  if filtered "$1"; then nft delete table inet "testbed-fault-$1"; fi
}

filtered() { nft list table inet "testbed-fault-$1" >/dev/null 2>&1; }

begin_drop() { addressed "$1" "$2" drop; }
end_drop() { unfilter "$1"; }
holds_drop() { filtered "$1"; }

begin_reject() { addressed "$1" "$2" "meta l4proto tcp reject with tcp reset"; }
end_reject() { unfilter "$1"; }
holds_reject() { filtered "$1"; }

begin_question() { filter "$1" "udp dport 53 $2 reject; "; }
end_question() { unfilter "$1"; }
holds_question() { filtered "$1"; }

# Connections from this node still work. Otherwise the kubelet would restart the API server.
begin_port() {
  nft -f - <<TABLE
table inet testbed-fault-$1 {
  chain input { type filter hook input priority -300; iifname != "lo" tcp dport $2 reject with tcp reset; }
}
TABLE
}
end_port() { unfilter "$1"; }
holds_port() { filtered "$1"; }

# delay_port is the port of the proxy. Nothing else on a node uses it.
delay_port=6440

# delay_rules prints rules that redirect new connections to the proxy. The rules reset open connections,
# which would bypass the proxy, at their next packet. They run before kube-proxy's DNAT (priority -100).
delay_rules() {
  local id=$1 port=$4 service family redirects=''
  shift 4
  for service in "$@"; do
    family=ip
    if [[ $service == *:* ]]; then family=ip6; fi
    redirects+="    iifname != \"lo\" $family daddr $service tcp dport 443 redirect to :$delay_port"$'\n'
  done
  cat <<TABLE
table inet testbed-fault-$id {
  chain prerouting {
    type nat hook prerouting priority -110;
    iifname != "lo" fib daddr type local tcp dport $port redirect to :$delay_port
$redirects
  }
  chain input {
    type filter hook input priority -300;
    iifname != "lo" tcp dport $port reject with tcp reset
  }
}
TABLE
}

# The argument of delay has several words.
# shellcheck disable=SC2086
check_delay() {
  delay_rules check $1 | nft --check -f -
  if [[ -n $(ss -Hltn "sport = :$delay_port") ]]; then
    echo "port $delay_port of this node is in use: delete the other latency fault first" >&2
    return 1
  fi
}

# shellcheck disable=SC2086
begin_delay() {
  local id=$1 program delay port
  read -r program delay port _ <<<"$2"
  systemd-run --quiet --collect --unit "testbed-delay-$id" --property Type=notify \
    "$program" ":$delay_port" "127.0.0.1:$port" "$delay"
  delay_rules $id $2 | nft -f -
}

end_delay() {
  unfilter "$1"
  systemctl stop "testbed-delay-$1.service" 2>/dev/null || true # may not have started
  rm -f -- "${2%% *}"
}
holds_delay() { filtered "$1" && systemctl is-active --quiet "testbed-delay-$1.service"; }

# answer_port is the port of the program that answers for a cache. Open connections, which would
# bypass it, are reset.
answer_port=6441

begin_answer() {
  local id=$1 program status addresses address family redirects=''
  read -r program status addresses <<<"$2"
  systemd-run --quiet --collect --unit "testbed-answer-$id" --property Type=notify "$program" ":$answer_port" "$status"
  for address in $addresses; do
    family=ip
    if [[ $address == *:* ]]; then family=ip6; fi
    redirects+="$family daddr $address tcp dport { 5000, 5001 } redirect to :$answer_port; "
  done
  nft -f - <<TABLE
table inet testbed-fault-$id {
  chain output { type nat hook output priority -110; $redirects}
}
TABLE
  for address in $addresses; do
    ss --kill --no-header dst "$address" dport = :5000 >/dev/null 2>&1 || true # fails for other families
  done
}

end_answer() {
  unfilter "$1"
  systemctl stop "testbed-answer-$1.service" 2>/dev/null || true # may not have started
  rm -f -- "${2%% *}" "${2%% *}.pem"
}
holds_answer() { filtered "$1" && systemctl is-active --quiet "testbed-answer-$1.service"; }

# processes prints the first process of each container of a pod on this node.
processes() {
  local containers container
  containers=$(crictl ps --quiet --label "io.kubernetes.pod.namespace=$1" --label "io.kubernetes.pod.name=$2")
  for container in $containers; do
    crictl inspect --output go-template --template '{{.info.pid}}' "$container"
    echo
  done
}

begin_stop() {
  local id=$1 pod pids pid
  for pod in $2; do
    pids=$(processes "${pod%%/*}" "${pod#*/}")
    for pid in $pids; do
      printf '%s\n' "$pid" >>"$faults/$id/processes"
      kill -STOP "$pid"
    done
  done
  if ! [[ -e $faults/$id/processes ]]; then
    echo "no container of $2 runs on this node" >&2
    return 1
  fi
}

# stopped prints the processes of the fault that still exist and are stopped.
stopped() {
  local pid
  [[ -e $faults/$1/processes ]] || return 0
  while read -r pid; do
    if grep -qs '^State:[[:space:]]*T' "/proc/$pid/status"; then echo "$pid"; fi
  done <"$faults/$1/processes"
}

end_stop() {
  local pid
  for pid in $(stopped "$1"); do kill -CONT "$pid"; done
}
holds_stop() { [[ -n $(stopped "$1") ]]; }

# Mounts an overlay over the volume in the container. The overlay reads the volume and writes to a full
# tmpfs. Other processes do not see it, and the volume does not change: files that are deleted during the
# fault are back at its end.
begin_full() {
  local id=$1 volume path pids pid root
  for volume in $2; do
    path=${volume#*=}
    pids=$(processes kube-system "${volume%%=*}")
    for pid in $pids; do
      root=/proc/$pid/root
      [[ -d $root$path ]] || continue
      if grep -q " $path .* testbed-fault-" "/proc/$pid/mountinfo"; then
        echo "$volume is already full" >&2
        return 1
      fi
      printf '%s %s\n' "$pid" "$path" >>"$faults/$id/volumes"
      mount --namespace "$pid" -cn -t tmpfs -o "size=64k,mode=0700" "testbed-fault-$id" /dev/shm
      mkdir "$root/dev/shm/upper" "$root/dev/shm/work"
      chown --reference "$root$path" "$root/dev/shm/upper"
      chmod --reference "$root$path" "$root/dev/shm/upper"
      mount --namespace "$pid" -cn -t overlay \
        -o "lowerdir=$path,upperdir=/dev/shm/upper,workdir=/dev/shm/work" "testbed-fault-$id" "$path"
      dd if=/dev/zero of="$root/dev/shm/filler" bs=4k 2>/dev/null || true # ends with ENOSPC
    done
  done
  if ! [[ -e $faults/$id/volumes ]]; then
    echo "no container with a volume of $2 runs on this node" >&2
    return 1
  fi
}

# covered prints the existing mounts of the fault: process and mount point, the newest first.
covered() {
  local pid path point
  [[ -e $faults/$1/volumes ]] || return 0
  while read -r pid path; do
    for point in "$path" /dev/shm; do
      if grep -qs " $point .* testbed-fault-$1 " "/proc/$pid/mountinfo"; then echo "$pid $point"; fi
    done
  done <"$faults/$1/volumes"
}

# umount reads /proc/self, which the /proc of the container does not have for a process of the node. So the
# node's /proc is mounted over it temporarily.
end_full() {
  local left pid path failed=''
  left=$(covered "$1")
  while read -r pid path; do
    [[ -n $pid && -e /proc/$pid ]] || continue # no mounts, or the container has ended
    mount --namespace "$pid" -cn -t proc proc /proc
    umount --namespace "$pid" -cnl "$path" || failed=yes
    umount --namespace "$pid" -cnl /proc
  done <<<"$left"
  [[ -z $failed ]]
}
holds_full() { [[ -n $(covered "$1") ]]; }

# agent lists the files that user data creates on a machine.
agent=(
  /opt/bin/gardener-node-agent /etc/systemd/system/gardener-node-agent.service /var/lib/gardener-node-agent/machine-name
  /var/lib/gardener-node-agent/credentials/kubeconfig-testbed /var/lib/gardener-node-agent/config-*.yaml
)

begin_loss() {
  [[ -e ${agent[0]} ]] || return 0
  tar -cf "$faults/$1/agent.tar" --ignore-failed-read -- "${agent[@]}" 2>/dev/null
}
end_loss() { :; }
holds_loss() {
  if ! systemctl is-active --quiet kubelet.service; then return 0; fi
  [[ -e $faults/$1/agent.tar ]] && ! systemctl is-active --quiet gardener-node-agent.service
}

# join restores the files that the machine had before its loss.
join() {
  [[ -e $faults/$1/agent.tar ]] || return 0
  tar -C / -xf "$faults/$1/agent.tar"
  systemctl daemon-reload
  systemctl enable --quiet gardener-node-agent.service
  systemctl start gardener-node-agent.service
}

begin_unit() { systemctl stop "$2"; }
end_unit() { systemctl start "$2"; }
holds_unit() { ! systemctl is-active --quiet "$2"; }

"$@"
