package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
)

// requestTimeout is what an API server gives a webhook of an extension.
const requestTimeout = 10 * time.Second

// Webhook is where reviews are sent.
type Webhook struct {
	URL string
	// CABundle is in PEM.
	CABundle []byte
}

// Answers are the latencies of all answers, and how many requests were refused or failed, with one reason.
type Answers struct {
	Latencies []time.Duration
	Failed    int
	Failure   error
}

// Send sends so many requests, one each interval whether or not the ones before were answered, and waits for the answers. The
// i-th review is what review(i) returns. The clock of a request starts when it was due, so one that had to wait for this machine
// counts in full. A webhook that refuses, or that changes nothing, counts as failed.
func Send(ctx context.Context, to Webhook, interval time.Duration, requests int, review func(i int) (*admissionv1.AdmissionReview, error)) (Answers, error) {
	client, err := httpClient(to.CABundle)
	if err != nil {
		return Answers{}, err
	}
	defer client.CloseIdleConnections()
	bodies := make([][]byte, requests)
	for i := range bodies {
		if bodies[i], err = encode(review(i)); err != nil {
			return Answers{}, err
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
			answer, err := post(ctx, client, to.URL, body)
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

func encode(review *admissionv1.AdmissionReview, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(review)
	if err != nil {
		return nil, fmt.Errorf("encoding an admission review: %w", err)
	}
	return body, nil
}

// post sends one review and returns the answer when all of it has arrived.
func post(ctx context.Context, client *http.Client, url string, body []byte) (answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, answer)
	}
	return answer, nil
}

// check says what is wrong with an answer.
func check(answer []byte) error {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &review); err != nil {
		return fmt.Errorf("reading the answer of the webhook: %w", err)
	}
	switch response := review.Response; {
	case response == nil || response.UID == "":
		return errors.New("the answer of the webhook has no response")
	case !response.Allowed:
		return fmt.Errorf("refused: %s", response.Result.Message)
	case len(response.Patch) == 0:
		return errors.New("the webhook changed nothing")
	}
	return nil
}

// httpClient is like an API server's: HTTP/2 over one connection that is kept.
func httpClient(authority []byte) (*http.Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("the CA bundle of the webhook has no certificate")
	}
	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}}, nil
}

// UID returns an identifier for the i-th review.
func UID(i int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)) }
