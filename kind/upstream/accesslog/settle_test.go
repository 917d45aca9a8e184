package accesslog

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestSettleWaitsForRunningRequests: settle answers only after a slow request was recorded.
func TestSettleWaitsForRunningRequests(t *testing.T) {
	var out bytes.Buffer
	started, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	handler := NewLog(&out).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(started); <-release }))
	settle := func(ctx context.Context, mark string) int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, SettlePath+"?"+mark, nil).WithContext(ctx))
		return answer.Code
	}
	go func() {
		defer close(ended)
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v2/slow/manifests/v1", nil))
	}()
	<-started
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if code := settle(impatient, "impatient"); code != http.StatusServiceUnavailable {
		t.Errorf("settle answered %d while a request was running", code)
	}
	close(release)
	if code := settle(t.Context(), "patient"); code != http.StatusOK {
		t.Errorf("settle answered %d", code)
	}
	<-ended
	records, err := NewReader(&out).Until("patient")
	if err != nil || len(records) != 1 || records[0].Repository != "slow" {
		t.Errorf("records before the mark: %v, %v", records, err)
	}
}

// TestHold: settle does not wait for a held request, but waits for it after its release. The
// request is recorded.
func TestHold(t *testing.T) {
	var out bytes.Buffer
	held, release, released, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	handler := NewLog(&out).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		NoteFault(r.Context(), "f1")
		NoteFault(r.Context(), "f2")
		goOn := Hold(r.Context())
		close(held)
		<-release
		goOn()
		close(released)
		<-end
	}))
	settle := func(ctx context.Context, mark string) int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, SettlePath+"?"+mark, nil).WithContext(ctx))
		return answer.Code
	}
	go func() {
		defer close(ended)
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v2/web/manifests/v1", nil))
	}()
	<-held
	if code := settle(t.Context(), "held"); code != http.StatusOK {
		t.Errorf("settle answered %d while a request was held", code)
	}
	close(release)
	<-released
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if code := settle(impatient, "released"); code != http.StatusServiceUnavailable {
		t.Errorf("settle answered %d while a request was running", code)
	}
	close(end)
	<-ended
	if code := settle(t.Context(), "ended"); code != http.StatusOK {
		t.Errorf("settle answered %d", code)
	}
	records, err := NewReader(&out).Until("ended")
	if err != nil || len(records) != 1 || len(records[0].Faults) != 2 {
		t.Errorf("records %+v, %v", records, err)
	}
}

// TestWithoutLog: NoteFault and Hold work without a Log.
func TestWithoutLog(t *testing.T) {
	NoteFault(t.Context(), "f1")
	Hold(t.Context())()
}
