package registry

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.uber.org/goleak"
)

var (
	soak    = flag.Duration("soak", 5*time.Second, "how long TestSoak runs")
	clients = flag.Int("clients", 50, "clients of TestSoak")
)

// trouble breaks requests of the cache at random, but no requests of other clients.
func trouble(random *lockedRandom) fault {
	return fault{answer: func(u *testUpstream, w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get(directHeader) != "" {
			return false
		}
		switch random.IntN(20) {
		case 0, 1, 2:
			u.registry.ServeHTTP(&cutWriter{u.counting(w, r), 1 + random.IntN(300<<10)}, r)
			return true
		case 3:
			w.WriteHeader([]int{429, 500, 502, 503}[random.IntN(4)])
			return true
		case 4:
			select { // slower than the cache's patience
			case <-time.After(2 * time.Second):
			case <-r.Context().Done():
			}
		case 5:
			panic(http.ErrAbortHandler)
		}
		return false
	}}
}

type lockedRandom struct {
	mu sync.Mutex
	*rand.Rand
}

// IntN returns a number below n.
func (r *lockedRandom) IntN(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Rand.IntN(n)
}

// Uint64 returns a number.
func (r *lockedRandom) Uint64() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Rand.Uint64()
}

// TestSoak: many clients pull through a cache with a failing upstream and a volume that is too
// small. No pull fails, no byte is wrong, and nothing grows.
func TestSoak(t *testing.T) {
	const blobs, size = 200, 300 << 10
	u := newTestUpstream(t, false)
	ignored := goleak.IgnoreCurrent()
	volume := mount(t, "size=20m")
	cache := newTestServer(t, u, volume)
	random := &lockedRandom{Rand: rand.New(rand.NewPCG(1, 1))}
	var pool []v1.Descriptor
	for range blobs {
		content := make([]byte, 1+random.IntN(size))
		for i := range content {
			content[i] = byte(random.Rand.Uint32())
		}
		pool = append(pool, u.pushBlob(t, content))
	}
	undo := u.breakWith(t, trouble(random))
	var pulls atomic.Int64
	var early, earlyFiles int64
	begin, end := time.Now(), time.Now().Add(*soak)
	var nodes sync.WaitGroup
	for range *clients {
		nodes.Go(func() {
			for time.Now().Before(end) {
				blob := pool[random.IntN(len(pool))]
				if random.IntN(50) == 0 {
					_ = freeze(t, cache, blob.Digest).Close()
				}
				if err := pullBlob(t, blob, u.URL, cache.URL); err != nil {
					t.Errorf("after %s: %v", time.Since(begin), err)
				}
				pulls.Add(1)
			}
		})
	}
	nodes.Go(func() {
		<-time.After(*soak / 4)
		early, earlyFiles = heap(), descriptors(t)
	})
	nodes.Wait()
	undo()
	if late, files := heap(), descriptors(t); late > 2*early+(32<<20) || files > earlyFiles+100 {
		t.Errorf("memory grew from %d to %d MiB, descriptors from %d to %d", early>>20, late>>20, earlyFiles, files)
	}
	if direct := u.direct.Load(); direct > pulls.Load()/2 {
		t.Errorf("%d requests of %d pulls went to the upstream directly", direct, pulls.Load())
	}
	t.Logf("%d pulls, the cache received %d MiB from the upstream", pulls.Load(), u.sent()>>20)
	cache.stop()
	http.DefaultClient.CloseIdleConnections()
	perApp := goleak.IgnoreTopFunction("github.com/docker/go-events.(*Broadcaster).run")
	leaked := goleak.Find(ignored, perApp)
	for n := 0; n < 20 && leaked != nil; n++ { // each attempt waits a moment
		leaked = goleak.Find(ignored, perApp)
	}
	if leaked != nil {
		t.Error(leaked)
	}
}

func descriptors(t *testing.T) int64 {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(entries))
}
