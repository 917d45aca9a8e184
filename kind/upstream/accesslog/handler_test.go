package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serve returns a server behind a Log, and its log as a stream.
func serve(t *testing.T, next http.HandlerFunc) (*httptest.Server, *json.Decoder) {
	t.Helper()
	reader, writer := io.Pipe()
	server := httptest.NewServer(NewLog(writer).Handler(next))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = reader.Close() })
	return server, json.NewDecoder(reader)
}

func get(ctx context.Context, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func next(t *testing.T, log *json.Decoder) Record {
	t.Helper()
	var record Record
	if err := log.Decode(&record); err != nil {
		t.Fatal(err)
	}
	return record
}

func TestHandlerRecordsTheAnswer(t *testing.T) {
	server, log := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.Copy(w, strings.NewReader("short and stout"))
	})
	answered := make(chan error, 1)
	go func() { _, err := get(t.Context(), server.URL+"/v2/web/manifests/v1?x=y"); answered <- err }()
	record := next(t, log)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if record.Status != http.StatusTeapot || record.Bytes != 15 || record.Aborted || record.Reference != "v1" || record.Query != "x=y" {
		t.Errorf("record %+v", record)
	}
	if record.Seconds <= 0 || time.Since(record.Time) > time.Minute || record.Asker != AskerCache {
		t.Errorf("record %+v", record)
	}
}

func TestHandlerRecordsAnAbort(t *testing.T) {
	server, log := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	answered := make(chan error, 1)
	go func() { _, err := get(t.Context(), server.URL); answered <- err }()
	if record := next(t, log); !record.Aborted || record.Bytes != 4 || record.Status != http.StatusOK {
		t.Errorf("record %+v", record)
	}
	if err := <-answered; err == nil {
		t.Error("the client got a whole answer")
	}
}

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
	records, err := ReadUntil(&out, "patient")
	if err != nil || len(records) != 1 || records[0].Repository != "slow" {
		t.Errorf("records before the mark: %v, %v", records, err)
	}
}

// TestHold: settle does not wait for a held request, waits for it after its release, and the
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
	records, err := ReadUntil(&out, "ended")
	if err != nil || len(records) != 1 || len(records[0].Faults) != 2 {
		t.Errorf("records %+v, %v", records, err)
	}
}

// TestWithoutLog: both functions work without a Log.
func TestWithoutLog(t *testing.T) {
	NoteFault(t.Context(), "f1")
	Hold(t.Context())()
}
