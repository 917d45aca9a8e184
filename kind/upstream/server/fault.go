package server

import (
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

// ReplaceFaults reads faults, as fault.Encode wrote them, from in and puts them in place of the file at path. A registry that
// runs sees the old or the new ones, never half of them.
func ReplaceFaults(path string, in io.Reader) error {
	content, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return fmt.Errorf("read faults: %w", err)
	}
	if _, err := spec.Decode(content); err != nil {
		return err
	}
	return file.Replace(path, content, 0o400)
}

// readFaults returns those that hold now: none without the file.
func readFaults(path string) ([]spec.Fault, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read faults: %w", err)
	}
	all, err := spec.Decode(content)
	return spec.Active(all, time.Now()), err
}

// Faults returns the Middleware that breaks answers as the file at path says at the time. A fault ends by the time that it
// carries, or when it is no longer in the file. Requests of the testbed itself are never hit, and without the file none is.
func Faults(path string) Middleware {
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
			breaking(next, all, path, r).ServeHTTP(w, r)
		})
	}
}

// breaking returns the handler with those faults before it that hit the request, the first one outermost.
func breaking(next http.Handler, all []spec.Fault, path string, r *http.Request) http.Handler {
	for _, f := range slices.Backward(all) {
		if hits(f, r) {
			next = disturbance{f, path}.before(next)
		}
	}
	return next
}

func hits(f spec.Fault, r *http.Request) bool {
	switch f.On {
	case spec.All:
		return true
	case spec.Manifests:
		return accesslog.KindOf(r) == accesslog.KindManifest
	case spec.Blobs:
		return accesslog.KindOf(r) == accesslog.KindBlob
	default:
		return false
	}
}

// disturbance is a fault of a registry whose faults are in the file at path.
type disturbance struct {
	spec.Fault
	path string
}

// holds says whether the fault has neither ended nor been cleared.
func (d disturbance) holds() bool {
	all, err := readFaults(d.path)
	return err == nil && slices.ContainsFunc(all, d.Same)
}

// before returns the handler that brings the fault about. What changes the body of an answer leaves alone those without one.
func (d disturbance) before(next http.Handler) http.Handler {
	switch d.Kind {
	case spec.Status:
		return d.noted(http.HandlerFunc(d.answer))
	case spec.Credentials:
		return d.guarded(next)
	case spec.Latency, spec.Hang:
		return d.noted(d.delayed(next))
	case spec.Slow, spec.Reset, spec.Truncate, spec.WrongBytes:
		return d.changed(next)
	default:
		return next
	}
}

func (d disturbance) noted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accesslog.NoteFault(r.Context(), d.ID)
		next.ServeHTTP(w, r)
	})
}

// answer is all that the client gets.
func (d disturbance) answer(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	for name, values := range d.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	header.Set("Content-Length", fmt.Sprint(len(d.Body)))
	w.WriteHeader(d.Status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, d.Body) // the client may be gone
	}
}
