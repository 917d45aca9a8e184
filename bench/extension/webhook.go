package extension

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	webhookReviews  = 500
	webhookInterval = 20 * time.Millisecond // 50 reviews a second
	webhookTimeout  = 10 * time.Second      // the default of an API server
)

// webhook sends reviews directly to the webhook of the extension, each for the
// OperatingSystemConfig of the next shoot, and measures the latency.
func (r *measurement) webhook(ctx context.Context, latency *Latency) error {
	registered := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := r.seedClient.Get(ctx, client.ObjectKey{Name: "gardener-extension-" + Name}, registered); err != nil {
		return fmt.Errorf("read the webhook configuration: %w", err)
	}
	if len(registered.Webhooks) == 0 {
		return errors.New("the extension registered no webhook")
	}
	var reviews [][]byte
	for i := range webhookReviews {
		encoded, err := json.Marshal(review(i, i%r.result.Shoots))
		if err != nil {
			return fmt.Errorf("encode an admission review: %w", err)
		}
		reviews = append(reviews, encoded)
	}
	before, err := r.process.Usage()
	if err != nil {
		return err
	}
	latencies, failures, err := send(ctx, registered.Webhooks[0].ClientConfig, webhookInterval, reviews)
	if err != nil {
		return err
	}
	after, err := r.process.Usage()
	if err != nil {
		return err
	}
	*latency = Latency{
		Latency: bench.NewLatency(latencies), CPU: (after.CPU - before.CPU).Seconds() / webhookReviews, Failed: len(failures),
	}
	progress.Note(ctx, "p50 %.1f ms, p99 %.1f ms, CPU %.1f ms", 1000*latency.P50, 1000*latency.P99, 1000*latency.CPU)
	if len(failures) > 0 {
		progress.Note(ctx, "%d failed: %v", len(failures), failures[0])
	}
	return nil
}

// review returns the i-th review, as an API server sends it for a new OperatingSystemConfig of the
// shoot.
func review(i, shoot int) *admissionv1.AdmissionReview {
	config := operatingSystemConfig(shoot)
	kind := extensionsv1alpha1.SchemeGroupVersion.WithKind(extensionsv1alpha1.OperatingSystemConfigResource)
	config.SetGroupVersionKind(kind)
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), Kind: metav1.GroupVersionKind(kind),
			Namespace: config.Namespace, Name: config.Name, Operation: admissionv1.Create, Object: runtime.RawExtension{Object: config},
		},
	}
}

// send sends the reviews to a webhook that has a URL: one per interval and, as an API server does,
// without waiting for earlier responses. It returns when all responses have arrived. A latency
// starts when the request is due, so it includes delays by this machine. A request that the webhook
// denies, or answers without a patch, is a failure.
func send(
	ctx context.Context, to admissionregistrationv1.WebhookClientConfig, interval time.Duration, reviews [][]byte,
) (latencies []time.Duration, failures []error, err error) {
	// The client is like that of an API server: HTTP/2 over one connection.
	client, err := rest.HTTPClientFor(&rest.Config{Timeout: webhookTimeout, TLSClientConfig: rest.TLSClientConfig{CAData: to.CABundle}})
	if err != nil {
		return nil, nil, fmt.Errorf("read the CA bundle of the webhook: %w", err)
	}
	defer utilnet.CloseIdleConnectionsFor(client.Transport) // client-go v0.36 wraps the transport without this method
	var mu sync.Mutex
	var group sync.WaitGroup
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for _, body := range reviews {
		var due time.Time
		select {
		case due = <-ticker.C:
		case <-ctx.Done():
			group.Wait()
			return nil, nil, context.Cause(ctx)
		}
		group.Go(func() {
			err := post(ctx, client, *to.URL, body)
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, time.Since(due))
			if err != nil {
				failures = append(failures, err)
			}
		})
	}
	group.Wait()
	return latencies, failures, nil
}

// post returns nil if the webhook allows the review with a patch.
func post(ctx context.Context, client *http.Client, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(answer.Body).Decode(&review); err != nil {
		return fmt.Errorf("decode the response of the webhook, status %s: %w", answer.Status, err)
	}
	switch response := review.Response; {
	case response == nil || response.UID == "":
		return errors.New("the review of the webhook has no response")
	case !response.Allowed:
		return fmt.Errorf("denied: %s", response.Result.Message)
	case len(response.Patch) == 0:
		return errors.New("the webhook returned no patch")
	}
	return nil
}
