package pull

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// State is what a node has, and the addresses that it asks from.
type State struct {
	Addresses []netip.Addr
	// Content are the digests in containerd's content store, Snapshots the names of its snapshots. A node may drop a layer's
	// content once it is unpacked (discard_unpacked_layers, which kind's nodes do); its snapshot says then that it is there.
	Content, Snapshots map[string]bool
}

// holds says whether the node need not fetch the object.
func (s State) holds(object Object) bool {
	if s.Content[object.Digest] {
		return true
	}
	absent := func(chainID string) bool { return !s.Snapshots[chainID] }
	return len(object.chainIDs) > 0 && !slices.ContainsFunc(object.chainIDs, absent)
}

// parseState reads the output of lookScript.
func parseState(out string) (State, error) {
	state := State{Content: map[string]bool{}, Snapshots: map[string]bool{}}
	for line := range strings.Lines(out) {
		what, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "address":
			address, err := netip.ParseAddr(value)
			if err != nil {
				return State{}, fmt.Errorf("address of the node: %w", err)
			}
			state.Addresses = append(state.Addresses, address.Unmap())
		case "content":
			state.Content[value] = true
		case "snapshot":
			state.Snapshots[value] = true
		default:
			return State{}, fmt.Errorf("what the node has: line %q", line)
		}
	}
	if len(state.Addresses) == 0 {
		return State{}, fmt.Errorf("the node has no address")
	}
	return state, nil
}
