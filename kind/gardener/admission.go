package gardener

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/charts"
)

// Admission is an extension's admission component in a garden without gardener-operator: both of its charts are installed
// into one namespace of the garden's cluster, which runs the pods as well.
type Admission struct {
	// Name of its release, Deployment and ServiceAccount, and of its ValidatingWebhookConfiguration.
	Name string
	// Namespace is its own; it is created and removed with it.
	Namespace string
	// Application and Runtime are the directories of the two Helm charts, Image is for the second.
	Application, Runtime fs.FS
	Image                string
}

// Deploy renders and applies the charts, the one with the rights first.
func (a Admission) Deploy(ctx context.Context, garden kubernetes.Interface) error {
	if err := apply(ctx, garden.Client(), a.namespace()); err != nil {
		return fmt.Errorf("deploy %s: %w", a.Name, err)
	}
	for _, chart := range a.charts() {
		archive, err := charts.Archive(chart.files, chart.name)
		if err != nil {
			return fmt.Errorf("deploy %s: %w", a.Name, err)
		}
		if err := garden.ChartApplier().ApplyFromArchive(ctx, archive, a.Namespace, a.Name, kubernetes.Values(chart.values)); err != nil {
			return fmt.Errorf("deploy %s: chart %s: %w", a.Name, chart.name, err)
		}
	}
	return nil
}

// Wait returns when its pods are ready and its webhook is registered with a certificate authority; or an error, at the
// latest after three minutes.
func (a Admission) Wait(ctx context.Context, garden client.Reader) error {
	if err := waitForDeployment(ctx, garden, client.ObjectKeyFromObject(a.deployment())); err != nil {
		return err
	}
	if err := waitForRegistration(ctx, garden, a.registration()); err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	return nil
}

// Remove deletes all that Deploy and the pods have made, and returns when it is gone, or an error after two minutes. What is
// gone already is no error.
func (a Admission) Remove(ctx context.Context, garden kubernetes.Interface) error {
	ctx, cancel := context.WithTimeoutCause(ctx, rolloutTimeout, fmt.Errorf("it took longer than %s", rolloutTimeout))
	defer cancel()
	// In this order nobody waits for the answer of a pod that is gone, and no pod asks for what it may not any more.
	failed := remove(ctx, garden.Client(), a.registration())
	failed = errors.Join(failed, remove(ctx, garden.Client(), a.deployment()))
	for _, chart := range a.charts() {
		archive, err := charts.Archive(chart.files, chart.name)
		if err == nil {
			err = garden.ChartApplier().DeleteFromArchive(ctx, archive, a.Namespace, a.Name, kubernetes.Values(chart.values))
		}
		failed = errors.Join(failed, err)
	}
	if failed = errors.Join(failed, remove(ctx, garden.Client(), a.namespace())); failed != nil {
		return fmt.Errorf("remove %s: %w", a.Name, failed)
	}
	return nil
}

// remove deletes an object with what belongs to it, and waits until it is gone.
func remove(ctx context.Context, garden client.Client, object client.Object) error {
	err := garden.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return kubernetesutils.WaitUntilResourceDeleted(ctx, garden, object, pollInterval)
}

// admissionChart is one of the two charts.
type admissionChart struct {
	name   string
	files  fs.FS
	values map[string]any
}

func (a Admission) charts() []admissionChart {
	account := map[string]any{"name": a.Name, "namespace": a.Namespace}
	return []admissionChart{
		{"application", a.Application, map[string]any{
			"gardener": map[string]any{"virtualCluster": map[string]any{"serviceAccount": account}},
		}},
		{"runtime", a.Runtime, map[string]any{"image": map[string]any{"ref": a.Image}}},
	}
}

func (a Admission) namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
}

func (a Admission) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}
}

func (a Admission) registration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: a.Name}}
}
