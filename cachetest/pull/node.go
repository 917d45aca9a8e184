package pull

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Node runs a script with bash -euo pipefail as root, and returns its output. *cluster.Node
// implements it.
type Node interface {
	Script(ctx context.Context, script string, args ...string) (string, error)
}

// stateScript prints addresses, content and snapshots. It skips snapshotters that are not ok,
// because they answer with errors. Each loop reads a variable: bash ignores the exit code of a
// command in `for`, and a failed list would count as empty.
const stateScript = `
addresses=$(hostname -I)
for address in $addresses; do echo "address $address"; done
ctr --namespace=k8s.io content list --quiet | sed 's/^/content /'
snapshotters=$(ctr plugins list | awk '$1 == "io.containerd.snapshotter.v1" && $NF == "ok" { print $2 }')
for snapshotter in $snapshotters; do
  ctr --namespace=k8s.io snapshots --snapshotter "$snapshotter" list | awk 'NR > 1 { print "snapshot " $1 }'
done
`

func readState(ctx context.Context, node Node) (State, error) {
	out, err := runScript(ctx, node, answerTimeout, stateScript)
	if err != nil {
		return State{}, fmt.Errorf("list addresses and content of the node: %w", err)
	}
	return parseState(out)
}

// forgetScript removes all references to the image with the name $1 or the digest $2, which may be
// empty. --sync makes it wait until the content is deleted.
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

// forget removes an image from a node. Content that other images or running containers use stays.
func forget(ctx context.Context, node Node, image Image) error {
	if _, err := runScript(ctx, node, answerTimeout, forgetScript, image.Reference, image.Digest()); err != nil {
		return fmt.Errorf("remove %s from the node: %w", image.Reference, err)
	}
	return nil
}

// pullScript prints the duration in microseconds and the exit code of crictl, and then its errors.
const pullScript = `
start=${EPOCHREALTIME/[.,]/}
code=0
errors=$(timeout "$2" crictl pull "$1" 2>&1 >/dev/null) || code=$?
echo "$((${EPOCHREALTIME/[.,]/} - start)) $code"
printf '%s\n' "$errors"
`

// pullOn pulls the image with the same CRI request as the kubelet. It returns the duration of
// the pull, measured on the node, and the error message of the container runtime, or "" on success.
// pullOn returns an error if the outcome is unknown, for example if the node does not stop the pull
// after the timeout. If ctx ends, the pull continues on the node until the timeout.
func pullOn(ctx context.Context, node Node, image Image, timeout time.Duration) (took time.Duration, failure string, err error) {
	out, err := runScript(ctx, node, timeout+answerTimeout, pullScript, image.Reference, fmt.Sprintf("%.3fs", timeout.Seconds()))
	if err != nil {
		return 0, "", fmt.Errorf("pull %s: %w", image.Reference, err)
	}
	first, output, _ := strings.Cut(out, "\n")
	var microseconds int64
	var code int
	if _, err := fmt.Sscanf(first, "%d %d", &microseconds, &code); err != nil {
		return 0, "", fmt.Errorf("pull %s: parse %q: %w", image.Reference, first, err)
	}
	return time.Duration(microseconds) * time.Microsecond, failureOf(code, strings.TrimSpace(output), timeout), nil
}

func failureOf(code int, output string, timeout time.Duration) string {
	switch {
	case code == 0:
		return ""
	case code == 124: // of timeout(1)
		return fmt.Sprintf("not done after %s", timeout)
	case output == "":
		return fmt.Sprintf("crictl exited with code %d and no output", code)
	default:
		return message(output)
	}
}

// message returns msg of the last line of crictl's output: time="…" level=fatal msg="…". A klog
// line before it repeats the text. Output in another format is returned unchanged.
func message(output string) string {
	last := output[strings.LastIndex(output, "\n")+1:]
	_, quoted, found := strings.Cut(last, " level=fatal msg=")
	if text, err := strconv.Unquote(quoted); found && err == nil {
		return text
	}
	return output
}

// State describes the addresses of a node and the content of its containerd.
type State struct {
	Addresses []netip.Addr
	// The keys of Content are the digests in the content store, and those of Snapshots are the names
	// of snapshots. Nodes with discard_unpacked_layers, such as kind's, delete a layer from the
	// content store after unpacking it. Then only the snapshot shows that the node has the layer.
	Content, Snapshots map[string]bool
}

func (s State) holds(object Object) bool {
	if s.Content[object.Digest] {
		return true
	}
	absent := func(chainID string) bool { return !s.Snapshots[chainID] }
	return len(object.chainIDs) > 0 && !slices.ContainsFunc(object.chainIDs, absent)
}

func parseState(out string) (State, error) {
	state := State{Content: map[string]bool{}, Snapshots: map[string]bool{}}
	for line := range strings.Lines(out) {
		what, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "address":
			address, err := netip.ParseAddr(value)
			if err != nil {
				return State{}, fmt.Errorf("parse address of the node: %w", err)
			}
			state.Addresses = append(state.Addresses, address.Unmap())
		case "content":
			state.Content[value] = true
		case "snapshot":
			state.Snapshots[value] = true
		default:
			return State{}, fmt.Errorf("parse content of the node: unexpected line %q", line)
		}
	}
	if len(state.Addresses) == 0 {
		return State{}, fmt.Errorf("the node has no address")
	}
	return state, nil
}

// answerTimeout limits requests that a healthy node answers in seconds, such as listing content.
const answerTimeout = time.Minute

func runScript(ctx context.Context, node Node, timeout time.Duration, script string, args ...string) (string, error) {
	ctx, cancel := withTimeout(ctx, timeout)
	defer cancel()
	out, err := node.Script(ctx, script, args...)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the error of Script contains the whole script
	}
	return out, err
}

// withTimeout returns a context for a request to a node whose containerd might hang. The context's
// cause names commands that help to find the problem.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer after %s (see `testbed fault list` for injected faults, "+
		"and `testbed exec NODE -- systemctl status containerd`)", timeout))
}
