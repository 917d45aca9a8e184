package fetch

import (
	"context"
	"net/http"
)

// rest is the client of a second answer, who has got the header and the beginning of the blob by the first.
type rest struct {
	http.ResponseWriter
	header http.Header
	have   int64
}

// Header implements http.ResponseWriter. It is not the client's.
func (r *rest) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *rest) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (r *rest) Write(p []byte) (int, error) {
	had := int(min(r.have, int64(len(p))))
	r.have -= int64(had)
	if had == len(p) {
		return had, nil
	}
	n, err := r.ResponseWriter.Write(p[had:])
	return had + n, err
}

// whole is the request for all of a blob, without conditions.
func whole(ctx context.Context, r *http.Request) *http.Request {
	r = r.Clone(ctx)
	r.Header = http.Header{}
	return r
}
