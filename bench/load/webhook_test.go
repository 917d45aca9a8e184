package load_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/bench/load"
)

// serve starts a webhook that answers the i-th review, from 1, with answer(i).
func serve(t *testing.T, answer func(i int64, uid string) *admissionv1.AdmissionResponse) load.Webhook {
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
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return load.Webhook{URL: server.URL, CABundle: authority}
}

func review(i int) (*admissionv1.AdmissionReview, error) {
	return &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: load.UID(i)}}, nil
}

func TestSend(t *testing.T) {
	mutated := admissionv1.AdmissionResponse{UID: "x", Allowed: true, Patch: []byte("[]")}
	tests := []struct {
		name   string
		answer admissionv1.AdmissionResponse
		want   string // part of the failure of the second request
	}{
		{"mutated", mutated, ""},
		{"refused", admissionv1.AdmissionResponse{UID: "x", Result: &metav1.Status{Message: "no status yet"}}, "no status yet"},
		{"not changed", admissionv1.AdmissionResponse{UID: "x", Allowed: true}, "changed nothing"},
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
			answers, err := load.Send(t.Context(), to, time.Millisecond, 5, review)
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

// TestSendDoesNotWait: a webhook that answers nothing before it has seen all requests is sent all of them.
func TestSendDoesNotWait(t *testing.T) {
	const requests = 5
	all := make(chan struct{})
	to := serve(t, func(i int64, uid string) *admissionv1.AdmissionResponse {
		if i == requests {
			close(all)
		}
		<-all
		return &admissionv1.AdmissionResponse{UID: load.UID(0), Allowed: true, Patch: []byte(uid)}
	})
	answers, err := load.Send(t.Context(), to, time.Millisecond, requests, review)
	if err != nil || answers.Failed > 0 || len(answers.Latencies) != requests {
		t.Errorf("%+v, error %v", answers, err)
	}
}

func TestUnreachable(t *testing.T) {
	gone, err := load.Gone()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", gone); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting to one that is gone: %v", err)
	}
	hanging, err := load.Hang()
	if err != nil {
		t.Fatal(err)
	}
	connection, err := net.Dial("tcp", hanging.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := connection.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("reading from one that hangs: %v", err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return hanging.Accepted() > 0, nil // the kernel has connected before it is told
	})
	if n := hanging.Accepted(); err != nil || n != 1 {
		t.Errorf("%d connections, error %v", n, err)
	}
	if err := hanging.Close(); err != nil {
		t.Error(err)
	}
}
