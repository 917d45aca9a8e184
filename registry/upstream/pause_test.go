package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestObjectPause checks how long a failed object is not requested again: a second, or as long as
// the upstream asks, but at most a minute. Other objects are not affected.
func TestObjectPause(t *testing.T) {
	for asked, want := range map[string]time.Duration{
		"": time.Second, "1": time.Second, "30": 30 * time.Second, "120": time.Minute, "99999999999999999999": time.Minute,
	} {
		t.Run(asked, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFailures(t.Context(), nil)
				answer := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {asked}}, Body: http.NoBody}
				away, _ := errors.AsType[*AwayError](verdict(answer))
				f.add("a/blobs/b", away)
				<-time.After(want - 1)
				err := f.check("a/manifests/m", "a/blobs/b")
				if again, ok := errors.AsType[*AwayError](err); !ok || !again.Remembered || again.RetryAfter != 1 {
					t.Errorf("a moment before the end: %+v", err)
				}
				if err := f.check("a/manifests/m"); err != nil {
					t.Errorf("another object: %v", err)
				}
				<-time.After(1)
				if err := f.check("a/blobs/b"); err != nil {
					t.Errorf("after %s: %v", want, err)
				}
			})
		})
	}
}

// TestRepositoryNamedLikeTag checks that a failed repository, which a client may have invented,
// does not block the tag whose path equals its name.
func TestRepositoryNamedLikeTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPipedClient(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/token":
				w.WriteHeader(http.StatusBadRequest)
			case r.URL.Path != "/v2/":
				w.Header().Set("WWW-Authenticate", `Bearer realm="http://registry.example/token"`)
				w.WriteHeader(http.StatusUnauthorized)
			}
		})
		_, err := c.Do(t.Context(), http.MethodGet, "library/app/manifests/v1", "manifests/v1", nil) //nolint:bodyclose // an error
		if away, ok := errors.AsType[*AwayError](err); !ok || !away.noToken || c.Away("library/app/manifests/v1", "manifests/v2") == nil {
			t.Fatalf("the repository is not paused: %v", err)
		}
		if err := c.Away("library/app", "manifests/v1"); err != nil {
			t.Errorf("the tag: %v", err)
		}
	})
}

// TestForgottenFailure checks that an object that has answered may be requested again at once.
func TestForgottenFailure(t *testing.T) {
	f := newFailures(t.Context(), nil)
	f.add("a/blobs/b", &AwayError{cause: ErrLate})
	f.forget("a/blobs/b")
	if err := f.check("a/blobs/b"); err != nil {
		t.Error(err)
	}
}

// TestFailureBound checks that the last 10,000 failures are remembered.
func TestFailureBound(t *testing.T) {
	f := newFailures(t.Context(), nil)
	for n := range 10_001 {
		f.add(fmt.Sprint(n), &AwayError{cause: ErrLate})
	}
	if f.one.Len() != 10_000 || f.check("0") != nil || f.check("1") == nil || f.check("10000") == nil {
		t.Errorf("%d failures; 0: %v, 1: %v, 10000: %v", f.one.Len(), f.check("0"), f.check("1"), f.check("10000"))
	}
}

// TestProbes checks that one probe at a time requests the root, after pauses that grow to ten
// seconds or to the upstream's Retry-After, and that the upstream is away until the root answers.
func TestProbes(t *testing.T) {
	silent := &AwayError{cause: ErrLate}
	synctest.Test(t, func(t *testing.T) {
		start, times := time.Now(), []time.Duration(nil)
		answers := []error{silent, silent, silent, &AwayError{RetryAfter: 20 * time.Second, cause: ErrLate}, silent, silent, nil, nil}
		f := newFailures(t.Context(), func(ctx context.Context) error {
			times = append(times, time.Since(start))
			select { // slow, so that concurrent probes would be seen
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return answers[len(times)-1]
		})
		f.startProbe()
		f.startProbe()
		<-time.After(time.Second - 1)
		if err := f.check("any"); err != nil {
			t.Errorf("away before the root has failed: %v", err)
		}
		<-time.After(1)
		for second := 1; second < 54; second++ {
			f.startProbe()
			synctest.Wait()
			if f.check("any") == nil {
				t.Errorf("not away after %d seconds", second)
			}
			<-time.After(time.Second)
		}
		synctest.Wait()
		if err := f.check("any"); err != nil {
			t.Errorf("away although the root has answered: %v", err)
		}
		want := []int{0, 2, 5, 10, 31, 42, 53} // in seconds, one for each answer
		if len(times) != len(want) {
			t.Fatalf("probes at %v", times)
		}
		for n := range want {
			if times[n] != time.Duration(want[n])*time.Second {
				t.Errorf("probes at %v, want %v", times, want)
				break
			}
		}
		f.startProbe()
		synctest.Wait()
		if len(times) != 8 {
			t.Error("after the end of a probe, the next one sends no request")
		}
	})
}

// TestAnswerEndsSilence checks that any answer ends an outage in which the root was silent, but not
// one in which the root answers with an error.
func TestAnswerEndsSilence(t *testing.T) {
	for name, test := range map[string]struct {
		cause error
		away  bool
	}{
		"silent": {ErrLate, false},
		"503":    {errors.New("the upstream answered 503"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFailures(t.Context(), func(context.Context) error { return &AwayError{cause: test.cause} })
				f.startProbe()
				synctest.Wait()
				if f.check("any") == nil {
					t.Error("the upstream is not away")
				}
				f.forget("a/blobs/b")
				if err := f.check("any"); (err != nil) != test.away {
					t.Errorf("after an answer: %v", err)
				}
			})
		})
	}
}

// TestProbesEnd checks that after the context of the client is done, there are no probes, and
// nothing is away.
func TestProbesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		f := newFailures(ctx, func(context.Context) error { asked++; return &AwayError{cause: ErrLate} })
		f.startProbe()
		synctest.Wait()
		cancel()
		synctest.Wait()
		before := asked
		f.startProbe()
		<-time.After(time.Hour)
		if asked != before || f.check("any") != nil {
			t.Errorf("%d requests, then %d; away: %v", before, asked, f.check("any"))
		}
	})
}

// TestProbePace checks that the root is requested once a second, however many objects fail.
func TestProbePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		f := newFailures(t.Context(), func(context.Context) error { asked++; return nil })
		for n := range 100 {
			f.add(fmt.Sprint(n), &AwayError{cause: ErrLate})
			synctest.Wait()
			<-time.After(20 * time.Millisecond)
		}
		if asked != 2 {
			t.Errorf("the root was asked %d times in two seconds, want 2", asked)
		}
	})
}
