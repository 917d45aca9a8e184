package extension

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestTimeout is how long an API server waits for the response of an extension's webhook.
const requestTimeout = 10 * time.Second

// Webhook returns the first webhook with a URL in the named MutatingWebhookConfiguration.
func Webhook(ctx context.Context, seed client.Reader, configuration string) (admissionregistrationv1.WebhookClientConfig, error) {
	found := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := seed.Get(ctx, client.ObjectKey{Name: configuration}, found); err != nil {
		return admissionregistrationv1.WebhookClientConfig{}, fmt.Errorf("reading the webhook configuration: %w", err)
	}
	for _, webhook := range found.Webhooks {
		if webhook.ClientConfig.URL != nil {
			return webhook.ClientConfig, nil
		}
	}
	return admissionregistrationv1.WebhookClientConfig{}, errors.New("the extension registered no webhook with a URL")
}

// Answers are the results of Send.
type Answers struct {
	Latencies []time.Duration
	// Failed counts the requests that failed or were denied. Failure is the reason for one of them.
	Failed  int
	Failure error
}

// Send sends reviews with the indices 0 to requests-1 to a webhook that has a URL: one review per
// interval and, like an API server, without waiting for earlier responses. At the end Send waits
// for all responses. A latency starts when the request was due, so it includes delays by this
// machine. A request that the webhook denies, or answers without a patch, counts as failed.
func Send(
	ctx context.Context, to admissionregistrationv1.WebhookClientConfig, interval time.Duration, requests int,
	review func(i int) (*admissionv1.AdmissionReview, error),
) (Answers, error) {
	// The client is like that of an API server: HTTP/2 over one connection.
	client, err := rest.HTTPClientFor(&rest.Config{Timeout: requestTimeout, TLSClientConfig: rest.TLSClientConfig{CAData: to.CABundle}})
	if err != nil {
		return Answers{}, fmt.Errorf("reading the CA bundle of the webhook: %w", err)
	}
	defer utilnet.CloseIdleConnectionsFor(client.Transport) // client-go v0.36 wraps the transport without this method
	bodies := make([][]byte, requests)
	for i := range bodies {
		one, err := review(i)
		if err == nil {
			bodies[i], err = json.Marshal(one)
		}
		if err != nil {
			return Answers{}, fmt.Errorf("encoding admission review %d: %w", i, err)
		}
	}
	var answers Answers
	var mu sync.Mutex
	var group sync.WaitGroup
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for _, body := range bodies {
		var due time.Time
		select {
		case due = <-ticker.C:
		case <-ctx.Done():
			group.Wait()
			return Answers{}, context.Cause(ctx)
		}
		group.Go(func() {
			answer, err := post(ctx, client, *to.URL, body)
			took := time.Since(due)
			if err == nil {
				err = check(answer)
			}
			mu.Lock()
			defer mu.Unlock()
			answers.Latencies = append(answers.Latencies, took)
			if err != nil {
				answers.Failed, answers.Failure = answers.Failed+1, err
			}
		})
	}
	group.Wait()
	return answers, nil
}

func post(ctx context.Context, client *http.Client, url string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return answer, err
}

func check(answer []byte) error {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &review); err != nil {
		return fmt.Errorf("decoding the response of the webhook: %w", err)
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

// UID returns the UID of the i-th review.
func UID(i int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)) }
