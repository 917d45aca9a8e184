//go:build e2e

package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
)

// holdScript stops gardener-node-agent. A condition on its unit keeps gardenlet's flow from
// starting it. A timer releases it if the scenario does not: a kept testbed must not stay without
// its node agent.
const holdScript = `
mkdir -p /run/systemd/system/gardener-node-agent.service.d
printf '[Unit]\nConditionPathExists=!/run/e2e-hold\n' >/run/systemd/system/gardener-node-agent.service.d/e2e-hold.conf
touch /run/e2e-hold
systemctl daemon-reload
systemctl stop gardener-node-agent.service
systemd-run --quiet --collect --unit="e2e-release-$EPOCHSECONDS" --on-active=3min bash -c "$1"`

// releaseScript reverts holdScript. It does nothing on a node that is not held.
const releaseScript = `
[[ -e /run/e2e-hold ]] || exit 0
systemctl stop 'e2e-release-*.timer'
rm -rf /run/e2e-hold /run/systemd/system/gardener-node-agent.service.d/e2e-hold.conf
systemctl daemon-reload
systemctl start gardener-node-agent.service`

// HoldNodeAgents stops gardener-node-agent on every worker until release is called or the scenario
// ends. gardener-node-agent also removes what is no longer in the OperatingSystemConfig: while it
// is stopped, only the extension's cleaner removes files from nodes.
func (p *Run) HoldNodeAgents(ctx context.Context) (release func(ctx context.Context) error) {
	p.Helper()
	workers := p.Workers()
	release = func(ctx context.Context) error {
		for _, worker := range workers {
			if _, err := worker.Script(ctx, releaseScript); err != nil {
				return fmt.Errorf("release gardener-node-agent: %w", err)
			}
		}
		return nil
	}
	p.Afterwards(ctx, release)
	for _, worker := range workers {
		_, err := worker.Script(ctx, holdScript, releaseScript)
		p.Check(err)
	}
	return release
}

// leaderLease is the leader election lease of the extension. Its holder is <pod>_<random>,
// different for each process.
var leaderLease = client.ObjectKey{Namespace: kind.ExtensionNamespace, Name: "gardener-extension-registry-cache-leader-election"}

// Interrupt kills the extension during an operation and returns when another process leads. It
// clears the lease of the dead process, which would otherwise take 15 seconds to expire.
func (p *Run) Interrupt(ctx context.Context, kill func(ctx context.Context, p *Run, pod *corev1.Pod) error) {
	p.Helper()
	lease := &coordinationv1.Lease{}
	p.Check(p.Session.Seed.Get(ctx, leaderLease, lease))
	dead := ptr.Deref(lease.Spec.HolderIdentity, "")
	name, _, _ := strings.Cut(dead, "_")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: leaderLease.Namespace, Name: name}}
	p.Check(kill(ctx, p, pod))
	extension, err := GetExtension(ctx, p)
	p.Check(err)
	if state := StateOf(extension); state != gardencorev1beta1.LastOperationStateProcessing {
		p.Fatalf("the Extension is already %s: it was not interrupted", state)
	}
	p.Await(ctx, "another process of the extension leads", time.Minute, func(ctx context.Context) (bool, string, error) {
		if err := p.Session.Seed.Get(ctx, leaderLease, lease); err != nil {
			return false, "", err
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		if holder != dead {
			return holder != "", "nobody", nil
		}
		lease.Spec.HolderIdentity = ptr.To("")
		// A conflict means that another process has the lease, or that the killed one still renews it.
		return false, holder, ignoreConflict(p.Session.Seed.Update(ctx, lease))
	})
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// KillProcess kills the process and keeps the pod. The kubelet restarts the container: at once the
// first time, then after 10 seconds and more.
func KillProcess(ctx context.Context, p *Run, pod *corev1.Pod) error {
	const script = `
container=$(crictl ps --quiet --name '^extension$' --label "io.kubernetes.pod.name=$1")
kill -KILL "$(crictl inspect --output go-template --template '{{.info.pid}}' "$container")"`
	_, err := p.Session.Testbed.Seed.ControlPlane().Script(ctx, script, pod.Name)
	if err != nil {
		return fmt.Errorf("kill the process of %s: %w", pod.Name, err)
	}
	return nil
}

// DeletePod deletes the pod without a grace period.
func DeletePod(ctx context.Context, p *Run, pod *corev1.Pod) error {
	if err := p.Session.Seed.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete pod %s at once: %w", pod.Name, err)
	}
	return nil
}

// AwaitLeader waits until a pod of the Deployment holds the lease.
func (p *Run) AwaitLeader(ctx context.Context, deployment *appsv1.Deployment) {
	p.Helper()
	p.Await(ctx, "a pod of the extension leads", time.Minute, func(ctx context.Context) (bool, string, error) {
		pods, lease := &corev1.PodList{}, &coordinationv1.Lease{}
		if err := p.Session.Seed.Get(ctx, leaderLease, lease); err != nil {
			return false, "", err
		}
		err := p.Session.Seed.List(ctx, pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
		leader, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
		leads := slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Name == leader && pod.DeletionTimestamp == nil })
		return leads, fmt.Sprintf("the lease is %q's", leader), err
	})
}

// DeploymentOfExtension returns the only Deployment in the extension's namespace of the seed.
func DeploymentOfExtension(ctx context.Context, p *Run) *appsv1.Deployment {
	p.Helper()
	deployments := &appsv1.DeploymentList{}
	p.Check(p.Session.Seed.List(ctx, deployments, client.InNamespace(kind.ExtensionNamespace)))
	if len(deployments.Items) != 1 {
		p.Fatalf("there are %d Deployments in %s, want the extension's", len(deployments.Items), kind.ExtensionNamespace)
	}
	return &deployments.Items[0]
}
