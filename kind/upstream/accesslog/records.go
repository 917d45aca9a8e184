package accesslog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
)

// Records is an access log, or a part of one, in the order in which requests ended. The methods
// that filter do not modify the receiver, and can be chained:
//
//	log.Repository("shop/web").Blobs().Gets().By(AskerNode)
type Records []Record

// Filter returns the records for which keep is true.
func (rs Records) Filter(keep func(Record) bool) Records {
	kept := Records{}
	for _, r := range rs {
		if keep(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// Repository returns the requests for one repository, for example "shop/web".
func (rs Records) Repository(name string) Records {
	return rs.Filter(func(r Record) bool { return r.Repository == name })
}

// By returns the requests of one asker.
func (rs Records) By(asker Asker) Records {
	return rs.Filter(func(r Record) bool { return r.Asker == asker })
}

// Pulls returns the requests that the testbed did not make itself.
func (rs Records) Pulls() Records {
	return rs.Filter(func(r Record) bool { return r.Asker != AskerHarness })
}

// Blobs returns the requests for blobs.
func (rs Records) Blobs() Records {
	return rs.Filter(func(r Record) bool { return r.Kind == KindBlob })
}

// Manifests returns the requests for manifests.
func (rs Records) Manifests() Records {
	return rs.Filter(func(r Record) bool { return r.Kind == KindManifest })
}

// Gets returns the GET requests, which may transfer content.
func (rs Records) Gets() Records {
	return rs.Filter(func(r Record) bool { return r.Method == http.MethodGet })
}

// Heads returns the HEAD requests, which only check for existence.
func (rs Records) Heads() Records {
	return rs.Filter(func(r Record) bool { return r.Method == http.MethodHead })
}

// Bytes returns the total size of all response bodies.
func (rs Records) Bytes() int64 {
	var sum int64
	for _, r := range rs {
		sum += r.Bytes
	}
	return sum
}

// PerReference returns the number of requests per tag or digest.
func (rs Records) PerReference() map[string]int {
	count := map[string]int{}
	for _, r := range rs {
		count[r.Reference]++
	}
	return count
}

// Evidence sums up what pulls fetched from the upstream. The first three fields count blob GETs.
type Evidence struct {
	ByCache, ByNodes, ByOthers int
	// Bytes is the total size of all response bodies per asker.
	Bytes map[Asker]int64
	// Repeated are the digests of blobs that were fetched more than once, sorted.
	Repeated []string
}

// Evidence summarizes the requests that the testbed did not make itself.
func (rs Records) Evidence() Evidence {
	pulls := rs.Pulls()
	gets := pulls.Blobs().Gets()
	e := Evidence{ByCache: len(gets.By(AskerCache)), ByNodes: len(gets.By(AskerNode)), Bytes: map[Asker]int64{}}
	e.ByOthers = len(gets) - e.ByCache - e.ByNodes
	for _, r := range pulls {
		if r.Bytes > 0 {
			e.Bytes[r.Asker] += r.Bytes
		}
	}
	for digest, n := range gets.PerReference() {
		if n > 1 {
			e.Repeated = append(e.Repeated, digest)
		}
	}
	slices.Sort(e.Repeated)
	return e
}

// String returns one line for a report, for example "3 blob GETs by cache, 0 by nodes".
func (e Evidence) String() string {
	s := fmt.Sprintf("%d blob GETs by cache, %d by nodes", e.ByCache, e.ByNodes)
	if e.ByOthers > 0 {
		s += fmt.Sprintf(", %d by others", e.ByOthers)
	}
	if len(e.Repeated) > 0 {
		s += fmt.Sprintf(", %d blobs more than once", len(e.Repeated))
	}
	return s
}

// Askers returns the distinct askers of the requests, sorted.
func (rs Records) Askers() []Asker {
	seen := map[Asker]bool{}
	for _, r := range rs {
		seen[r.Asker] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// Reader reads a growing log, one JSON object per line, and keeps the records.
type Reader struct {
	lines   *bufio.Scanner
	number  int
	records Records
}

// NewReader returns a Reader of the log.
func NewReader(log io.Reader) *Reader {
	r := &Reader{lines: bufio.NewScanner(log), records: Records{}}
	r.lines.Buffer(nil, 1<<20)
	return r
}

// Until reads up to the record of the request for SettlePath whose query is mark. It returns all
// earlier records since the beginning of the log, except those for SettlePath. An invalid line, or
// a log that ends before that record, is an error: a lost record would look like a request that was
// never made. The Reader is unusable after an error.
func (r *Reader) Until(mark string) (Records, error) {
	for r.lines.Scan() {
		r.number++
		var record Record
		if err := json.Unmarshal(r.lines.Bytes(), &record); err != nil {
			return nil, fmt.Errorf("access log, line %d, %q: %w", r.number, r.lines.Text(), err)
		}
		switch {
		case record.Path != SettlePath:
			r.records = append(r.records, record)
		case record.Query == mark:
			return slices.Clip(r.records), nil
		}
	}
	if err := r.lines.Err(); err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return nil, fmt.Errorf("access log ends before the request %s?%s: %w", SettlePath, mark, io.ErrUnexpectedEOF)
}
