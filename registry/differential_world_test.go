package registry

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

const (
	diffUser     = "robot"
	diffPassword = "s3cr3t-0123456789"
	diffCache    = "cache.cluster.test:5000"
)

// diffWorld is a cache, and an upstream with one listener for nodes and one for the cache.
type diffWorld struct {
	diffSchedule
	host    string // the upstream's host
	library *diffLibrary
	dir     string // the volume
	servers []*http.Server
	nodes   *diffListener // the upstream for nodes
	behind  *diffListener // the upstream for the cache
	front   *diffListener // the cache

	mu      sync.Mutex
	cache   http.Handler
	end     func()
	away    string
	back    chan struct{}
	faults  []string
	tokens  map[string]string      // the hosts that issued tokens to anonymous clients
	served  map[string]int         // requests of clients by path
	asked   map[string][]time.Time // requests of the cache by method and path
	trouble map[string]time.Time   // when the upstream last failed the cache, by repository
	wait    time.Time              // the end of the token server's Retry-After
	early   int                    // token requests before wait
	types   map[string]string      // media types that the cache has sent, by repository and reference
}

// diffListener accepts connections in memory.
type diffListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	open   []net.Conn
}

func newDiffListener() *diffListener {
	return &diffListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

type diffConn struct{ net.Conn }

// LocalAddr implements net.Conn.
func (diffConn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5000} }

// RemoteAddr implements net.Conn.
func (diffConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 40000} }

func (l *diffListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *diffListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *diffListener) Addr() net.Addr { return diffConn{}.LocalAddr() }

func (l *diffListener) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- diffConn{far}:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open = append(l.open, far)
		return diffConn{near}, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cut closes all connections.
func (l *diffListener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

func newDiffWorld(s diffSchedule, dir string) (*diffWorld, error) {
	w := &diffWorld{
		diffSchedule: s, host: "registry.upstream.test", library: newDiffLibrary(), dir: dir,
		nodes: newDiffListener(), behind: newDiffListener(), front: newDiffListener(),
		tokens: map[string]string{}, served: map[string]int{}, asked: map[string][]time.Time{}, trouble: map[string]time.Time{}, types: map[string]string{},
	}
	if s.IP {
		w.host = "10.0.0.5"
	}
	sites := map[string]string{
		registryprofile.Port: "http://" + w.host + ":5050", registryprofile.Sibling: "http://auth.upstream.test",
		registryprofile.Foreign: "http://cdn.elsewhere.example", registryprofile.Private: "http://10.0.0.7",
	}
	w.serve(w.nodes, w.outage(s.Profile.Handler(w.library, sites)))
	w.serve(w.behind, w.watched(w.outage(s.Profile.Handler(w.library, sites))))
	w.serve(w.front, http.HandlerFunc(w.serveCache))
	return w, w.start()
}

func (w *diffWorld) serve(l *diffListener, h http.Handler) {
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Hour}
	w.servers = append(w.servers, server)
	go func() { _ = server.Serve(l) }()
}

// start opens the cache on its volume.
func (w *diffWorld) start() error {
	config := &Config{}
	config.Storage.Filesystem.RootDirectory = w.dir
	config.Proxy.RemoteURL = "http://" + w.host
	config.Cache.Upstream, config.Cache.Owned = w.host, true
	config.Cache.Limit = 64 << 20
	if w.Login {
		config.Proxy.Username, config.Proxy.Password = diffUser, diffPassword
	}
	handler, end, err := diffOpen(context.Background(), config.withDefaults(), w.dialUpstream)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cache, w.end = handler, end
	return err
}

// stop stops the cache, if it is running.
func (w *diffWorld) stop() {
	w.mu.Lock()
	end := w.end
	w.cache, w.end = nil, nil
	w.mu.Unlock()
	w.front.cut()
	if end != nil {
		end()
	}
}

// close stops everything.
func (w *diffWorld) close() {
	w.event(diffAction{Do: "back"})
	w.stop()
	for _, server := range w.servers {
		_ = server.Close()
	}
	for _, l := range []*diffListener{w.nodes, w.behind, w.front} {
		l.cut()
	}
	diffSleep(time.Minute) // for paused handlers: time stops when this goroutine ends
}

func (w *diffWorld) fault(format string, arguments ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf(format, arguments...))
}

func (w *diffWorld) serveCache(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	cache := w.cache
	w.served[r.URL.Path]++
	w.mu.Unlock()
	if cache == nil {
		panic(http.ErrAbortHandler)
	}
	defer func() {
		if reason := recover(); reason != nil {
			if reason != http.ErrAbortHandler { //nolint:errorlint // as in net/http
				w.fault("panic: %s %s: %v", r.Method, r.URL.Path, reason)
			}
			panic(http.ErrAbortHandler)
		}
	}()
	cache.ServeHTTP(rw, r)
}

// dialUpstream connects the cache to the upstream, and dialNode connects nodes.
func (w *diffWorld) dialUpstream(ctx context.Context, _, address string) (net.Conn, error) {
	if mode, _ := w.isAway(); mode == "refused" {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if _, port, err := net.SplitHostPort(address); err != nil || port != "80" && port != "5050" {
		return nil, fmt.Errorf("dial %s: %w", address, cmp.Or(err, error(syscall.EHOSTUNREACH)))
	}
	return w.behind.dial(ctx)
}

func (w *diffWorld) dialNode(ctx context.Context, network, address string) (net.Conn, error) {
	if address == diffCache {
		return w.front.dial(ctx)
	}
	if mode, _ := w.isAway(); mode == "refused" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return w.nodes.dial(ctx)
}

func (w *diffWorld) isAway() (string, chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.away, w.back
}

// outage makes the upstream unavailable.
func (w *diffWorld) outage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch mode, back := w.isAway(); mode {
		case "refused":
			panic(http.ErrAbortHandler)
		case "silent":
			select {
			case <-back:
			case <-r.Context().Done():
			}
			panic(http.ErrAbortHandler)
		case "503":
			http.Error(rw, `{"errors":[{"code":"UNAVAILABLE"}]}`, http.StatusServiceUnavailable)
		case "html":
			http.Error(rw, "<html>bad gateway</html>", http.StatusBadGateway)
		default:
			next.ServeHTTP(rw, r)
		}
	})
}

// event runs an event.
func (w *diffWorld) event(a diffAction) {
	switch a.Do {
	case "away", "back":
		w.mu.Lock()
		was := w.away
		if w.back != nil {
			close(w.back)
			w.back = nil
		}
		w.away = ""
		if a.Do == "away" {
			w.away, w.back = a.Ref, make(chan struct{})
		}
		w.mu.Unlock()
		if a.Ref == "refused" {
			w.nodes.cut()
			w.behind.cut()
		}
		if was != "" && a.Do == "back" {
			diffSleep(40 * time.Second) // until failures are forgotten
		}
	case "sleep":
		diffSleep(time.Duration(a.From) * time.Second)
	case "move", "untag":
		w.library.move(a.Repo, a.Ref, a.To)
		diffSleep(2 * time.Second) // a tag is fresh for a second
	case "restart", "clock":
		w.stop()
		w.mu.Lock()
		w.wait, w.early = time.Time{}, 0 // a restart forgets it
		w.mu.Unlock()
		if a.Do == "clock" {
			w.younger(time.Duration(a.From) * time.Second)
		}
		if err := w.start(); err != nil {
			w.fault("restart: %v", err)
		}
	}
}

// younger changes the times of all files on the volume, as if the clock had been wrong.
func (w *diffWorld) younger(by time.Duration) {
	_ = filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		at := time.Now().Add(by)
		return os.Chtimes(path, at, at)
	})
}
