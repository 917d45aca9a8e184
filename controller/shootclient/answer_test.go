package shootclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shoot is a shoot's API server that can hang.
type shoot struct {
	delay     time.Duration // until the answer
	hangsLate bool          // hangs after the header of the answer
	err       error
}

func (s *shoot) RoundTrip(request *http.Request) (*http.Response, error) {
	select {
	case <-time.After(s.delay):
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	content := io.Reader(strings.NewReader(`{"kind":"NodeList","apiVersion":"v1","items":[]}`))
	if s.hangsLate {
		content = reader(func([]byte) (int, error) {
			<-request.Context().Done()
			return 0, request.Context().Err()
		})
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(content), Request: request,
	}, nil
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// newShootClient returns a real client whose requests go to the shoot.
func newShootClient(t *testing.T, s *shoot) client.Client {
	t.Helper()
	config := &rest.Config{Host: "http://shoot.test", QPS: -1}
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return &transport{next: s, shoot: &answers{}} })
	c, err := client.New(config, client.Options{Mapper: newMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHangingShootGetsMoreTime checks how many seconds each request takes if the shoot is slow. The
// requests are a minute apart.
func TestHangingShootGetsMoreTime(t *testing.T) {
	const never = 3600
	for name, test := range map[string]struct{ answers, took []int }{
		"never answers":   {[]int{never, never, never, never, never}, []int{1, 2, 4, 8, 8}},
		"answers later":   {[]int{never, never, 0, never}, []int{1, 2, 0, 1}},
		"stops to answer": {[]int{0, 0, never, never}, []int{0, 0, 1, 2}},
		"is always slow":  {[]int{3, 3, 3, 3, 3}, []int{1, 2, 3, 3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shoot{}
				c := newShootClient(t, s)
				var took []int
				for i := range test.answers {
					s.delay = time.Duration(test.answers[i]) * time.Second
					started := time.Now()
					if err := c.List(t.Context(), &corev1.NodeList{}); IsNoAnswer(err) != (test.took[i] < test.answers[i]) {
						t.Fatalf("error = %v", err)
					}
					took = append(took, int(time.Since(started)/time.Second))
					<-time.After(time.Minute)
				}
				if !slices.Equal(took, test.took) {
					t.Errorf("the requests took %d seconds, want %d", took, test.took)
				}
			})
		})
	}
}

// TestNoAnswer distinguishes a shoot that hangs from one that is gone.
func TestNoAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		shoot shoot
		says  string
		want  bool
	}{
		"hangs":                {shoot{delay: time.Hour}, "no answer for 1s", true},
		"hangs in the content": {shoot{hangsLate: true}, "no answer for 8s", true},
		"refuses connections":  {shoot{err: errors.New("connection refused")}, "connection refused", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := newShootClient(t, &test.shoot).List(t.Context(), &corev1.NodeList{})
				if err == nil || IsNoAnswer(fmt.Errorf("list: %w", err)) != test.want || !strings.Contains(err.Error(), test.says) {
					t.Errorf("error = %v, no answer: %t", err, IsNoAnswer(err))
				}
			})
		})
	}
}

// TestDeadlineOfTheAttempt: the shoot answers some requests, but too slowly for all of them.
func TestDeadlineOfTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shoot{}
		c := newShootClient(t, s)
		if err := c.List(t.Context(), &corev1.NodeList{}); err != nil {
			t.Fatal(err)
		}
		s.delay = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := c.List(ctx, &corev1.NodeList{}); !IsNoAnswer(err) || !strings.Contains(err.Error(), "no answer for 3s") {
			t.Errorf("error = %v", err)
		}
		canceled, stop := context.WithCancel(t.Context())
		stop()
		if err := c.List(canceled, &corev1.NodeList{}); err == nil || IsNoAnswer(err) {
			t.Errorf("an attempt that was canceled: %v", err)
		}
	})
}
