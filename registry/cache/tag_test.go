package cache

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// slowReader is a body that arrives only after a channel is closed.
type slowReader struct {
	io.Reader
	after <-chan struct{}
}

// Read implements io.Reader.
func (s slowReader) Read(p []byte) (int, error) { <-s.after; return s.Reader.Read(p) }

// TestLateAnswerOfMovedTag checks that an old answer about a moved tag, if it arrives late, does
// not replace the answer to a later request. Otherwise the old manifest would be served as fresh,
// and in an outage.
func TestLateAnswerOfMovedTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		volume, err := store.New(t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		c := New(Options{Store: volume})
		defer c.Close()
		c.index.Merge(store.Contents{}, c.now())
		old := `{"schemaVersion":2,"mediaType":"` + v1.MediaTypeImageManifest + `","layers":[]}`
		moved := strings.Replace(old, "[]", "[{}]", 1)
		body, late := old, make(chan struct{})
		c.options.Upstream = &answers{answer: func(http.Header) (*http.Response, error) {
			header := http.Header{"Content-Type": {v1.MediaTypeImageManifest}, "Docker-Content-Digest": {digest.FromString(body).String()}}
			answer := respond(http.StatusOK, header, int64(len(body)), strings.NewReader(body))
			if body == old {
				answer.Body = io.NopCloser(slowReader{strings.NewReader(body), late})
			}
			return answer, nil
		}}
		if _, err := c.Tag(t.Context(), query, "v1"); !errors.Is(err, upstream.ErrLate) {
			t.Fatalf("without a body: %v", err)
		}
		body = moved
		if m, err := c.Tag(t.Context(), query, "v1"); err != nil || string(m.Content) != moved {
			t.Fatalf("the tag has moved: %s, %v", m.Content, err)
		}
		close(late)
		synctest.Wait()
		if m, err := c.Tag(t.Context(), query, "v1"); err != nil || string(m.Content) != moved {
			t.Errorf("after the late answer: %s from the %s, %v", m.Content, m.From, err)
		}
		<-time.After(fresh)
		c.options.Upstream = &answers{answer: func(http.Header) (*http.Response, error) { return nil, &upstream.AwayError{} }}
		if m, err := c.Tag(t.Context(), query, "v1"); err != nil || string(m.Content) != moved {
			t.Errorf("in an outage: %s from the %s, %v", m.Content, m.From, err)
		}
	})
}

// TestUnknownTagOfReplica: a replica that requests a tag that is not stored receives ErrNotHere,
// which does not count as a failure.
func TestUnknownTagOfReplica(t *testing.T) {
	c, _, _ := newTestCache(t, Options{})
	if _, err := c.Tag(t.Context(), Query{Repository: "library/app", Stored: true}, "v9"); !errors.Is(err, ErrNotHere) {
		t.Errorf("got error %v, want %v", err, ErrNotHere)
	}
}
