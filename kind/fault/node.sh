#!/usr/bin/env bash
# The faults of a node. Each is a folder that says what it is and how it ends; all of them are gone after a restart of the
# node, as what they broke is.
#
#   begin ID SECONDS DESCRIPTION KIND ARGUMENT   breaks something, and mends it after SECONDS unless that is 0
#   end ID                                       mends it; where there is no such fault there is nothing to do
#   join ID                                      gives a machine that was lost, and has started anew, its gardener-node-agent
#   list                                         prints the descriptions of those that still hold, one a line, and ends the others
#   check KIND ARGUMENT                          fails, with the reason, where this node cannot break that
#   look                                         prints the same and changes nothing, also while others begin and end faults
#
# KIND and ARGUMENT:
#
#   drop ADDRESSES, reject ADDRESSES   what goes to IP addresses, from the node or its pods
#   question EXPRESSIONS               what goes to a name server and has such a question in it (expressions of nft)
#   port NUMBER                        what comes to a TCP port of the node from elsewhere
#   delay PROGRAM TIME PORT SERVICES   what comes to an API server from elsewhere, by the port or IP addresses of its Service
#                                      (port 443), goes through PROGRAM, which hands answers on after TIME
#   stop PODS                          the processes of pods, NAMESPACE/NAME each, are stopped, not killed
#   unit NAME                          a unit of systemd does not run
#   full VOLUMES                       volumes, NAME=PATH each, in containers of pods of kube-system have no byte left
#   loss LABELS                        the machine is gone: the caller does it, this keeps what a machine is given to join
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
  # The way back is there before the fault is.
  if [[ $seconds != 0 ]]; then
    systemd-run --quiet --collect --unit "testbed-fault-$id" --on-active "${seconds}s" --timer-property AccuracySec=100ms \
      /bin/bash "$faults/$id/node.sh" end "$id"
  fi
  "begin_$kind" "$id" "$argument"
  # Ended meanwhile, by whoever gave up waiting for this.
  [[ -d $faults/$id ]] || "end_$kind" "$id" "$argument"
}

end() {
  local id=$1 fault=$faults/$1
  [[ -d $fault ]] || return 0
  "end_$(<"$fault/kind")" "$id" "$(<"$fault/argument")"
  rm -rf -- "$fault"
  systemctl stop "testbed-fault-$id.timer" 2>/dev/null || true # it may have none
}

list() { holding end; }

look() { holding :; }

check() { "check_$1" "$2"; }

# holding prints what holds, and does $1 with the ID of each fault that does not.
holding() {
  local fault id kind argument
  for fault in "$faults"/*; do
    id=${fault##*/}
    # What is gone by now has ended.
    { kind=$(cat -- "$fault/kind") && argument=$(cat -- "$fault/argument"); } 2>/dev/null || continue
    if "holds_$kind" "$id" "$argument"; then
      cat -- "$fault/description" 2>/dev/null || [[ ! -e $fault ]]
    else
      "$1" "$id"
    fi
  done
}

# filter applies rules to what the node or its pods send, before address translation by kube-proxy (dstnat, -100).
filter() {
  nft -f - <<TABLE
table inet testbed-fault-$1 {
  chain output { type filter hook output priority -300; $2}
  chain forward { type filter hook forward priority -300; $2}
}
TABLE
}

# addressed drops or rejects what is sent to addresses.
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

# What is on this node itself goes on: the kubelet would start an API server anew that it cannot reach.
begin_port() {
  nft -f - <<TABLE
table inet testbed-fault-$1 {
  chain input { type filter hook input priority -300; iifname != "lo" tcp dport $2 reject with tcp reset; }
}
TABLE
}
end_port() { unfilter "$1"; }
holds_port() { filtered "$1"; }

# delay_port is where the proxy listens; nothing else on a node does.
delay_port=6440

# delay_rules lead new connections to the proxy. Those that are open are reset when they send something: they would go past it.
# They come before kube-proxy, which translates the Service's address at the priority -100.
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

# The argument of delay is several words.
# shellcheck disable=SC2086
check_delay() {
  delay_rules check $1 | nft --check -f -
  if [[ -n $(ss -Hltn "sport = :$delay_port") ]]; then
    echo "something listens on port $delay_port of this node already: another delay?" >&2
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
  systemctl stop "testbed-delay-$1.service" 2>/dev/null || true # it may not have begun
  rm -f -- "${2%% *}"
}
holds_delay() { filtered "$1" && systemctl is-active --quiet "testbed-delay-$1.service"; }

# processes prints the first process of each container of a pod that runs here.
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
    echo "no container of $2 runs here" >&2
    return 1
  fi
}

# stopped prints those of the fault's processes that are there and stopped.
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

# An overlay that only reads the volume, and writes into a file system of memory that is full, is laid over the volume in the
# container. Nothing else notices, and the volume itself is not touched: what is deleted meanwhile is there again afterwards.
begin_full() {
  local id=$1 volume path pids pid root
  for volume in $2; do
    path=${volume#*=}
    pids=$(processes kube-system "${volume%%=*}")
    for pid in $pids; do
      root=/proc/$pid/root
      [[ -d $root$path ]] || continue
      if grep -q " $path .* testbed-fault-" "/proc/$pid/mountinfo"; then
        echo "$volume has no byte left already" >&2
        return 1
      fi
      printf '%s %s\n' "$pid" "$path" >>"$faults/$id/volumes"
      mount --namespace "$pid" -cn -t tmpfs -o "size=64k,mode=0700" "testbed-fault-$id" /dev/shm
      mkdir "$root/dev/shm/upper" "$root/dev/shm/work"
      chown --reference "$root$path" "$root/dev/shm/upper"
      chmod --reference "$root$path" "$root/dev/shm/upper"
      mount --namespace "$pid" -cn -t overlay \
        -o "lowerdir=$path,upperdir=/dev/shm/upper,workdir=/dev/shm/work" "testbed-fault-$id" "$path"
      dd if=/dev/zero of="$root/dev/shm/filler" bs=4k 2>/dev/null || true # until no space is left on the device
    done
  done
  if ! [[ -e $faults/$id/volumes ]]; then
    echo "no container with a volume of $2 runs here" >&2
    return 1
  fi
}

# covered prints the fault's mounts that are there: process and mount point, the last one first.
covered() {
  local pid path point
  [[ -e $faults/$1/volumes ]] || return 0
  while read -r pid path; do
    for point in "$path" /dev/shm; do
      if grep -qs " $point .* testbed-fault-$1 " "/proc/$pid/mountinfo"; then echo "$pid $point"; fi
    done
  done <"$faults/$1/volumes"
}

# umount reads /proc/self, and /proc of a container is one of other processes: for the moment it has that of the node.
end_full() {
  local left pid path failed=''
  left=$(covered "$1")
  while read -r pid path; do
    [[ -n $pid && -e /proc/$pid ]] || continue # nothing is left, or the container has ended meanwhile
    mount --namespace "$pid" -cn -t proc proc /proc
    umount --namespace "$pid" -cnl "$path" || failed=yes
    umount --namespace "$pid" -cnl /proc
  done <<<"$left"
  [[ -z $failed ]]
}
holds_full() { [[ -n $(covered "$1") ]]; }

# agent is what user data bring onto a machine.
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

# join gives a machine that has started anew what it had before its loss.
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
