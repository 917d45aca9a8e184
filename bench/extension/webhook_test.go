package extension

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serve starts a webhook that answers the i-th review, counted from 1, with answer(i, uid).
func serve(t *testing.T, answer func(i int64, uid string) *admissionv1.AdmissionResponse) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	var count atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || r.ProtoMajor != 2 {
			http.Error(w, "no review by HTTP/2", http.StatusBadRequest)
			return
		}
		review.Response = answer(count.Add(1), string(review.Request.UID))
		_ = json.NewEncoder(w).Encode(review)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	caBundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: caBundle}
}

func reviews(n int) (all [][]byte) {
	for i := range n {
		all = append(all, fmt.Appendf(nil, `{"request":{"uid":"%d"}}`, i))
	}
	return all
}

func TestSend(t *testing.T) {
	mutated := admissionv1.AdmissionResponse{UID: "x", Allowed: true, Patch: []byte("[]")}
	tests := []struct {
		name   string
		answer admissionv1.AdmissionResponse
		want   string // part of the failure of the second request
	}{
		{"mutated", mutated, ""},
		{"denied", admissionv1.AdmissionResponse{UID: "x", Result: &metav1.Status{Message: "no status yet"}}, "no status yet"},
		{"no patch", admissionv1.AdmissionResponse{UID: "x", Allowed: true}, "no patch"},
		{"no response", admissionv1.AdmissionResponse{}, "no response"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			to := serve(t, func(i int64, _ string) *admissionv1.AdmissionResponse {
				if i == 2 {
					return &test.answer
				}
				return &mutated
			})
			latencies, failures, err := send(t.Context(), to, time.Millisecond, reviews(5))
			if err != nil {
				t.Fatal(err)
			}
			if len(latencies) != 5 || (len(failures) == 0) != (test.want == "") || len(failures) > 1 {
				t.Errorf("%d answers, failures %v", len(latencies), failures)
			}
			if test.want != "" && !strings.Contains(errors.Join(failures...).Error(), test.want) {
				t.Errorf("failures %v, want %q", failures, test.want)
			}
		})
	}
}

// TestSendDoesNotWait: send sends all requests even if the webhook answers only after the last one.
func TestSendDoesNotWait(t *testing.T) {
	const requests = 5
	all := make(chan struct{})
	to := serve(t, func(i int64, uid string) *admissionv1.AdmissionResponse {
		if i == requests {
			close(all)
		}
		<-all
		return &admissionv1.AdmissionResponse{UID: "x", Allowed: true, Patch: []byte(uid)}
	})
	latencies, failures, err := send(t.Context(), to, time.Millisecond, reviews(requests))
	if err != nil || len(failures) > 0 || len(latencies) != requests {
		t.Errorf("%d answers, failures %v, error %v", len(latencies), failures, err)
	}
}

// TestReview: the handler of an extension decodes the object and its namespace.
func TestReview(t *testing.T) {
	encoded, err := json.Marshal(review(3, 2))
	if err != nil {
		t.Fatal(err)
	}
	var decoded admissionv1.AdmissionReview
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	var config extensionsv1alpha1.OperatingSystemConfig
	if err := json.Unmarshal(decoded.Request.Object.Raw, &config); err != nil {
		t.Fatal(err)
	}
	if config.Namespace != namespaceOf(2) || decoded.Request.Namespace != config.Namespace || config.Kind != decoded.Request.Kind.Kind {
		t.Errorf("request for %s, with a %s of %s", decoded.Request.Namespace, config.Kind, config.Namespace)
	}
}
