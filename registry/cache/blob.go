package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

const (
	// mostPassing limits how many blobs pass through at the same time: each is sent to one client
	// without being stored. Further requests fail with ErrBusy.
	mostPassing = 200
	// mostUnstored is the maximum length of the list of blobs that the volume could not store.
	mostUnstored = 1000
	// unstoredFor is how long a blob passes through before the cache tries to store it again.
	unstoredFor = time.Second
)

// Blob is a blob to serve: a stored file, an arrival, or the upstream's answer.
type Blob struct {
	From From
	Size int64 // -1 if unknown
	File *store.File
	// Answer is the upstream's answer. Reading its body fails if the content does not match the
	// digest. A part of a blob, or content with a Content-Encoding, is not checked.
	Answer  *http.Response
	arrival *arrival
	cache   *Cache
	digest  digest.Digest
}

// hold returns a Blob that is not evicted until it is closed.
func (c *Cache) hold(blob digest.Digest, b Blob) *Blob {
	b.cache, b.digest = c, blob
	c.index.Hold(blob, 1)
	return &b
}

// Close releases the blob.
func (b *Blob) Close() error {
	if b.cache != nil {
		b.cache.index.Hold(b.digest, -1)
	}
	switch {
	case b.arrival != nil:
		b.arrival.leave()
	case b.File != nil:
		return b.File.Close()
	case b.Answer != nil:
		return b.Answer.Body.Close()
	}
	return nil
}

// Unreadable records that the disk cannot read File: for a while, requests get the blob from the
// upstream.
func (b *Blob) Unreadable() {
	b.cache.options.Store.Distrust(b.digest)
	b.cache.pass(b.digest)
}

// Copy copies an arriving blob to w. It sends the last byte only after the check.
func (b *Blob) Copy(ctx context.Context, w io.Writer) error { return b.arrival.copy(ctx, w) }

// Blob returns a stored or arriving blob, or the upstream's answer. It waits for the upstream at
// most upstream.Patience, or twice that if the blob passes through. The caller must close the Blob.
func (c *Cache) Blob(ctx context.Context, q Query, blob digest.Digest) (*Blob, error) {
	found, err := c.local(ctx, q, blob)
	if err == nil {
		return found, nil
	}
	if q.Stored {
		return &Blob{}, ErrNotHere
	}
	if !store.IsSlow(err) && !errors.Is(err, upstream.ErrLate) {
		found, err = c.arriving(ctx, FromUpstream, q, blob)
	}
	late := errors.Is(err, upstream.ErrLate) && !isWhole(q.Range)
	if late || errors.Is(err, errUnstored) || errors.Is(err, errAbandoned) || store.IsSlow(err) {
		found, err = c.passThrough(ctx, q, blob)
	}
	if err != nil {
		return &Blob{From: FromUpstream}, fmt.Errorf("fetch blob %s: %w", blob, err)
	}
	return found, nil
}

// local returns a stored blob. If it is not checked, local starts a check and returns its arrival.
func (c *Cache) local(ctx context.Context, q Query, blob digest.Digest) (*Blob, error) {
	file, err := c.open(store.Link{Repository: q.Repository}, blob)
	if err != nil {
		return nil, err
	}
	if file.Checked {
		return c.hold(blob, Blob{From: FromVolume, Size: file.Size, File: file}), nil
	}
	c.check(blob, file) //nolint:contextcheck // it outlives the request
	return c.arriving(ctx, FromVolume, q, blob)
}

// arriving returns an arriving blob. A request for a part waits until the arrival has ended.
func (c *Cache) arriving(ctx context.Context, from From, q Query, blob digest.Digest) (*Blob, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, upstream.Patience, upstream.ErrLate)
	defer cancel()
	a, err := c.join(ctx, q, blob)
	if err != nil {
		return nil, err
	}
	whole := isWhole(q.Range) && !q.Stored
	size, isOpen, err := a.enter(ctx, whole)
	if file, notStored := c.open(store.Link{Repository: q.Repository}, blob); err == nil && notStored == nil && file.Checked {
		a.leave()
		return c.hold(blob, Blob{From: from, Size: file.Size, File: file}), nil
	} else if notStored == nil {
		_ = file.Close()
	}
	if err == nil && whole && isOpen {
		return c.hold(blob, Blob{From: from, Size: size, arrival: a}), nil
	}
	a.leave()
	return nil, cmp.Or(err, errUnstored)
}

// isWhole reports whether a request asks for all bytes.
func isWhole(ranges string) bool { return ranges == "" || ranges == "bytes=0-" }

// Stat returns the source and the size of a blob, without its content.
func (c *Cache) Stat(ctx context.Context, q Query, blob digest.Digest) (*Blob, error) {
	if found, err := c.local(ctx, q, blob); err == nil {
		return &Blob{From: FromVolume, Size: found.Size}, found.Close()
	}
	if q.Stored {
		return &Blob{}, ErrNotHere
	}
	path := "blobs/" + blob.String()
	size, err := ask(ctx, c, "blob", http.MethodHead, q.Repository, path, func(ctx context.Context) (int64, error) {
		response, err := c.options.Upstream.Do(ctx, http.MethodHead, q.Repository, path, nil)
		if err != nil && !upstream.Unanswered(err) || err == nil && response.ContentLength == 0 {
			if err == nil {
				_ = response.Body.Close()
			}
			response, err = c.options.Upstream.Do(ctx, http.MethodGet, q.Repository, path, nil) // some registries answer only GET
		}
		if err != nil {
			return 0, err
		}
		if response.Header.Get("Content-Encoding") != "" || response.ContentLength == 0 && blob != blob.Algorithm().FromString("") {
			response.ContentLength = -1 // the upstream sent the length of the encoded form, or a wrong one
		}
		return response.ContentLength, response.Body.Close()
	})
	return &Blob{From: FromUpstream, Size: size}, err
}

// pass makes a blob pass through for the next second.
func (c *Cache) pass(blob digest.Digest) { c.unstored.Add(blob, c.now().Add(unstoredFor)) }

func (c *Cache) passes(blob digest.Digest) bool {
	until, ok := c.unstored.Peek(blob)
	return ok && c.now().Before(until)
}

// passThrough returns the upstream's answer for one client, without storing the blob.
func (c *Cache) passThrough(ctx context.Context, q Query, blob digest.Digest) (_ *Blob, err error) {
	if !c.passing.TryAcquire(1) {
		return nil, ErrBusy
	}
	ctx, cancel := context.WithCancelCause(upstream.Passing(ctx))
	body := &passed{ReadCloser: http.NoBody, end: func() { cancel(nil); c.passing.Release(1) }}
	defer func() {
		if err != nil {
			_ = body.Close()
		}
	}()
	late := time.AfterFunc(upstream.Patience, func() { cancel(upstream.ErrLate) })
	answer, err := c.request(ctx, q.Repository, blob, q.Range) //nolint:bodyclose // body closes it
	if err == nil {
		body.ReadCloser = answer.Body
	}
	if !late.Stop() || err != nil {
		return nil, cmp.Or(context.Cause(ctx), err, upstream.ErrLate)
	}
	switch sent := answer.Header.Get("Content-Range"); {
	case isWhole(q.Range): // some registries answer 206 anyway
		answer.StatusCode = http.StatusOK
		answer.Header.Del("Content-Range")
	case answersRange(sent, q.Range): // some registries answer 200 anyway
		answer.StatusCode = http.StatusPartialContent
	case answer.StatusCode == http.StatusPartialContent && !strings.Contains(q.Range, ","):
		return nil, fmt.Errorf("the upstream sent range %q for %q: %w", sent, q.Range, errDamaged)
	}
	metrics.Unstored.WithLabelValues("blob").Inc()
	if answer.StatusCode != http.StatusPartialContent && answer.Header.Get("Content-Encoding") == "" {
		body.verifier = blob.Verifier()
	}
	answer.Body = body
	return c.hold(blob, Blob{From: FromUpstream, Size: answer.ContentLength, Answer: answer}), nil
}

// answersRange reports whether the Content-Range that the upstream sent can be the requested range.
// A multipart answer has no such header: each of its parts contains one.
func answersRange(sent, asked string) bool {
	var first, last, size, wanted int64
	n, _ := fmt.Sscanf(sent, "bytes %d-%d/%d", &first, &last, &size)
	if m, _ := fmt.Sscanf(asked, "bytes=%d", &wanted); m == 1 && strings.HasPrefix(asked, "bytes=-") {
		return n == 3 && first == max(size+wanted, 0)
	}
	return n >= 2 && first == wanted
}

// passed is the body of a blob that passes through. With a verifier, it holds back the last byte
// until the digest is checked.
type passed struct {
	io.ReadCloser
	end      func()
	verifier digest.Verifier // nil for a part
	held     []byte
	err      error
}

// Read implements io.Reader.
func (p *passed) Read(buffer []byte) (n int, err error) {
	if p.verifier == nil {
		n, err = p.ReadCloser.Read(buffer)
		metrics.Pulled.WithLabelValues("blob").Add(float64(n))
		return n, err
	}
	if p.err != nil {
		return 0, p.err
	}
	start := 1 - copy(buffer, p.held)
	n, p.err = p.ReadCloser.Read(buffer[1:])
	metrics.Pulled.WithLabelValues("blob").Add(float64(n))
	_, _ = p.verifier.Write(buffer[1 : 1+n])
	content := buffer[start : 1+n]
	switch {
	case p.err == nil && len(content) > 0:
		last := len(content) - 1
		p.held, content = append(p.held[:0], content[last]), content[:last]
	case errors.Is(p.err, io.EOF) && !p.verifier.Verified():
		p.err, content = errDamaged, nil
	}
	return copy(buffer, content), p.err
}

// Close implements io.Closer.
func (p *passed) Close() error {
	defer p.end()
	return p.ReadCloser.Close()
}
