package registry

import (
	"context"
	"io"
	"path"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/sirupsen/logrus"
)

const (
	// checkPatience is how long a request waits for a check. One that takes longer goes on behind, and removes afterwards what is
	// damaged: containerd turns to the upstream after 30 s without an answer.
	checkPatience = 2 * time.Second
	// checkLasts is how long a check holds: a disk can spoil a file without changing its time. Nobody waits for those that come
	// after it.
	checkLasts = 24 * time.Hour
	// checksAtOnce is how many blobs of more than smallBlob bytes are read at the same time. Small ones wait for nobody.
	checksAtOnce = 2
	smallBlob    = 16 << 20
)

// damagedBlobs is ours, as upstreamRequests is.
var damagedBlobs = promauto.NewCounter(prometheus.CounterOpts{
	Name: "registry_storage_damaged_blobs_total",
	Help: "The number of blobs and manifests whose file had another content than that of their digest; they are removed and fetched anew",
})

// check is one reading of a blob's file.
type check struct {
	size            int64
	modified, begun time.Time
	// deadline is how long requests wait for it.
	deadline time.Time
	// done is closed at the end; unfit is set then: the blob must not be served.
	done  chan struct{}
	unfit bool
}

func newCheck(info driver.FileInfo, patience time.Duration) *check {
	now := time.Now()
	return &check{size: info.Size(), modified: info.ModTime(), begun: now, deadline: now.Add(patience), done: make(chan struct{})}
}

// verified is a check that somebody else has made.
func verified(info driver.FileInfo) *check {
	c := newCheck(info, 0)
	close(c.done)
	return c
}

// of says whether the file is the one that was, or is being, read.
func (c *check) of(info driver.FileInfo) bool {
	return c.size == info.Size() && c.modified.Equal(info.ModTime())
}

func (c *check) old() bool { return time.Since(c.begun) >= checkLasts }

// passed says whether it has ended, and has found nothing.
func (c *check) passed() bool {
	select {
	case <-c.done:
		return !c.unfit
	default:
		return false
	}
}

// failed waits for the end of the check, at most until its deadline, and says whether the blob is known to be unfit.
func (c *check) failed(ctx context.Context) bool {
	select {
	case <-c.done:
		return c.unfit
	default:
	}
	patience := time.NewTimer(time.Until(c.deadline))
	defer patience.Stop()
	select {
	case <-c.done:
		return c.unfit
	case <-patience.C:
	case <-ctx.Done():
	}
	return false
}

// run reads the file, and removes the blob if it is damaged. ctx must not end with the request of whoever asked for the blob.
func (s *soundStore) run(ctx context.Context, c *check, file string, want digest.Digest) {
	defer close(c.done)
	if c.size > smallBlob {
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
	}
	content, err := s.Reader(ctx, file, 0)
	if err != nil { // gone meanwhile, or no file can be opened: that says nothing of its content
		s.forget(file, c)
		return
	}
	defer func() { _ = content.Close() }()
	verifier := want.Verifier()
	read, err := io.Copy(verifier, content)
	switch {
	case err != nil:
		// The disk may be able to read it later: what is fetched now takes its place, but until then it stays.
		c.unfit = true
		s.forget(file, c)
		logrus.Warnf("the stored blob %s cannot be read, and is fetched again: %v", want, err)
	case !verifier.Verified():
		c.unfit = true
		damagedBlobs.Inc()
		logrus.Warnf("the stored blob %s is damaged: its %d bytes have another digest; it is removed, and fetched again when it is asked for", want, read)
		s.remove(ctx, c, file)
	}
}

// remove deletes the blob, unless another file has taken its place since: what is moved there in the moment between goes with it,
// and is fetched once more. If deleting fails, on a volume that is read-only, the check stays known: the blob is not there for
// whoever asks.
func (s *soundStore) remove(ctx context.Context, c *check, file string) {
	if info, err := s.StorageDriver.Stat(ctx, file); err != nil || !c.of(info) {
		return
	}
	if err := s.StorageDriver.Delete(ctx, path.Dir(file)); err != nil {
		logrus.Errorf("cannot remove a damaged blob, which is not served: %v", err)
		return
	}
	s.forget(file, c)
}
