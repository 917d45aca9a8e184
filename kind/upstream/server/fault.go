package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// ReplaceFaults atomically replaces the file at path with in, which is the output of spec.Encode.
func ReplaceFaults(path string, in io.Reader) error {
	return replaceFile(path, in, func(content []byte) error {
		_, err := spec.Decode(content)
		return err
	})
}

// readFaults returns the active faults. Without the file, there are none.
func readFaults(path string) ([]spec.Fault, error) {
	content, err := readFile(path)
	if err != nil || len(content) == 0 {
		return nil, err
	}
	all, err := spec.Decode(content)
	return spec.Active(all, time.Now()), err
}

// replaceFile atomically replaces the file at path with the content of in, unless check refuses it.
func replaceFile(path string, in io.Reader, check func([]byte) error) error {
	content, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err == nil {
		err = check(content)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return file.Replace(path, content, 0o400)
}

// readFile returns nil without an error if there is no file.
func readFile(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Faults returns the Middleware that injects the faults in the file at path. A fault ends when it
// expires or is removed from the file. Faults never affect the testbed's own requests. Faults with
// a profile also serve the sites.
func Faults(path string, sites Sites) Middleware {
	running := &profiles{Sites: sites}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if accesslog.AskerOf(r.UserAgent()) == accesslog.AskerHarness {
				next.ServeHTTP(w, r)
				return
			}
			all, err := readFaults(path)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			running.keep(all)
			inject(next, all, injection{path: path, profiles: running}, r).ServeHTTP(w, r)
		})
	}
}

// inject wraps the handler with the faults that match the request. The first one is the outermost.
func inject(next http.Handler, all []spec.Fault, of injection, r *http.Request) http.Handler {
	for _, f := range slices.Backward(all) {
		if matches(f, r) {
			of.Fault = f
			next = of.wrap(next)
		}
	}
	return next
}

func matches(f spec.Fault, r *http.Request) bool {
	kind := accesslog.KindOf(r)
	return f.On == spec.All || f.On == spec.Manifests && kind == accesslog.KindManifest || f.On == spec.Blobs && kind == accesslog.KindBlob
}

type injection struct {
	spec.Fault
	path     string
	profiles *profiles
}

func (d injection) active() bool {
	all, err := readFaults(d.path)
	return err == nil && slices.ContainsFunc(all, d.Same)
}

// wrap adds the fault to the handler. Faults of the body do not change responses without a body.
func (d injection) wrap(next http.Handler) http.Handler {
	switch d.Kind {
	case spec.Status:
		return d.noted(http.HandlerFunc(d.answer))
	case spec.Credentials:
		return d.requireCredentials(next)
	case spec.Token:
		return requireToken(next)
	case spec.Profile:
		return d.noted(d.profiles.wrap(d.Fault, next))
	case spec.Hang:
		return d.noted(d.hang(next))
	case spec.Slow, spec.Truncate:
		return d.changeBody(next)
	default:
		return next
	}
}

func (d injection) noted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accesslog.NoteFault(r.Context(), d.ID)
		next.ServeHTTP(w, r)
	})
}

func (d injection) answer(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	for name, values := range d.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	header.Set("Content-Length", fmt.Sprint(len(d.Body)))
	w.WriteHeader(d.Status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, d.Body) // the client may have disconnected
	}
}

const realm = "upstream registry of the testbed"

// requireCredentials returns a handler that requires any of the fault's credentials, by HTTP basic
// authentication. It does not change admitted requests, so the access log notes the fault only for
// rejected ones.
func (d injection) requireCredentials(next http.Handler) http.Handler {
	d.Status, d.Body = http.StatusUnauthorized, http.StatusText(http.StatusUnauthorized)+"\n"
	d.Header = http.Header{"Www-Authenticate": {fmt.Sprintf("Basic realm=%q", realm)}}
	reject := d.noted(http.HandlerFunc(d.answer))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if sum := sha256.Sum256([]byte(user + ":" + password)); !ok || !slices.Contains(d.Accept, hex.EncodeToString(sum[:])) {
			reject.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hang returns a handler that answers when the fault has ended. If the client disconnects, the
// request is recorded as aborted. Readers of the log do not wait for the response.
func (d injection) hang(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release := accesslog.Hold(r.Context())
		ended := d.waitUntil(r.Context(), nil)
		release()
		if !ended {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// waitUntil returns true when over delivers a value or the fault has ended, and false if ctx ends
// first. If over is nil, waitUntil waits until the fault or ctx ends.
func (d injection) waitUntil(ctx context.Context, over <-chan time.Time) bool {
	check := time.NewTicker(100 * time.Millisecond) // how soon the end of the fault is noticed
	defer check.Stop()
	for d.active() {
		select {
		case <-ctx.Done():
			return false
		case <-over:
			return true
		case <-check.C:
		}
	}
	return true
}
