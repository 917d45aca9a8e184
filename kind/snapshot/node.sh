#!/usr/bin/env bash
# The content of a volume that is a folder of this node.
#
#   save POD FOLDER      writes an archive of it to standard output
#   restore POD FOLDER   puts the content of an archive, which is standard input, in its place
#   size FOLDER          prints its bytes
#
# POD, of kube-system, is the one that uses the volume; it need not run.
set -euo pipefail

pids=()
beside='' # a folder of ours, on the same file system

# processes finds those of the pod.
processes() {
  local containers container
  containers=$(crictl ps --quiet --label io.kubernetes.pod.namespace=kube-system --label "io.kubernetes.pod.name=$1")
  for container in $containers; do
    pids+=("$(crictl inspect --output go-template --template '{{.info.pid}}' "$container")")
  done
}

signal() {
  local pid
  for pid in "${pids[@]}"; do kill "-$1" "$pid" 2>/dev/null || true; done # it may have ended
}

# leave lets the processes go on, however this ends.
leave() {
  signal CONT
  [[ -z $beside ]] || rm -rf -- "$beside"
}

# place makes the folder beside that of the volume; what a run that was killed left there goes.
place() {
  beside=$(dirname -- "$1")/.testbed-$(basename -- "$1")
  rm -rf -- "$beside"
  mkdir -- "$beside"
}

# The registry replaces its files, but for uploads that are under way: a hard link keeps what is there now. Uploads are left out: they
# are good for nobody but the process that makes them, and grow while tar reads them, which it calls a failure. The last member of
# the archive says that it is whole: to tar, one that is cut off between two members is as good.
save() {
  trap leave EXIT
  place "$2"
  processes "$1"
  signal STOP
  cp --archive --link -- "$2" "$beside/content"
  signal CONT
  find "$beside/content" -type d -name _uploads -prune -exec rm -rf -- {} +
  touch -- "$beside/whole"
  tar --create --numeric-owner --directory "$beside" --file - content whole
}

# The archive is unpacked first: one that is broken changes nothing.
restore() {
  trap leave EXIT
  place "$2"
  tar --extract --numeric-owner --same-owner --preserve-permissions --directory "$beside" --file -
  if ! [[ -e $beside/whole ]]; then
    echo "the archive is cut off" >&2
    return 1
  fi
  processes "$1"
  signal STOP
  find "$2" -mindepth 1 -delete
  find "$beside/content" -mindepth 1 -maxdepth 1 -exec mv --target-directory "$2" -- {} +
  chown --reference "$beside/content" -- "$2"
  chmod --reference "$beside/content" -- "$2"
  signal KILL
}

size() { du --summarize --bytes -- "$1" | cut -f 1; }

"$@"
