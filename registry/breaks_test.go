package registry

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// fates control the next answers about blobs: a positive number cuts the answer after that many
// bytes, and a negative one sets its status.
type fates struct {
	mu   sync.Mutex
	next []int
}

func (f *fates) pop() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.next) == 0 {
		return 0
	}
	fate := f.next[0]
	f.next = f.next[1:]
	return fate
}

func (f *fates) fault() fault {
	return fault{answer: func(u *testUpstream, w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") || r.Method != http.MethodGet {
			return false
		}
		fate := f.pop()
		if fate < 0 {
			w.WriteHeader(-fate)
		}
		if fate <= 0 {
			return fate < 0
		}
		cut := &cutWriter{u.counting(w, r), fate}
		u.registry.ServeHTTP(cut, r)
		return true
	}}
}

// cutWriter closes the connection after left bytes.
type cutWriter struct {
	countingWriter
	left int
}

// Write implements io.Writer.
func (w *cutWriter) Write(p []byte) (int, error) {
	n, err := w.countingWriter.Write(p[:min(w.left, len(p))])
	if w.left -= n; w.left == 0 {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// schedule returns random fates. Most of them cut an answer, and some set an error status.
func schedule(seed uint64, size int) (next []int) {
	random := rand.New(rand.NewPCG(seed, 0))
	for range random.IntN(6) {
		switch random.IntN(5) {
		case 0:
			next = append(next, -[]int{500, 502, 503}[random.IntN(3)])
		default:
			next = append(next, 1+random.IntN(size))
		}
	}
	return next
}

var seeds = flag.Uint64("seeds", 160, "fault schedules of TestBreaks")

// TestBreaks: if containerd's client succeeds directly, it also succeeds through the cache, and the
// upstream sends each byte once.
func TestBreaks(t *testing.T) {
	t.Parallel()
	for seed := range *seeds {
		// Each seed uses its own cache: a download that continues after its pull would use up the next
		// fates.
		t.Run(fmt.Sprint(seed), func(t *testing.T) { Virtually(t, func(t *testing.T) { survives(t, seed) }) })
	}
}

func survives(t *testing.T, seed uint64) {
	t.Helper()
	u := newTestUpstream(t, false)
	cache := newTestServer(t, u, t.TempDir())
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	content := make([]byte, 1+random.Uint64()%(600<<10))
	_, _ = random.Read(content)
	blob, plan := u.pushBlob(t, content), schedule(seed, len(content))
	undo := u.breakWith(t, (&fates{next: plan}).fault())
	direct := pullBlob(t, blob, u.URL)
	undo()
	u.forget()
	undo = u.breakWith(t, (&fates{next: plan}).fault())
	through := pullBlob(t, blob, u.URL, cache.URL)
	undo()
	if direct == nil && through != nil {
		t.Errorf("seed %d: directly it succeeds, through the cache: %v; %v of %d", seed, through, plan, len(content))
	}
	if sent := u.sent(); sent > int64(len(content))*105/100 {
		t.Errorf("seed %d: the upstream sent %d bytes of %d to the cache; %v", seed, sent, len(content), plan)
	}
}
