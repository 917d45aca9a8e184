package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// errRecovered cancels requests that wait although the upstream answers others again.
var errRecovered = errors.New("the upstream answers other requests again")

// breakers decide what a failed or late request says about the upstream. A probe repeats the
// request, and asks for the root of the API at the same time. Only if both fail, the whole upstream
// is away. If only the request fails again, its object is: the next request after objectPause tries
// it. If there is no token, its repository is away.
type breakers struct {
	ctx   context.Context                                                              // ends the probes
	probe func(ctx context.Context, repository, path string, accept http.Header) error // an empty path is the root

	all breaker

	objects *lru.Cache[string, failedObject] // by repository and path

	mu           sync.Mutex
	repositories map[string]*breaker // that are or were away
	suspected    map[string]bool     // repositories with a probe that runs
	late         map[*http.Request]lateRequest
}

const (
	objectPause    = 2 * time.Second
	mostBadObjects = 10_000
)

type failedObject struct {
	err   error
	until time.Time
}

type lateRequest struct {
	repository string
	cancel     context.CancelCauseFunc
}

func newBreakers(ctx context.Context) *breakers {
	b := &breakers{ctx: ctx, repositories: map[string]*breaker{}, suspected: map[string]bool{}, late: map[*http.Request]lateRequest{}}
	b.objects, _ = lru.New[string, failedObject](mostBadObjects) // fails for a size of 0
	b.all.closed = func() { b.cancelLate(func(string) bool { return true }) }
	return b
}

// check returns an *AwayError while the upstream, the repository or the object is away.
func (b *breakers) check(repository, path string) error {
	if err := b.all.check(); err != nil {
		return err
	}
	if bad, _ := b.objects.Peek(repository + "/" + path); time.Now().Before(bad.until) {
		return &AwayError{time.Until(bad.until), bad.err}
	}
	b.mu.Lock()
	one := b.repositories[repository]
	b.mu.Unlock()
	if one == nil {
		return nil
	}
	return one.check()
}

// succeeded records an answer, which may have come late.
func (b *breakers) succeeded(repository, path string) {
	b.objects.Remove(repository + "/" + path)
	b.mu.Lock()
	one := b.repositories[repository]
	delete(b.repositories, repository)
	b.mu.Unlock()
	if one != nil {
		one.close()
	}
	if errors.Is(b.all.check(), ErrLate) {
		b.all.close()
	}
}

// failed starts a probe after a failed or late request, unless one runs. If the upstream asks to
// wait, it is away without a probe.
func (b *breakers) failed(repository, path string, accept http.Header, err error) {
	object := func(ctx context.Context) error { return b.probe(ctx, repository, path, accept) }
	both := func(ctx context.Context) error { return b.both(ctx, repository, path, object) }
	if asksToWait(err) > 0 {
		b.all.trip(b.ctx, err, both)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.suspected[repository] {
		return
	}
	b.suspected[repository] = true
	go func() {
		if away := both(b.ctx); away != nil && b.ctx.Err() == nil {
			b.all.trip(b.ctx, away, both)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.suspected, repository)
	}()
}

// both returns an error if the whole upstream is away. If only the object fails, it remembers that.
// If there is no token, it trips the breaker of the repository.
func (b *breakers) both(ctx context.Context, repository, path string, object func(context.Context) error) error {
	root := make(chan error, 1)
	go func() { root <- b.probe(ctx, "", "", nil) }()
	err := object(ctx)
	rootErr := <-root
	switch {
	case err == nil:
		return nil
	case rootErr != nil || asksToWait(err) > 0:
		return err
	}
	if _, noToken := errors.AsType[*tokenError](err); !noToken {
		b.objects.Add(repository+"/"+path, failedObject{err, time.Now().Add(objectPause)})
		return nil
	}
	b.of(repository).trip(b.ctx, fmt.Errorf("repository %s: %w", repository, err), object) //nolint:contextcheck // the breaker probes longer than this probe
	return nil
}

func (b *breakers) of(repository string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.repositories[repository]
	if one == nil {
		one = &breaker{closed: func() {
			b.mu.Lock()
			delete(b.repositories, repository)
			b.mu.Unlock()
			b.cancelLate(func(of string) bool { return of == repository })
		}}
		b.repositories[repository] = one
	}
	return one
}

// isLate records that a request has waited longer than Patience. If a breaker opens and closes
// before it is answered, it is canceled and sent again: its connection may be dead.
func (b *breakers) isLate(request *http.Request, cancel context.CancelCauseFunc, repository, path string, accept http.Header) {
	b.mu.Lock()
	b.late[request] = lateRequest{repository, cancel}
	b.mu.Unlock()
	b.failed(repository, path, accept, ErrLate)
}

func (b *breakers) answered(request *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.late, request)
}

func (b *breakers) cancelLate(of func(repository string) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, request := range b.late {
		if of(request.repository) {
			request.cancel(errRecovered)
		}
	}
}

// ErrLate says that the upstream did not answer in time.
var ErrLate = fmt.Errorf("the upstream did not answer within %s", Patience)
