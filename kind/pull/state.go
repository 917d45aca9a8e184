package pull

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// State is the content of a node, and its addresses.
type State struct {
	Addresses []netip.Addr
	// Content has the digests in containerd's content store, Snapshots the names of its snapshots.
	// Nodes with discard_unpacked_layers, as kind's nodes, drop the content of unpacked layers: then
	// only the snapshot shows that the node has the layer.
	Content, Snapshots map[string]bool
}

// holds reports whether the node has the object.
func (s State) holds(object Object) bool {
	if s.Content[object.Digest] {
		return true
	}
	absent := func(chainID string) bool { return !s.Snapshots[chainID] }
	return len(object.chainIDs) > 0 && !slices.ContainsFunc(object.chainIDs, absent)
}

// parseState parses the output of lookScript.
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
