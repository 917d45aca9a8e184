#!/usr/bin/env bash
# Manages the faults of a node. Each fault is a folder with its description and the script that ends it. A
# restart of the node ends all faults and removes the folders.
#
#   begin ID SECONDS DESCRIPTION METHOD ARGUMENT   applies a fault and ends it after SECONDS; 0 means never
#   end ID                                         ends a fault; does nothing if there is no such fault
#   join ID                                        restores gardener-node-agent on a lost machine that runs again
#   list                                           prints the descriptions of active faults, one per line, and ends the others
#   look                                           like list, but changes nothing; safe while faults begin and end
#
# Each method is one function, fault_METHOD begin|end|holds ID ARGUMENT. begin applies the fault, end ends it (even
# if it began only in part), and holds succeeds if the fault is active.
set -euo pipefail

faults=${TESTBED_FAULTS:-/run/testbed-faults}

begin() {
  local id=$1 seconds=$2 description=$3 method=$4 argument=$5 new
  mkdir -p -- "$faults"
  new=$(mktemp -d -- "$faults/.new-XXXXXX")
  printf '%s\n' "$description" >"$new/description"
  printf '%s\n' "$method" >"$new/method"
  printf '%s\n' "$argument" >"$new/argument"
  printf '%s\n' "$BASH_EXECUTION_STRING" >"$new/node.sh"
  mv -T -- "$new" "$faults/$id"
  # Schedule the end first, so that it happens even if this process is killed.
  if [[ $seconds != 0 ]]; then
    systemd-run --quiet --collect --unit "testbed-fault-$id" --on-active "${seconds}s" --timer-property AccuracySec=100ms \
      /bin/bash "$faults/$id/node.sh" end "$id"
  fi
  "fault_$method" begin "$id" "$argument"
  # A caller that timed out may have ended the fault in the meantime.
  [[ -d $faults/$id ]] || "fault_$method" end "$id" "$argument"
}

end() {
  local id=$1 fault=$faults/$1
  [[ -d $fault ]] || return 0
  "fault_$(<"$fault/method")" end "$id" "$(<"$fault/argument")"
  rm -rf -- "$fault"
  systemctl stop "testbed-fault-$id.timer" 2>/dev/null || true # there may be none
}

list() { holding end; }

look() { holding :; }

# holding prints active faults and calls $1 with the ID of each inactive fault.
holding() {
  local fault id method argument
  for fault in "$faults"/*; do
    id=${fault##*/}
    # A fault that ends in the meantime loses its files.
    { method=$(cat -- "$fault/method") && argument=$(cat -- "$fault/argument"); } 2>/dev/null || continue
    if "fault_$method" holds "$id" "$argument"; then
      cat -- "$fault/description" 2>/dev/null || [[ ! -e $fault ]]
    else
      "$1" "$id"
    fi
  done
}

# rules prints nft rules that apply the statement $2 to packets to the addresses $1.
rules() {
  local address family
  for address in $1; do
    family=ip
    if [[ $address == *:* ]]; then family=ip6; fi
    printf '%s daddr %s %s; ' "$family" "$address" "$2"
  done
}

# filter begins, ends or checks a filter of packets from the node and its pods, before kube-proxy's DNAT
# (priority -100): filter VERB ID ADDRESSES VERDICT.
filter() {
  local rules
  rules=$(rules "$3" "$4")
  case $1 in
  begin)
    nft -f - <<TABLE
table inet testbed-fault-$2 {
  chain output { type filter hook output priority -300; $rules}
  chain forward { type filter hook forward priority -300; $rules}
}
TABLE
    ;;
  end) ! filter holds "$2" '' '' || nft delete table inet "testbed-fault-$2" ;;
  holds) nft list table inet "testbed-fault-$2" >/dev/null 2>&1 ;;
  esac
}

# ADDRESSES: packets from the node and its pods to them are dropped.
fault_drop() { filter "$1" "$2" "$3" drop; }

# ADDRESSES: connections from the node and its pods to them are reset.
fault_reject() { filter "$1" "$2" "$3" "meta l4proto tcp reject with tcp reset"; }

# PROGRAM STATUS ADDRESSES: PROGRAM, which is deleted at the end, answers in place of a cache: connections of
# the node to ports 5000 and 5001 of ADDRESSES are redirected to it. Open connections to port 5000, which
# would bypass it, are reset.
fault_answer() {
  local id=$2 port=6441 program status addresses address rules
  read -r program status addresses <<<"$3"
  case $1 in
  begin)
    systemd-run --quiet --collect --unit "testbed-answer-$id" --property Type=notify "$program" ":$port" "$status"
    rules=$(rules "$addresses" "tcp dport { 5000, 5001 } redirect to :$port")
    nft -f - <<TABLE
table inet testbed-fault-$id {
  chain output { type nat hook output priority -110; $rules}
}
TABLE
    for address in $addresses; do
      ss --kill --no-header dst "$address" dport = :5000 >/dev/null 2>&1 || true # fails for other families
    done
    ;;
  end)
    filter end "$id" '' ''
    systemctl stop "testbed-answer-$id.service" 2>/dev/null || true # may not have started
    rm -f -- "$program" "$program.pem"
    ;;
  holds) filter holds "$id" '' '' && systemctl is-active --quiet "testbed-answer-$id.service" ;;
  esac
}

# processes prints the first process of each container of a pod on this node.
processes() {
  local containers container
  containers=$(crictl ps --quiet --label "io.kubernetes.pod.namespace=$1" --label "io.kubernetes.pod.name=$2")
  for container in $containers; do
    crictl inspect --output go-template --template '{{.info.pid}}' "$container"
    echo
  done
}

# PODS, each NAMESPACE/NAME: the first process of each of their containers is stopped (SIGSTOP).
fault_stop() {
  local id=$2 pod pids pid
  case $1 in
  begin)
    for pod in $3; do
      pids=$(processes "${pod%%/*}" "${pod#*/}")
      for pid in $pids; do
        printf '%s\n' "$pid" >>"$faults/$id/processes"
        kill -STOP "$pid"
      done
    done
    if ! [[ -e $faults/$id/processes ]]; then
      echo "no container of $3 runs on this node" >&2
      return 1
    fi
    ;;
  end) for pid in $(stopped "$id"); do kill -CONT "$pid"; done ;;
  holds) [[ -n $(stopped "$id") ]] ;;
  esac
}

# stopped prints the processes of the fault that still exist and are stopped.
stopped() {
  local pid
  [[ -e $faults/$1/processes ]] || return 0
  while read -r pid; do
    if grep -qs '^State:[[:space:]]*T' "/proc/$pid/status"; then echo "$pid"; fi
  done <"$faults/$1/processes"
}

# VOLUMES of pods of kube-system, each POD=PATH: an overlay is mounted over the volume in the
# container. The overlay reads the volume and writes to a full tmpfs. Other processes do not see it,
# and the volume does not change: files that are deleted during the fault reappear when it ends.
fault_full() {
  case $1 in
  begin) fill "$2" "$3" ;;
  end) uncover "$2" ;;
  holds) [[ -n $(covered "$2") ]] ;;
  esac
}

fill() {
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

# covered prints the existing mounts of the fault: process and mount point, an overlay before its tmpfs.
covered() {
  local pid path point
  [[ -e $faults/$1/volumes ]] || return 0
  while read -r pid path; do
    for point in "$path" /dev/shm; do
      if grep -qs " $point .* testbed-fault-$1 " "/proc/$pid/mountinfo"; then echo "$pid $point"; fi
    done
  done <"$faults/$1/volumes"
}

# umount reads /proc/self, which the /proc of the container lacks for a process of the node. So the
# node's /proc is mounted over it temporarily.
uncover() {
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

# agent lists the files that user data creates on a machine.
agent=(
  /opt/bin/gardener-node-agent /etc/systemd/system/gardener-node-agent.service /var/lib/gardener-node-agent/machine-name
  /var/lib/gardener-node-agent/credentials/kubeconfig-testbed /var/lib/gardener-node-agent/config-*.yaml
)

# LABELS: keeps the files that a machine needs to join again; the caller removes the machine.
fault_loss() {
  case $1 in
  begin)
    [[ -e ${agent[0]} ]] || return 0
    tar -cf "$faults/$2/agent.tar" --ignore-failed-read -- "${agent[@]}" 2>/dev/null
    ;;
  end) ;;
  holds)
    if ! systemctl is-active --quiet kubelet.service; then return 0; fi
    [[ -e $faults/$2/agent.tar ]] && ! systemctl is-active --quiet gardener-node-agent.service
    ;;
  esac
}

# join restores the files that the machine had before its loss, and starts gardener-node-agent.
join() {
  [[ -e $faults/$1/agent.tar ]] || return 0
  tar -C / -xf "$faults/$1/agent.tar"
  systemctl daemon-reload
  systemctl enable --quiet gardener-node-agent.service
  systemctl start gardener-node-agent.service
}

"$@"
