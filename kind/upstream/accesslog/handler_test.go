package accesslog

import (
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
