package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardener-extensions/registry-cache/bench/landscape"
	"github.com/gardener-extensions/registry-cache/bench/load"
	"github.com/gardener-extensions/registry-cache/bench/report"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// webhookInterval makes 50 reviews a second.
const webhookInterval = 20 * time.Millisecond

// webhook sends reviews of the OperatingSystemConfigs of one shoot after the other, without an API server between, to what is
// registered at the seed.
func (r *run) webhook(ctx context.Context, latency *report.Latency) error {
	to, err := r.landscape.Webhook(ctx)
	if err != nil {
		return err
	}
	before, err := r.process.Usage()
	if err != nil {
		return err
	}
	answers, err := load.Send(ctx, to, webhookInterval, r.WebhookRequests, func(i int) (*admissionv1.AdmissionReview, error) {
		return review(i, i%r.shoots)
	})
	if err != nil {
		return err
	}
	after, err := r.process.Usage()
	if err != nil {
		return err
	}
	*latency = report.NewLatency(answers.Latencies, answers.Failed)
	latency.CPU = (after.CPU - before.CPU).Seconds() / float64(r.WebhookRequests)
	progress.Note(ctx, "p50 %.1f ms, p99 %.1f ms, CPU %.1f ms", 1000*latency.P50, 1000*latency.P99, 1000*latency.CPU)
	if answers.Failed > 0 {
		progress.Note(ctx, "%d failed: %v", answers.Failed, answers.Failure)
	}
	return nil
}

// review is what an API server sends when gardenlet creates the shoot's OperatingSystemConfig.
func review(i, shoot int) (*admissionv1.AdmissionReview, error) {
	config, err := landscape.OperatingSystemConfig(shoot)
	if err != nil {
		return nil, err
	}
	version := extensionsv1alpha1.SchemeGroupVersion
	config.TypeMeta = metav1.TypeMeta{APIVersion: version.String(), Kind: extensionsv1alpha1.OperatingSystemConfigResource}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the operating system config of shoot %d: %w", shoot, err)
	}
	kind := metav1.GroupVersionKind{Group: version.Group, Version: version.Version, Kind: config.Kind}
	resource := metav1.GroupVersionResource{Group: version.Group, Version: version.Version, Resource: "operatingsystemconfigs"}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: load.UID(i), Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
			Namespace: config.Namespace, Name: config.Name, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
		},
	}, nil
}
