package fetch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// What is left free on a volume: for links, the times of what is stored, and manifests, of which distribution takes 4 MiB.
const (
	spare      = 8 << 20 // bytes
	spareFiles = 16
)

var unstored = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "registry_proxy_unstored_requests_total",
	Help: "The number of requests that were answered by the upstream past the store, because it has no room or fails, or another fetch does not get on, by type",
}, []string{"type"})

// fits says whether a volume with so many free bytes and files takes size more bytes, if what is under way needs the promised ones.
func fits(size int64, free, files, promised uint64) bool {
	return files > spareFiles && free >= promised+uint64(max(0, size))+spare
}

// room returns errNoRoom if size bytes do not fit onto the volume. The caller has the lock.
func (g *Group) room(size int64) error {
	free, files := left(g.root)
	promised := g.promised()
	if fits(size, free, files, promised) {
		return nil
	}
	if files <= spareFiles {
		return fmt.Errorf("%w: %d files are free", errNoRoom, files)
	}
	return fmt.Errorf("%w: %d MiB are free, fetches under way will take %d MiB", errNoRoom, free>>20, promised>>20)
}

// left returns how many bytes and files the volume takes; where nobody knows, as many as there can be.
func left(root string) (bytes, files uint64) {
	var volume unix.Statfs_t
	if unix.Statfs(root, &volume) != nil {
		return math.MaxInt64, math.MaxInt64
	}
	if volume.Files == 0 { // the file system does not count them
		return volume.Bavail * uint64(volume.Bsize), math.MaxInt64
	}
	return volume.Bavail * uint64(volume.Bsize), volume.Ffree
}

// full returns errNoRoom if there is room for nothing but what is on its way.
func (g *Group) full() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.room(0)
}

// promised is what flights are still going to write. One that does not get on has nothing promised: if it gets on after all, and
// the volume is full then, its clients get the rest past the store. The caller has the lock.
func (g *Group) promised() (bytes uint64) {
	for _, f := range g.flights {
		if !f.stalled() {
			bytes += uint64(max(0, f.expected-f.look().written))
		}
	}
	return bytes
}

// pastStore makes distribution send without storing, for which it has no way of its own: writes of this context go nowhere.
func (g *Group) pastStore(ctx context.Context, kind, what string, why error) context.Context {
	unstored.WithLabelValues(kind).Inc()
	g.warning.Do(func() { logrus.Warnf("%s %s goes past the store: %v (said once a minute)", kind, what, why) })
	return context.WithValue(ctx, pastKey{}, true)
}

type pastKey struct{}

func isPast(ctx context.Context) bool { return ctx.Value(pastKey{}) != nil }

// errPast is how a blob that goes past the store ends, when its client has got all of it.
var errPast = errors.New("sent, and not stored")

// nowhere is a file that is not kept.
type nowhere struct{ size int64 }

var _ driver.FileWriter = &nowhere{}

func (n *nowhere) Write(p []byte) (int, error) {
	n.size += int64(len(p))
	return len(p), nil
}

func (n *nowhere) Size() int64                  { return n.size }
func (n *nowhere) Close() error                 { return nil }
func (n *nowhere) Cancel(context.Context) error { return nil }
func (n *nowhere) Commit(context.Context) error { return errPast }
