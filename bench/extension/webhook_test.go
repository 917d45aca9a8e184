package extension

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serve starts a webhook that answers the i-th review, counted from 1, with answer(i).
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

func numbered(i int) (*admissionv1.AdmissionReview, error) {
	return &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: UID(i)}}, nil
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
			answers, err := Send(t.Context(), to, time.Millisecond, 5, numbered)
			if err != nil {
				t.Fatal(err)
			}
			if len(answers.Latencies) != 5 || (answers.Failed == 0) != (test.want == "") || answers.Failed > 1 {
				t.Errorf("%d answers, %d failed", len(answers.Latencies), answers.Failed)
			}
			if test.want != "" && (answers.Failure == nil || !strings.Contains(answers.Failure.Error(), test.want)) {
				t.Errorf("failure %v, want %q", answers.Failure, test.want)
			}
		})
	}
}

// TestSendDoesNotWait: Send sends all requests even if the webhook answers only after the last one.
func TestSendDoesNotWait(t *testing.T) {
	const requests = 5
	all := make(chan struct{})
	to := serve(t, func(i int64, uid string) *admissionv1.AdmissionResponse {
		if i == requests {
			close(all)
		}
		<-all
		return &admissionv1.AdmissionResponse{UID: UID(0), Allowed: true, Patch: []byte(uid)}
	})
	answers, err := Send(t.Context(), to, time.Millisecond, requests, numbered)
	if err != nil || answers.Failed > 0 || len(answers.Latencies) != requests {
		t.Errorf("%+v, error %v", answers, err)
	}
}
