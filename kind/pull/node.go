package pull

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Node runs bash with -euo pipefail on a machine with containerd, as root, and returns what it prints: *cluster.Node does.
type Node interface {
	Script(ctx context.Context, script string, args ...string) (string, error)
}

// lookScript prints addresses, content and snapshots, each behind its word. Only snapshotters that work are asked: the others
// that containerd knows answer with errors. Assignments keep exit codes: a list that cannot be had is no empty list.
const lookScript = `
addresses=$(hostname -I)
for address in $addresses; do echo "address $address"; done
ctr --namespace=k8s.io content list --quiet | sed 's/^/content /'
snapshotters=$(ctr plugins list | awk '$1 == "io.containerd.snapshotter.v1" && $NF == "ok" { print $2 }')
for snapshotter in $snapshotters; do
  ctr --namespace=k8s.io snapshots --snapshotter "$snapshotter" list | awk 'NR > 1 { print "snapshot " $1 }'
done
`

// Look reads what a node has, within the time of Bound.
func contentOf(ctx context.Context, node Node) (State, error) {
	ctx, cancel := bound(ctx)
	defer cancel()
	out, err := node.Script(ctx, lookScript)
	if err != nil {
		return State{}, fmt.Errorf("look at what the node has: %w", reason(ctx, err))
	}
	return parseState(out)
}

// forgetScript removes all names of the image that is called $1 on the node, or that has the digest $2, which may be empty: an
// image has several names, and what they have in common is the digest. With --sync the content is gone too when it returns.
const forgetScript = `
names=$(ctr --namespace=k8s.io images list | awk -v name="$1" -v digest="$2" '
  NR > 1 { digests[$1] = $3 }
  END {
    if (digest != "") wanted[digest]
    if (name in digests) wanted[digests[name]]
    for (other in digests) if (digests[other] in wanted) print other
  }')
[[ -z "$names" ]] || xargs ctr --namespace=k8s.io images remove --sync <<<"$names" >/dev/null
`

// Forget removes an image from a node, with all content and snapshots that nothing else there needs: what another image shares
// with it stays, and so do the layers of a container that runs. It takes no longer than Bound allows.
func forget(ctx context.Context, node Node, image Image) error {
	ctx, cancel := bound(ctx)
	defer cancel()
	if _, err := node.Script(ctx, forgetScript, image.Reference, image.Digest()); err != nil {
		return fmt.Errorf("remove %s from the node: %w", image.Reference, reason(ctx, err))
	}
	return nil
}

// pullScript prints microseconds and exit code, and what crictl says when it fails. timeout exits with 124 when it was too long.
const pullScript = `
start=${EPOCHREALTIME/[.,]/}
code=0
said=$(timeout "$2" crictl pull "$1" 2>&1 >/dev/null) || code=$?
echo "$((${EPOCHREALTIME/[.,]/} - start)) $code"
printf '%s\n' "$said"
`

// timeoutCode is how timeout(1) says that it ended the command.
const timeoutCode = 124

// Run makes the node's container runtime pull the image, by the same CRI request that a kubelet sends. It returns how long that
// took on the node's clock, the pull and nothing else, and why it failed in the words of the runtime; empty if it did not. The
// error says that it is not known what happened, as when the node does not end the pull at the timeout. When ctx ends, the pull goes on
// on the node until the timeout.
func runOn(ctx context.Context, node Node, image Image, timeout time.Duration) (took time.Duration, failure string, err error) {
	ctx, cancel := boundBy(ctx, timeout+answerTimeout)
	defer cancel()
	out, err := node.Script(ctx, pullScript, image.Reference, fmt.Sprintf("%.3fs", timeout.Seconds()))
	if err != nil {
		return 0, "", fmt.Errorf("pull %s: %w", image.Reference, reason(ctx, err))
	}
	first, said, _ := strings.Cut(out, "\n")
	spent, exit, _ := strings.Cut(first, " ")
	microseconds, err := strconv.ParseInt(spent, 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("time of the pull of %s: %w", image.Reference, err)
	}
	code, err := strconv.Atoi(exit)
	if err != nil {
		return 0, "", fmt.Errorf("exit code of the pull of %s: %w", image.Reference, err)
	}
	return time.Duration(microseconds) * time.Microsecond, failureOf(code, strings.TrimSpace(said), timeout), nil
}

// reason is why ctx ended, if it did: whoever was interrupted need not read the script.
func reason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func failureOf(code int, said string, timeout time.Duration) string {
	switch {
	case code == 0:
		return ""
	case code == timeoutCode:
		return fmt.Sprintf("not done after %s", timeout)
	case said == "":
		return fmt.Sprintf("crictl ends with %d and says nothing", code)
	default:
		return message(said)
	}
}

// message is what crictl says at last, without what it logs around it: it ends with a line like time="…" level=fatal msg="…", after
// one of klog that has the same text.
func message(said string) string {
	last := said[strings.LastIndex(said, "\n")+1:]
	_, quoted, found := strings.Cut(last, " level=fatal msg=")
	if text, err := strconv.Unquote(quoted); found && err == nil {
		return text
	}
	return said
}
