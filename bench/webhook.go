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

	"github.com/gardener-extensions/registry-cache/bench/extension"
	"github.com/gardener-extensions/registry-cache/bench/landscape"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// webhookInterval gives 50 reviews a second.
const webhookInterval = 20 * time.Millisecond

// webhook sends reviews of the OperatingSystemConfigs of one shoot after the other to the webhook
// of the extension, without an API server in between.
func (r *measurement) webhook(ctx context.Context, latency *Latency) error {
	to, err := extension.Webhook(ctx, r.seedClient, "gardener-extension-"+landscape.ExtensionName)
	if err != nil {
		return err
	}
	before, err := r.process.Usage()
	if err != nil {
		return err
	}
	answers, err := extension.Send(ctx, to, webhookInterval, r.WebhookRequests, func(i int) (*admissionv1.AdmissionReview, error) {
		return review(i, i%r.shoots)
	})
	if err != nil {
		return err
	}
	after, err := r.process.Usage()
	if err != nil {
		return err
	}
	*latency = newLatency(answers.Latencies, answers.Failed)
	latency.CPU = (after.CPU - before.CPU).Seconds() / float64(r.WebhookRequests)
	progress.Note(ctx, "p50 %.1f ms, p99 %.1f ms, CPU %.1f ms", 1000*latency.P50, 1000*latency.P99, 1000*latency.CPU)
	if answers.Failed > 0 {
		progress.Note(ctx, "%d failed: %v", answers.Failed, answers.Failure)
	}
	return nil
}

// review returns the i-th review: what an API server sends when gardenlet creates the
// OperatingSystemConfig of the shoot.
func review(i, shoot int) (*admissionv1.AdmissionReview, error) {
	config, err := landscape.OperatingSystemConfig(shoot)
	if err != nil {
		return nil, err
	}
	version := extensionsv1alpha1.SchemeGroupVersion
	config.TypeMeta = metav1.TypeMeta{APIVersion: version.String(), Kind: extensionsv1alpha1.OperatingSystemConfigResource}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the OperatingSystemConfig of shoot %d: %w", shoot, err)
	}
	kind := metav1.GroupVersionKind{Group: version.Group, Version: version.Version, Kind: config.Kind}
	resource := metav1.GroupVersionResource{Group: version.Group, Version: version.Version, Resource: "operatingsystemconfigs"}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: extension.UID(i), Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
			Namespace: config.Namespace, Name: config.Name, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
		},
	}, nil
}
