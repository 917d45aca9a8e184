#!/usr/bin/env bash
# Saves and restores a volume that is a folder on this node.
#
#   save POD FOLDER      writes an archive of the folder to standard output
#   restore POD FOLDER   replaces the content of the folder with the archive from standard input
#   size FOLDER          prints the size of the folder in bytes
#
# POD is a pod in kube-system that uses the volume. It does not have to run.
set -euo pipefail

pids=()
work='' # a temporary folder on the same file system

# processes finds the processes of the pod.
processes() {
  local containers container
  containers=$(crictl ps --quiet --label io.kubernetes.pod.namespace=kube-system --label "io.kubernetes.pod.name=$1")
  for container in $containers; do
    pids+=("$(crictl inspect --output go-template --template '{{.info.pid}}' "$container")")
  done
}

signal() {
  local pid
  for pid in "${pids[@]}"; do kill "-$1" "$pid" 2>/dev/null || true; done # may have ended
}

# cleanup continues the processes, on success and on failure.
cleanup() {
  signal CONT
  [[ -z $work ]] || rm -rf -- "$work"
}

# create_work creates the temporary folder next to the volume. It replaces the folder of a killed
# run.
create_work() {
  work=$(dirname -- "$1")/.testbed-$(basename -- "$1")
  rm -rf -- "$work"
  mkdir -- "$work"
}

# The registry replaces files and does not change them in place, so hard links keep the current content.
# Uploads are skipped: only the process that writes them can use them, and tar fails if a file grows.
# The last member of the archive proves that it is complete: tar accepts an archive that is truncated
# between two members.
save() {
  trap cleanup EXIT
  create_work "$2"
  processes "$1"
  signal STOP
  cp --archive --link -- "$2" "$work/content"
  signal CONT
  find "$work/content" -type d -name _uploads -prune -exec rm -rf -- {} +
  touch -- "$work/whole"
  tar --create --numeric-owner --directory "$work" --file - content whole
}

# The archive is unpacked first, so that a damaged archive changes nothing.
restore() {
  trap cleanup EXIT
  create_work "$2"
  tar --extract --numeric-owner --same-owner --preserve-permissions --directory "$work" --file -
  if ! [[ -e $work/whole ]]; then
    echo "the archive is truncated" >&2
    return 1
  fi
  processes "$1"
  signal STOP
  find "$2" -mindepth 1 -delete
  find "$work/content" -mindepth 1 -maxdepth 1 -exec mv --target-directory "$2" -- {} +
  chown --reference "$work/content" -- "$2"
  chmod --reference "$work/content" -- "$2"
  signal KILL
}

size() { du --summarize --bytes -- "$1" | cut -f 1; }

"$@"
