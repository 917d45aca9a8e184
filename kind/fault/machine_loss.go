package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gardener/gardener/pkg/utils"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// machineLoss removes a machine of the shoot. It stores in the node's container what a real machine
// receives when it joins: the files of gardener-node-agent (from user data) and the labels of its
// worker pool (from the kubelet's configuration).
type machineLoss struct {
	fault spec.Fault
	node  *cluster.Node
	shoot client.Client
}

// prepareLoss returns the injection, or an error if the machine has no Node object.
func prepareLoss(ctx context.Context, t *kind.Testbed, f spec.Fault) (kind.Injection, error) {
	l, err := newLoss(t, f)
	if err == nil {
		_, err = l.object(ctx)
	}
	return l, err
}

func newLoss(t *kind.Testbed, f spec.Fault) (machineLoss, error) {
	node := t.Shoot.Node(f.Target.Name)
	if node == nil {
		return machineLoss{}, fmt.Errorf("the shoot has no node %s", f.Target.Name)
	}
	shoot, err := client.New(t.Shoot.RESTConfig(), client.Options{})
	if err != nil {
		return machineLoss{}, fmt.Errorf("client for the shoot: %w", err)
	}
	if node == t.Shoot.ControlPlane() {
		return machineLoss{}, fmt.Errorf("%s: %w", f.Target, unsupported{"this node is the control plane: the shoot's API server would be lost too"})
	}
	return machineLoss{f, node, shoot}, nil
}

func (l machineLoss) object(ctx context.Context) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := l.shoot.Get(ctx, client.ObjectKey{Name: l.node.Name()}, node); err != nil {
		return nil, fmt.Errorf("get the Node: %w", err)
	}
	return node, nil
}

// Inject stops the machine and deletes its Node, as machine-controller-manager does.
func (l machineLoss) Inject(ctx context.Context) error {
	node, err := l.object(ctx)
	if err != nil {
		return err
	}
	labels, err := json.Marshal(node.Labels)
	if err != nil {
		return fmt.Errorf("labels of the Node: %w", err)
	}
	if err := OnEach([]*cluster.Node{l.node}, l.fault, string(labels)).Inject(ctx); err != nil {
		return err
	}
	if err := l.node.StopMachine(ctx); err != nil {
		return err
	}
	if err := l.shoot.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the Node: %w", err)
	}
	return nil
}

// Clear starts a new machine with the same name, and waits until its Node is ready and
// gardener-node-agent runs.
func (l machineLoss) Clear(ctx context.Context) error {
	content, err := l.node.ReadFile(ctx, argumentFile(l.fault.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the fault never began, or a restart of the node ended it
	}
	if err != nil {
		return err
	}
	labels := map[string]string{}
	if err := json.Unmarshal(content, &labels); err != nil {
		return fmt.Errorf("labels of the lost Node %s: %w", l.node.Name(), err)
	}
	if err := l.node.StartMachine(ctx, nil); err != nil {
		return err
	}
	node, err := l.object(ctx)
	if err != nil {
		return err
	}
	if err := label(ctx, l.shoot, node, labels); err != nil {
		return err
	}
	if _, err := runScript(ctx, l.node, "join", l.fault.ID); err != nil {
		return fmt.Errorf("start gardener-node-agent: %w", err)
	}
	return OnEach([]*cluster.Node{l.node}, l.fault, "").Clear(ctx)
}

// label adds the labels that the Node does not have.
func label(ctx context.Context, shoot client.Client, node *corev1.Node, labels map[string]string) error {
	patch := client.MergeFrom(node.DeepCopy())
	node.Labels = utils.MergeStringMaps(labels, node.Labels) // the last value wins
	if err := shoot.Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("label the Node: %w", err)
	}
	return nil
}

type unsupported struct{ reason string }

func (u unsupported) Error() string { return "not supported by the testbed: " + u.reason }

// EnvironmentError marks the error as an environment error: internal/program exits with code 3.
func (unsupported) EnvironmentError() {}
