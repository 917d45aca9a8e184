#!/usr/bin/env bash
# The faults of a node. Each is a folder that says what it is and how it ends; all of them are gone after a restart of the
# node, as what they broke is.
#
#   begin ID SECONDS DESCRIPTION KIND ARGUMENT   breaks something, and mends it after SECONDS unless that is 0
#   end ID                                       mends it; where there is no such fault there is nothing to do
#   list                                         prints the descriptions of those that still hold, one a line
#
# KIND and ARGUMENT:
#
#   drop ADDRESSES, reject ADDRESSES   what goes to IP addresses, from the node or its pods
#   stop PODS                          the processes of pods of kube-system are stopped, not killed
#   unit NAME                          a unit of systemd does not run
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

list() {
  local fault id
  for fault in "$faults"/*; do
    [[ -d $fault ]] || continue
    id=${fault##*/}
    if "holds_$(<"$fault/kind")" "$id" "$(<"$fault/argument")"; then
      cat -- "$fault/description"
    else
      end "$id"
    fi
  done
}

# filter drops or rejects what is sent to addresses, before address translation by kube-proxy (dstnat, -100).
filter() {
  local id=$1 verdict=$3 rules='' address family
  for address in $2; do
    family=ip
    if [[ $address == *:* ]]; then family=ip6; fi
    rules+="$family daddr $address $verdict; "
  done
  nft -f - <<TABLE
table inet testbed-fault-$id {
  chain output { type filter hook output priority -300; $rules}
  chain forward { type filter hook forward priority -300; $rules}
}
TABLE
}

unfilter() {
  if filtered "$1"; then nft delete table inet "testbed-fault-$1"; fi
}

filtered() { nft list table inet "testbed-fault-$1" >/dev/null 2>&1; }

begin_drop() { filter "$1" "$2" drop; }
end_drop() { unfilter "$1"; }
holds_drop() { filtered "$1"; }

begin_reject() { filter "$1" "$2" "meta l4proto tcp reject with tcp reset"; }
end_reject() { unfilter "$1"; }
holds_reject() { filtered "$1"; }

begin_stop() {
  local id=$1 pod container pid
  for pod in $2; do
    for container in $(crictl ps --quiet --label "io.kubernetes.pod.name=$pod" --label io.kubernetes.pod.namespace=kube-system); do
      pid=$(crictl inspect --output go-template --template '{{.info.pid}}' "$container")
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

begin_unit() { systemctl stop "$2"; }
end_unit() { systemctl start "$2"; }
holds_unit() { ! systemctl is-active --quiet "$2"; }

"$@"
