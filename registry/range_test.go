package registry

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"testing"
)

// TestRange: parts of stored and arriving blobs are served.
func TestRange(t *testing.T) {
	t.Parallel()
	const size = 100_000
	for _, test := range []struct {
		header string
		status int
		first  int
		end    int
	}{
		{"", 200, 0, size},
		{"bytes=0-9", 206, 0, 10},
		{"bytes=10-", 206, 10, size},
		{"bytes=10-19", 206, 10, 20},
		{"bytes=99990-200000", 206, 99_990, size},
		{"bytes=-10", 206, size - 10, size},
		{"bytes=100000-", 416, 0, 0},
	} {
		t.Run(test.header, func(t *testing.T) {
			Virtually(t, func(t *testing.T) {
				u := newTestUpstream(t, false)
				image := u.push(t, "v1", 1, size)
				cache := newTestServer(t, u, t.TempDir())
				for _, state := range []string{"cold", "warm"} {
					for blob, content := range image.content {
						request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cache.blob(blob.String()), nil)
						if err != nil {
							t.Fatal(err)
						}
						request.Header.Set("Range", test.header)
						response, err := clientOf(t).Do(request)
						if err != nil {
							t.Fatal(err)
						}
						got, err := io.ReadAll(response.Body)
						_ = response.Body.Close()
						want := content[test.first:test.end]
						if test.status == 416 {
							want = got
						}
						if err != nil || response.StatusCode != test.status || !bytes.Equal(got, want) {
							t.Errorf("%s: %d, %d bytes, want %d, error %v", state, response.StatusCode, len(got), len(want), err)
						}
					}
					cache.await(t, 1)
				}
			})
		})
	}
}

// TestRanges checks several parts in one answer, of stored and arriving blobs.
func TestRanges(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		u := newTestUpstream(t, false)
		image := u.push(t, "v1", 1, 100_000)
		cache := newTestServer(t, u, t.TempDir())
		for _, state := range []string{"cold", "warm"} {
			for blob, content := range image.content {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cache.blob(blob.String()), nil)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Range", "bytes=0-9,20-29,1000-60000")
				response, err := clientOf(t).Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = response.Body.Close() }()
				_, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
				if err != nil || response.StatusCode != http.StatusPartialContent {
					t.Fatalf("%s: %d, %v", state, response.StatusCode, err)
				}
				parts := multipart.NewReader(response.Body, parameters["boundary"])
				for _, want := range [][]byte{content[:10], content[20:30], content[1000:60001]} {
					part, err := parts.NextPart()
					if err != nil {
						t.Fatalf("%s: %v", state, err)
					}
					if got, err := io.ReadAll(part); err != nil || !bytes.Equal(got, want) {
						t.Errorf("%s: %d bytes, want %d, error %v", state, len(got), len(want), err)
					}
				}
			}
			cache.await(t, 1)
		}
	})
}
