package registryprofile

import (
	"compress/gzip"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const digestHeader = "Docker-Content-Digest"

// answer sends the registry's answer to the client, changed as the profile demands.
type answer struct {
	http.ResponseWriter
	h       *handler
	q       request
	asked   string // the requested range, or empty
	faulty  bool   // the fields below BodyOf apply
	started bool
	refused bool // the registry's answer was replaced
	good    bool // the status is 200 or 206
	length  int64
	written int64
	gzip    *gzip.Writer
}

// Unwrap supports http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.started {
		return
	}
	a.started = true
	a.good = status == http.StatusOK || status == http.StatusPartialContent
	header := a.Header()
	if status == http.StatusNotFound && a.h.Missing != 0 {
		a.refused = true
		header.Del("Content-Length")
		if a.h.Missing == http.StatusUnauthorized && a.h.Challenge != "" && a.q.hop == 0 {
			a.h.challenge(a.ResponseWriter, a.q, a.h.Challenge, "")
			return
		}
		document(a.ResponseWriter, a.h.Missing, "DENIED")
		return
	}
	if !a.good || !a.faulty {
		if a.good {
			a.headHeader(header)
		}
		a.ResponseWriter.WriteHeader(status)
		return
	}
	a.length, _ = strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	a.bodyHeader(header)
	a.headHeader(header)
	a.ResponseWriter.WriteHeader(status)
}

// bodyHeader changes the header as the fields below BodyOf demand.
func (a *answer) bodyHeader(header http.Header) {
	switch a.h.Digest {
	case "none":
		header.Del(digestHeader)
	case "wrong":
		header.Set(digestHeader, "sha256:"+strings.Repeat("0", 64))
	}
	switch kind := a.h.ContentType; {
	case kind == "-":
		header["Content-Type"] = nil // otherwise net/http would guess
	case strings.HasPrefix(kind, "+"):
		header.Set("Content-Type", header.Get("Content-Type")+kind[1:])
	case kind != "":
		header.Set("Content-Type", kind)
	}
	if a.q.Method == http.MethodHead {
		return
	}
	if a.h.Ranges == "lies" && header.Get("Content-Range") != "" {
		a.lie(header)
	}
	switch {
	case a.h.ZeroLength:
		header.Set("Content-Length", "0")
	case a.h.Gzip:
		header.Set("Content-Encoding", "gzip")
		header.Del("Content-Length")
		a.gzip = gzip.NewWriter(a.ResponseWriter)
	case a.h.Chunked:
		header.Del("Content-Length")
	}
}

// lie labels the bytes as the requested range.
func (a *answer) lie(header http.Header) {
	from, _, _ := strings.Cut(strings.TrimPrefix(a.asked, "bytes="), "-")
	_, size, _ := strings.Cut(header.Get("Content-Range"), "/")
	first, err := strconv.ParseInt(from, 10, 64)
	total, err2 := strconv.ParseInt(size, 10, 64)
	if err != nil || err2 != nil || first >= total {
		return
	}
	a.length = min(a.length, total-first)
	header.Set("Content-Range", "bytes "+from+"-"+strconv.FormatInt(first+a.length-1, 10)+"/"+size)
	header.Set("Content-Length", strconv.FormatInt(a.length, 10))
}

func (a *answer) headHeader(header http.Header) {
	if a.q.Method != http.MethodHead {
		return
	}
	if a.h.HeadWithoutDigest {
		header.Del(digestHeader)
	}
	if a.h.HeadWithoutLength {
		header.Del("Content-Length")
	}
	if a.h.HeadZeroLength {
		header.Set("Content-Length", "0")
	}
}

var errCut = errors.New("the answer is cut")

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if !a.started {
		a.WriteHeader(http.StatusOK)
	}
	switch {
	case a.refused || a.good && a.faulty && a.h.ZeroLength:
		return len(p), nil
	case !a.good || !a.faulty || a.q.Method == http.MethodHead:
		return a.ResponseWriter.Write(p)
	}
	all := len(p)
	if a.h.Ranges == "lies" && a.asked != "" {
		p = p[:min(int64(len(p)), max(0, a.length-a.written))]
	}
	if at := a.length/2 - a.written; a.h.Damaged && at >= 0 && at < int64(len(p)) {
		p = append([]byte(nil), p...)
		p[at] = ^p[at]
	}
	if cut := int64(a.h.CutAfter); cut > 0 && a.written+int64(len(p)) >= cut {
		_ = a.send(p[:cut-a.written])
		a.flush()
		panic(http.ErrAbortHandler)
	}
	if err := a.send(p); err != nil {
		return 0, err
	}
	return all, nil
}

// portions is the number of portions per second of a slow answer.
const portions = 4

// send writes p at the rate of the profile.
func (a *answer) send(p []byte) error {
	portion := len(p)
	if a.h.Rate > 0 {
		portion = max(1, a.h.Rate/portions)
	}
	for len(p) > 0 {
		n := min(portion, len(p))
		if err := a.write(p[:n]); err != nil {
			return err
		}
		a.written += int64(n)
		p = p[n:]
		if a.h.Rate > 0 {
			a.flush()
			if !pause(a.q.Request, time.Duration(n)*time.Second/time.Duration(a.h.Rate)) {
				return errCut
			}
		}
	}
	return nil
}

func (a *answer) write(p []byte) (err error) {
	if a.gzip != nil {
		_, err = a.gzip.Write(p)
	} else {
		_, err = a.ResponseWriter.Write(p)
	}
	return err
}

// flush sends what is written. A writer that cannot flush sends it later.
func (a *answer) flush() {
	if a.gzip != nil {
		_ = a.gzip.Flush()
	}
	_ = http.NewResponseController(a.ResponseWriter).Flush()
}

// end completes the answer.
func (a *answer) end() {
	switch {
	case a.gzip != nil:
		_ = a.gzip.Close() // an error means that the client has left
	case a.faulty && a.good && a.h.Chunked:
		a.flush() // otherwise net/http would add the length to a short body
	}
}
