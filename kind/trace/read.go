package trace

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/gardener-extensions/registry-cache/kind/logline"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Reader parses lines of logs into events.
type Reader struct {
	Image Image
	// Cache returns the name of the cache with this host in its URL, or "" for another host.
	Cache func(host string) string
	// Asker returns the name of the client with this address, or "" if it is unknown.
	Asker func(address string) string

	begun []Event // the Began events of running pulls, the oldest first
}

// Containerd parses a line of containerd's journal. If the line shows the start of containerd, the
// result is a Failed event for each running pull of the node.
func (r *Reader) Containerd(node, text string) []Event {
	line := logline.Payload(text)
	if logline.ContainerdStarts(line.Message) {
		return r.interrupted(node, line.Time)
	}
	if line.Message == "trying next host" {
		return asList(r.gaveUp(node, line))
	}
	image, state, ok := logline.PullMessage(line.Message)
	if !ok || !r.Image.matches(image) {
		return nil
	}
	event := Event{Time: line.Time, Kind: Began, From: node, What: image}
	if state == logline.PullBegan {
		r.begun = append(r.begun, event)
		return []Event{event}
	}
	event.Kind = Pulled
	if state == logline.PullFailed {
		event.Kind, event.Note = Failed, lastReason(line.Fields["error"])
	}
	// The log does not distinguish pulls of one image on one node. Assume that the oldest ends first.
	if i := slices.IndexFunc(r.begun, func(b Event) bool { return b.From == node && b.What == image }); i >= 0 {
		event.Seconds = line.Time.Sub(r.begun[i].Time).Seconds()
		r.begun = slices.Delete(r.begun, i, i+1)
	}
	return []Event{event}
}

// interrupted returns a Failed event for each running pull of a node whose containerd starts.
func (r *Reader) interrupted(node string, at time.Time) []Event {
	var ended, left []Event
	for _, begun := range r.begun {
		if begun.From != node {
			left = append(left, begun)
			continue
		}
		ended = append(ended, Event{
			Time: at, Kind: Failed, From: node, What: begun.What, Seconds: at.Sub(begun.Time).Seconds(), Note: "containerd restarted",
		})
	}
	r.begun = left
	return ended
}

// RunningPulls returns the Began events of running pulls, the oldest first.
func (r *Reader) RunningPulls() []Event { return slices.Clone(r.begun) }

func (r *Reader) gaveUp(node string, line logline.Line) (Event, bool) {
	target, err := url.Parse(line.Fields["url"])
	if err != nil {
		return Event{}, false
	}
	what, ok := r.Image.object(target.Path)
	if !ok {
		return Event{}, false
	}
	event := Event{
		Time: line.Time, Kind: GaveUp, From: node, To: cmp.Or(r.Cache(target.Hostname()), target.Host),
		What: line.Fields["method"] + " " + what, Note: lastReason(line.Fields["error"]),
	}
	if status := line.Fields["status"]; event.Note == "" && status != "" {
		event.Note = "answered " + status
	}
	return event, true
}

// lastReason returns the last part of a chain of errors. The other parts repeat the request.
func lastReason(text string) string {
	if i := strings.LastIndex(text, `": `); i >= 0 {
		return text[i+3:]
	}
	return text
}

// CacheLog parses a line of a cache's log into a request that the cache answered.
func (r *Reader) CacheLog(pod, text string) (Event, bool) {
	line := logline.Payload(text)
	if !strings.HasPrefix(line.Message, "response completed") {
		return Event{}, false
	}
	what, ok := r.Image.object(line.Fields["http.request.uri"])
	if !ok {
		return Event{}, false
	}
	address := line.Fields["http.request.remoteaddr"]
	event := Event{
		Time: line.Time, Kind: Request, From: cmp.Or(r.Asker(address), address), To: pod,
		What: line.Fields["http.request.method"] + " " + what, Note: line.Fields["err.message"],
	}
	event.Status, _ = strconv.Atoi(line.Fields["http.response.status"])             // missing means 0
	event.Bytes, _ = strconv.ParseInt(line.Fields["http.response.written"], 10, 64) // missing means 0
	if took, err := time.ParseDuration(line.Fields["http.response.duration"]); err == nil {
		event.Seconds = took.Seconds()
	}
	return event, true
}

// AccessLog parses a line of an upstream's access log into a request that the upstream answered.
func (r *Reader) AccessLog(host, text string) (Event, bool) {
	var record accesslog.Record
	if json.Unmarshal([]byte(text), &record) != nil || record.Asker == accesslog.AskerHarness || host != r.Image.Host {
		return Event{}, false
	}
	what, ok := r.Image.object(record.Path)
	if !ok {
		return Event{}, false
	}
	label, _, _ := strings.Cut(host, ".")
	event := Event{
		// The record has the time of the request, but the other logs have the time of the response.
		Time: record.Time.Add(time.Duration(record.Seconds * float64(time.Second))), Kind: Request,
		From: cmp.Or(r.Asker(record.RemoteAddr), record.RemoteAddr), To: "upstream " + label, What: record.Method + " " + what,
		Status: record.Status, Bytes: record.Bytes, Seconds: record.Seconds,
	}
	if record.Asker == accesslog.AskerCache {
		event.From = "cache"
	}
	if record.Aborted {
		event.Note = "aborted"
	}
	if len(record.Faults) > 0 {
		event.Note = strings.TrimPrefix(event.Note+", by fault "+strings.Join(record.Faults, ", "), ", ")
	}
	return event, true
}

// Image is the image of a trace. Host and Repository are parts of Reference.
type Image struct{ Reference, Host, Repository string }

// ParseImage parses a reference in the form that pods use.
func ParseImage(image string) (Image, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return Image{}, err
	}
	repository := reference.Context()
	return Image{Reference: reference.Name(), Host: repository.RegistryStr(), Repository: repository.RepositoryStr()}, nil
}

// matches reports whether a reference is in the repository. Any tag or digest matches, since
// containerd resolves a tag to a digest.
func (i Image) matches(reference string) bool {
	rest, found := strings.CutPrefix(reference, i.Host+"/"+i.Repository)
	return found && rest != "" && (rest[0] == ':' || rest[0] == '@')
}

// object returns the kind and the shortened reference in a path of the registry API, for example
// "manifest v1". It returns false for a path outside the repository.
func (i Image) object(path string) (string, bool) {
	rest, found := strings.CutPrefix(path, "/v2/"+i.Repository+"/")
	if !found {
		return "", false
	}
	rest, _, _ = strings.Cut(rest, "?")
	kind, reference, found := strings.Cut(rest, "/")
	if !found || kind != "manifests" && kind != "blobs" {
		return "", false
	}
	return strings.TrimSuffix(kind, "s") + " " + short(reference), true
}

const shortDigest = 12

func short(reference string) string {
	algorithm, hex, found := strings.Cut(reference, ":")
	if !found || len(hex) <= shortDigest {
		return reference
	}
	return algorithm + ":" + hex[:shortDigest]
}
