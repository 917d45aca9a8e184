package fetch

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestRest(t *testing.T) {
	for have, want := range map[int64]string{0: "abcdef", 1: "bcdef", 2: "cdef", 3: "def", 5: "f", 6: "", 9: ""} {
		client := httptest.NewRecorder()
		answer := &rest{client, http.Header{}, have}
		answer.Header().Set("Content-Length", "6")
		answer.WriteHeader(http.StatusTeapot)
		for _, part := range []string{"ab", "", "cdef"} {
			if n, err := answer.Write([]byte(part)); n != len(part) || err != nil {
				t.Errorf("%d bytes of %q, error %v", n, part, err)
			}
		}
		if got := client.Body.String(); got != want || client.Code != http.StatusOK || client.Header().Get("Content-Length") != "" {
			t.Errorf("who has %d bytes got %q, status %d, header %v; want %q alone", have, got, client.Code, client.Header(), want)
		}
	}
}

// Somebody else may have stored the blob meanwhile: then distribution would answer the range.
func TestRestOfAPart(t *testing.T) {
	client := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Range", "bytes=2-")
	http.ServeContent(&rest{client, http.Header{}, 3}, whole(t.Context(), request), "", time.Time{}, strings.NewReader("abcdef"))
	if got := client.Body.String(); got != "def" {
		t.Errorf("who has 3 bytes got %q", got)
	}
}

// spoilt is a file that cannot be read.
type spoilt struct{ file }

func (spoilt) ReadAt([]byte, int64) (int, error) { return 0, os.ErrInvalid }

// The upstream has what the disk cannot give back.
func TestASpoiltFileIsTheStores(t *testing.T) {
	f := patientGroup(t).newFlight(func() {}, "library/app", 10)
	f.file, f.size, f.written = spoilt{}, 10, 10
	reached, err := f.send(t.Context(), httptest.NewRecorder(), 3)
	if reached != 3 || !errors.Is(err, errStore) || !errors.Is(err, os.ErrInvalid) {
		t.Errorf("at %d, error %v", reached, err)
	}
}

// An upstream that drips is as one that hangs, and one that gets on again is as any other.
func TestADrippingFetch(t *testing.T) {
	f := patientGroup(t).newFlight(func() {}, "library/app", 10*pace)
	f.header, f.size = http.Header{}, 10*pace
	for _, step := range []struct {
		bytes int
		late  bool // it took longer than patience since the step before
		want  bool
	}{{bytes: 1}, {bytes: 1, late: true, want: true}, {bytes: pace, want: true}, {bytes: pace - 1, want: true}, {bytes: 1}, {bytes: pace}} {
		if step.late {
			f.progress = f.progress.Add(-2 * patient)
		}
		f.grow(make([]byte, step.bytes))
		if got := f.stalled(); got != step.want {
			t.Errorf("after %d bytes: stalled is %t", f.written, got)
		}
	}
}
