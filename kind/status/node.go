package status

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// Node is one node of a cluster.
type Node struct {
	Name string `json:"name"`
	// Ready reports whether the Node object exists and its condition Ready is true.
	Ready   bool   `json:"ready"`
	Problem string `json:"problem,omitempty"`
	// Report describes what the extension did on the node. It may be nil.
	Report kind.Report `json:"report,omitempty"`
}

// write prints the rows of a report, which may be nil.
func write(w io.Writer, report kind.Report) {
	if report != nil {
		report.Write(w)
	}
}

// readNodes returns the status of all nodes of a cluster, with what the extension did on them, and
// the Node objects. If the API server fails, readNodes returns the error and what the nodes
// themselves answered.
func readNodes(ctx context.Context, of *cluster.Cluster, reporter kind.Reporter) ([]Node, []corev1.Node, error) {
	machines := of.Nodes()
	nodes := make([]Node, len(machines))
	var group sync.WaitGroup
	for i, machine := range machines {
		nodes[i].Name = machine.Name()
		if reporter == nil {
			continue
		}
		group.Go(func() {
			var err error
			if nodes[i].Report, err = reporter.OfNode(ctx, machine); err != nil {
				nodes[i].Problem = firstLine(err)
			}
		})
	}
	group.Wait()
	api, err := client.New(of.RESTConfig(), client.Options{})
	if err != nil {
		return nodes, nil, err
	}
	objects := &corev1.NodeList{}
	if err := api.List(ctx, objects); err != nil {
		return nodes, nil, fmt.Errorf("list the nodes: %w", err)
	}
	for i := range nodes {
		for _, object := range objects.Items {
			if object.Name == nodes[i].Name {
				nodes[i].Ready, _ = cluster.NodeReady(&object)
			}
		}
	}
	return nodes, objects.Items, nil
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
