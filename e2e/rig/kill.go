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

// holdScript stops gardener-node-agent and keeps it from being started, as gardenlet's flow would do, by a condition on
// its unit. Should nobody release it, a timer does: a kept testbed must not stay without its node agent.
const holdScript = `
mkdir -p /run/systemd/system/gardener-node-agent.service.d
printf '[Unit]\nConditionPathExists=!/run/e2e-hold\n' >/run/systemd/system/gardener-node-agent.service.d/e2e-hold.conf
touch /run/e2e-hold
systemctl daemon-reload
systemctl stop gardener-node-agent.service
systemd-run --quiet --collect --unit="e2e-release-$EPOCHSECONDS" --on-active=3min bash -c "$1"`

// releaseScript does nothing on a node that is not held.
const releaseScript = `
[[ -e /run/e2e-hold ]] || exit 0
systemctl stop 'e2e-release-*.timer'
rm -rf /run/e2e-hold /run/systemd/system/gardener-node-agent.service.d/e2e-hold.conf
systemctl daemon-reload
systemctl start gardener-node-agent.service`

// HoldNodeAgents stops gardener-node-agent on every worker until release is called, or the scenario ends. What is taken
// off a node meanwhile was taken off by the extension's cleaner, and by nobody else: gardener-node-agent, too, removes
// what is not in the OperatingSystemConfig any more.
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

// leaderLease is the lease that the extension at work holds. Its holder is <pod>_<random>, anew for each process.
var leaderLease = client.ObjectKey{Namespace: kind.ExtensionNamespace, Name: "gardener-extension-registry-cache-leader-election"}

// Interrupt ends the extension in the midst of an operation, and returns when another one is at work. That would wait for
// the lease of the dead one, 15 seconds; here it is taken from it.
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
		p.Fatalf("the Extension is %s already: it was not interrupted", state)
	}
	p.Await(ctx, "another extension is at work", time.Minute, func(ctx context.Context) (bool, string, error) {
		if err := p.Session.Seed.Get(ctx, leaderLease, lease); err != nil {
			return false, "", err
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		if holder != dead {
			return holder != "", "nobody", nil
		}
		lease.Spec.HolderIdentity = ptr.To("")
		// A conflict says that somebody else has it now, or that the dead one is not dead yet.
		return false, holder, ignoreConflict(p.Session.Seed.Update(ctx, lease))
	})
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// KillProcess leaves the pod where it is: the kubelet starts its container anew, for the first time at once, then after 10
// seconds and more.
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

// DeletePod is what a drain in a hurry does.
func DeletePod(ctx context.Context, p *Run, pod *corev1.Pod) error {
	if err := p.Session.Seed.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete pod %s at once: %w", pod.Name, err)
	}
	return nil
}

// AwaitLeader waits until a pod of the Deployment is at work.
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
